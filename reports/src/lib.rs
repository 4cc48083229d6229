//! The record of a storeproof run and the forms it is read in.
//!
//! [`record`] is the run itself; [`json`], [`junit`], [`html`] and [`terminal`] draw it. Each form
//! holds the same rows and the same counts. Foreign text goes through [`text`] first. Nothing here
//! knows a clause, a backend or a protocol.
#![deny(missing_docs)]

mod compact;
mod error;
pub mod html;
pub mod json;
pub mod junit;
pub mod record;
pub mod terminal;
pub mod text;
mod view;
mod write;

pub use error::ReportError;
pub use write::write_atomically;
