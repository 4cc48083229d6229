//! `storeproof serve`: a bundled store as a child that speaks the protocol.

use super::{Ended, Failure, store};
use crate::adapter::{on_deep_stack, serve as serve_subject};
use crate::exit_code;
use std::io::{self, BufReader};

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
    /// The server of a store that has one [default: STOREPROOF_POSTGRES_URL or STOREPROOF_REDIS_URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(super) fn run(args: &Args) -> Ended {
    let base = std::env::temp_dir().join("storeproof-stores");
    let subject = store::choose(&args.store, args.url.as_deref(), base)?.make();
    // Deeply nested bodies are parsed and dropped by recursion.
    on_deep_stack(move || serve_subject(subject, BufReader::new(io::stdin()), io::stdout()))
        .flatten()
        .map_err(|error| Failure::not_judged(format!("the pipe broke: {error}")))?;
    Ok(exit_code::OK)
}
