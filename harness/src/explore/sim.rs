//! Exploring in simulated time, without a child: for tests of the search itself.

use super::search::Bench;
use storeproof_contract::backend::Backend;
use storeproof_contract::call::Fault;
use storeproof_contract::sim::{Make, Sim, SimClock, SimTime};

/// Lends a fresh simulation for each script.
pub struct SimBench {
    time: SimTime,
    make: Make,
    sim: Sim,
}

impl SimBench {
    /// A bench for the store that `make` makes.
    #[must_use]
    pub fn new(time: SimTime, make: Make) -> Self {
        Self { time, make, sim: Sim::new(time, SimClock::new(), make) }
    }
}

impl Bench for SimBench {
    fn fresh(&mut self) -> Result<&mut dyn Backend, Fault> {
        self.sim = Sim::new(self.time, SimClock::new(), self.make);
        Ok(&mut self.sim)
    }
}
