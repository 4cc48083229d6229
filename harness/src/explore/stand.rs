//! Exploring a real subject: a child process or a value in this process.

use super::search::Bench;
use crate::run::BoxedStand;
use std::time::Duration;
use storeproof_contract::backend::Backend;
use storeproof_contract::call::Fault;

/// What the calls of one script may take together, in seconds.
const SCRIPT_S_MAX: u64 = 120;

/// Lends one subject, started again where it is gone.
pub struct StandBench(pub BoxedStand);

impl Bench for StandBench {
    fn fresh(&mut self) -> Result<&mut dyn Backend, Fault> {
        self.0.renew()?;
        self.0.begin_clause(Duration::from_secs(SCRIPT_S_MAX));
        Ok(&mut *self.0)
    }
}
