//! Calls that overlap: lanes that run side by side, and the record of what was called when.

use crate::backend::Side;
use crate::call::Answer;
use crate::json::Json;

/// Whoever makes one lane's calls: the next call may depend on what earlier ones answered.
pub trait Lane: Send {
    /// The next call, or `None` where the lane has reached its end.
    fn next(&mut self) -> Option<(&'static str, Json)>;

    /// Tells the lane what came back. A fault ends the lane: it is not asked again.
    fn answered(&mut self, answer: &Answer);
}

/// Lanes that are to run side by side.
pub struct Race<'l> {
    /// Each with the process that it calls. Lanes of one process take turns there unless the subject
    /// declares `concurrent`.
    pub lanes: Vec<(Side, Box<dyn Lane + 'l>)>,
    /// A process that is killed on the way.
    pub kill: Option<KillAt>,
    /// Decides the order of events where nothing else does.
    pub seed: u64,
}

/// When a process is killed during a race: in the middle of a call, and all its lanes end there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KillAt {
    /// Which one.
    pub side: Side,
    /// After so many of its calls were answered, in the next one.
    pub after: usize,
    /// How far into that call; see [`crate::backend::Backend::call_and_kill`].
    pub at: f64,
}

/// A moment of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Counts every sending and every answer of the race: what was answered with a lower number than
    /// something else was sent with was really over by then.
    pub order: u64,
    /// The wall clock in epoch milliseconds.
    pub ms: u64,
}

/// One call of a race.
#[derive(Clone, Debug)]
pub struct Raced {
    /// The lane's place in the race.
    pub lane: usize,
    /// The process it called.
    pub side: Side,
    /// Wire method.
    pub method: &'static str,
    /// Its params.
    pub params: Json,
    /// Not later than the process received it.
    pub sent: Stamp,
    /// Not earlier than the process answered it; `None` where it was killed before.
    pub answered: Option<Stamp>,
    /// What came back; `None` where the process was killed before it answered.
    pub answer: Option<Answer>,
}
