//! Trials with several processes: how a clause has them, kills them and lets them race.

use super::{Moment, Stop, Trial, Verdict};
use crate::backend::Side;
use crate::call::{Answer, RpcError};
use crate::json::Json;
use crate::race::{KillAt, Lane, Race, Raced};
use serde_json::json;

impl Trial<'_> {
    /// Running processes of the subject, all different; see [`Backend::processes`].
    ///
    /// # Errors
    /// A fault where they cannot be had.
    pub fn processes(&mut self, count: usize) -> Result<Vec<Side>, Stop> {
        self.tells_sides = true;
        self.backend.processes(count).map_err(Stop::Fault)
    }

    /// How long a call may go unanswered, in milliseconds.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        self.backend.deadline_ms()
    }

    /// Lets `ms` milliseconds of real time pass, whatever clock judges leases.
    ///
    /// # Errors
    /// A fault where the wait was cut short.
    pub fn pause(&mut self, ms: u64) -> Verdict {
        let until_ms = self.backend.now_ms() + ms;
        self.backend.wait_until(until_ms).map_err(Stop::Fault)
    }

    /// How many times a clause about kills kills.
    #[must_use]
    pub fn kill_rounds(&self) -> u32 {
        self.backend.kill_rounds()
    }

    /// Kills a process between two calls. Its stores are gone; what they held is the other's to show.
    ///
    /// # Errors
    /// A fault of the bench.
    pub fn kill(&mut self, side: Side) -> Verdict {
        self.backend.kill(side).map_err(Stop::Fault)?;
        self.buried(side);
        self.tell(side, "bench/kill", json!({}), Answer::Result(json!({})));
        Ok(())
    }

    /// Sends a call and kills its process about `at` of the way to the answer; see
    /// [`Backend::call_and_kill`]. The result is `None` where no answer came.
    ///
    /// # Errors
    /// A fault where the process answered with one before it was killed.
    pub fn call_and_kill(
        &mut self,
        on: Side,
        method: &'static str,
        params: Json,
        at: f64,
    ) -> Result<Option<Result<Json, RpcError>>, Stop> {
        self.check_limit()?;
        let sent_ms = self.now_ms();
        let answer = self.backend.call_and_kill(on, method, &params, at).map_err(Stop::Fault)?;
        self.last = Moment { sent_ms, answered_ms: self.now_ms() };
        self.buried(on);
        let shown =
            answer.clone().unwrap_or_else(|| Answer::Result(json!("killed before it answered")));
        self.tell(on, method, params, shown);
        match answer {
            None => Ok(None),
            Some(Answer::Result(result)) => Ok(Some(Ok(result))),
            Some(Answer::Error(error)) => Ok(Some(Err(error))),
            Some(Answer::Fault(fault)) => Err(Stop::Fault(fault)),
        }
    }

    /// Forgets what was open in a process that is gone.
    pub(crate) fn buried(&mut self, side: Side) {
        self.open.retain(|(on, _)| *on != side);
    }

    /// Runs lanes side by side; every call goes into the transcript in the order of sending.
    ///
    /// # Errors
    /// A fault where the race could not be held, or where a call in it had no answer to judge.
    pub fn race<'l>(
        &mut self,
        lanes: Vec<(Side, Box<dyn Lane + 'l>)>,
        kill: Option<KillAt>,
    ) -> Result<Vec<Raced>, Stop> {
        self.check_limit()?;
        let seed = self.rng.u64(..);
        let sent_ms = self.now_ms();
        let raced = self.backend.race(Race { lanes, kill, seed }).map_err(Stop::Fault)?;
        self.last = Moment { sent_ms, answered_ms: self.now_ms() };
        if let Some(kill) = kill {
            self.buried(kill.side);
        }
        let mut fault = None;
        for call in &raced {
            let unanswered = || Answer::Result(json!("killed before it answered"));
            let answer = call.answer.clone().unwrap_or_else(unanswered);
            if let Answer::Fault(found) = &answer {
                fault.get_or_insert_with(|| found.clone());
            }
            self.tell(call.side, call.method, call.params.clone(), answer);
        }
        fault.map_or(Ok(raced), |fault| Err(Stop::Fault(fault)))
    }
}
