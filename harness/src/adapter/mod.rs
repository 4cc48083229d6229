//! From a subject to a [`storeproof_contract::backend::Backend`]: a child process in any language
//! behind deadlines, or a Rust value in this process. Whatever the subject does, the bench neither
//! hangs, nor dies, nor leaves a process behind.

mod backend;
mod family;
pub mod frame;
pub mod launch;
pub mod local;
pub mod process;
pub mod processes;
pub mod serve;
pub mod session;
pub mod shown;
pub mod snares;
pub mod space;
pub mod stack;
mod tail;

pub use backend::{ProcessBackend, RESTARTS_FAILED_MAX, Stand};
pub use launch::{Launch, StartError, Timing};
pub use local::LocalBackend;
pub use serve::serve;
pub use session::Session;
pub use space::{RunClock, RunSpace};
pub use stack::{DEEP_STACK_BYTES, on_deep_stack};
