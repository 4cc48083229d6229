//! the bench
