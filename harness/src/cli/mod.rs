//! The command line: one file a command.

use crate::exit_code;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod certify;
mod doctor;
mod explain;
mod explore;
mod list;
mod mutants;
mod replay;
mod serve;
mod span;
mod store;
mod subject;
mod words;

/// Certifies the stores behind AI agents, clause by clause.
#[derive(Parser)]
#[command(name = "storeproof", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  storeproof certify sqlite --junit report.xml --html report.html
  storeproof certify -- python3 my_store.py
  storeproof doctor -- python3 my_store.py
  storeproof explain mailbox/core/claim-fences

Exit status of certify: 0 all judged clauses held; 1 a clause failed; 2 nothing ran, or an
expected failure did not come; 3 something could not be judged.";

#[derive(Subcommand)]
enum Command {
    Certify(Box<certify::Args>),
    Serve(serve::Args),
    Doctor(doctor::Args),
    List(list::Args),
    Explain(explain::Args),
    Mutants(mutants::Args),
    Explore(explore::Args),
    Replay(replay::Args),
}

/// A command ended before it had anything to report.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// Usage, an unreadable file, a refused mount: nothing ran.
    fn nothing_ran(why: impl std::fmt::Display) -> Self {
        Self { status: exit_code::NOTHING_RAN, message: why.to_string() }
    }

    /// The bench could not do its part.
    fn not_judged(why: impl std::fmt::Display) -> Self {
        Self { status: exit_code::NOT_JUDGED, message: why.to_string() }
    }
}

/// How a command ends: with an exit status, or with a message and one.
pub(crate) type Ended = Result<u8, Failure>;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Certify(args) => certify::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::List(args) => list::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Replay(args) => replay::run(&args),
    };
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            words::note(&failure.message);
            ExitCode::from(failure.status)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        for command in super::Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("storeproof "), "{} has no example", command.get_name());
        }
    }
}
