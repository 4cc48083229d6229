//! A deliberately wrong store of the registry as a child process: `wrong_store NAME`, or
//! `wrong_store model` for the right one. Tests stand it before the built binary. Its storages are
//! files that several such processes share.

mod shared;

use std::io::{self, BufReader};
use std::process::ExitCode;
use storeproof::adapter::serve;
use storeproof_contract::mailbox::mutant::model;
use storeproof_contract::sim::Make;
use storeproof_contract::suite::mutants;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let make: Option<Make> =
        mutants().find(|(_, _, mutant)| mutant.name == name).map(|(_, _, mutant)| mutant.make);
    let make = if name == "model" { Some(model as Make) } else { make };
    let Some(make) = make else { return ExitCode::from(2) };
    match serve(shared::subject(make), BufReader::new(io::stdin()), io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
