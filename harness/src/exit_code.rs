//! Exit statuses, all of them.

/// All is well.
pub const OK: u8 = 0;
/// A finding: a clause failed, a mutant lives.
pub const FINDING: u8 = 1;
/// Nothing ran: usage, an unreadable file, a refused mount, a pattern that matches nothing; also a
/// failure that was expected and did not come, and a run that judged nothing.
pub const NOTHING_RAN: u8 = 2;
/// Something could not be judged.
pub const NOT_JUDGED: u8 = 3;
