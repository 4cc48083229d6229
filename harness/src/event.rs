//! What happens during a run, as the runner tells it; reports and progress are drawn from nothing else.

use storeproof_contract::trial::Judgement;

/// One thing that happened.
#[derive(Debug)]
pub enum Event {
    /// A case began.
    Began {
        /// Its place in the plan.
        case: usize,
    },
    /// A case ended with a judgement, which may be that nothing could be judged.
    Ended {
        /// Its place in the plan.
        case: usize,
        /// How it came out.
        judgement: Box<Judgement>,
        /// Wall time in milliseconds.
        ms: u64,
    },
}
