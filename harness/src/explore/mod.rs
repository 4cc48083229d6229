//! Exploring: random scripts against a mailbox, judged by the contract, made small, and saved so that
//! they run again on any subject.

pub mod against;
pub mod crash;
pub mod file;
pub mod generate;
pub mod judge;
mod lanes;
pub mod memory;
pub mod reached;
pub mod run;
pub mod script;
pub mod search;
pub mod shrink;
pub mod sim;
pub mod stand;
pub mod tell;
pub mod terms;
pub mod unseen;

pub use run::{End, Run, Told, run};
pub use script::Script;
pub use terms::Terms;
