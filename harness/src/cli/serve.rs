//! `storeproof serve`: a bundled store as a child that speaks the protocol.

use super::{Ended, Failure};
use crate::adapter::{on_deep_stack, serve as serve_subject};
use crate::exit_code;
use std::io::{self, BufReader};
use storeproof_reference_stores::STORES;

const EXAMPLES: &str = "\
Examples:
  storeproof serve memory
  storeproof certify -- storeproof serve sqlite";

/// Serves a bundled store over stdin and stdout; a template for adapters, and a second process for the bench.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A bundled store (see `storeproof list stores`)
    #[arg(value_name = "STORE")]
    store: String,
}

pub(super) fn run(args: &Args) -> Ended {
    let Some(store) = STORES.iter().find(|store| store.name == args.store) else {
        let names: Vec<&str> = STORES.iter().map(|store| store.name).collect();
        let message =
            format!("there is no bundled store {:?}; there are {}", args.store, names.join(", "));
        return Err(Failure::nothing_ran(message));
    };
    let base = std::env::temp_dir().join("storeproof-stores");
    std::fs::create_dir_all(&base)
        .map_err(|error| Failure::nothing_ran(format!("{}: {error}", base.display())))?;
    let subject = (store.make)(&base);
    // Deeply nested bodies are parsed and dropped by recursion.
    on_deep_stack(move || serve_subject(subject, BufReader::new(io::stdin()), io::stdout()))
        .flatten()
        .map_err(|error| Failure::not_judged(format!("the pipe broke: {error}")))?;
    Ok(exit_code::OK)
}
