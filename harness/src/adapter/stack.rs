//! Room on the stack for the deepest JSON that the protocol allows.

use std::io;

/// Stack for a thread that parses, compares, writes and drops JSON of 1,100 levels, which all recurse:
/// measured at under 2 MiB in a debug build. Reserved as address space only.
pub const DEEP_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Runs `work` on a thread with [`DEEP_STACK_BYTES`] of stack and waits for it; a panic goes on here.
///
/// # Errors
/// The machine's, where it gives no thread.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(DEEP_STACK_BYTES).spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(value) => Ok(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
