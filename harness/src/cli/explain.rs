//! `storeproof explain`: one clause in full.

use super::{Ended, Failure, list, words};
use crate::exit_code;
use std::fmt::Write as _;
use storeproof_contract::clause::Clause;
use storeproof_contract::suite::{Suite, clauses};

const EXAMPLES: &str = "\
Examples:
  storeproof explain mailbox/core/claim-fences
  storeproof explain claim-fences";

/// Says what a clause promises, why it matters, how it is judged, and what its mutants do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Clause id, or its last component where that is unambiguous
    #[arg(value_name = "CLAUSE")]
    clause: String,
}

pub(super) fn run(args: &Args) -> Ended {
    let (suite, clause) = find(&args.clause)?;
    words::result(&page(suite, clause));
    Ok(exit_code::OK)
}

fn find(asked: &str) -> Result<(&'static Suite, &'static Clause), Failure> {
    let exact = clauses().find(|(suite, clause)| suite.clause_id(clause) == asked);
    if let Some(found) = exact {
        return Ok(found);
    }
    let by_slug: Vec<_> = clauses().filter(|(_, clause)| clause.slug == asked).collect();
    if let [only] = by_slug[..] {
        return Ok(only);
    }
    let like: Vec<String> = clauses()
        .map(|(suite, clause)| suite.clause_id(clause))
        .filter(|id| asked.split(['/', '-']).any(|word| word.len() > 2 && id.contains(word)))
        .take(8)
        .collect();
    let hint = if like.is_empty() {
        "see `storeproof list clauses`".to_owned()
    } else {
        format!("did you mean one of: {}", like.join(", "))
    };
    Err(Failure::nothing_ran(format!("there is no one clause {asked:?}; {hint}")))
}

fn page(suite: &Suite, clause: &Clause) -> String {
    let mut out = format!("{} ({})\n\n", suite.clause_id(clause), list::tier(suite.tier));
    wrapped(&mut out, "", clause.statement);
    let _ = write!(out, "\nWhy it matters\n");
    wrapped(&mut out, "  ", clause.why);
    let _ = write!(out, "\nHow it is judged\n");
    for (n, step) in (1..).zip(clause.steps) {
        wrapped(&mut out, &format!("  {n}. "), step);
    }
    if let Some(need) = clause.needs {
        let _ = writeln!(out, "\nOnly for subjects that declare {}.", need.word());
    }
    let _ = write!(out, "\nWrong stores that it catches\n");
    for mutant in clause.mutants {
        wrapped(&mut out, &format!("  {}: ", mutant.name), mutant.fault);
    }
    if let Some(reason) = clause.never_sole {
        let _ = write!(out, "\nNever the only clause to catch a wrong store\n");
        wrapped(&mut out, "  ", reason);
    }
    let _ = write!(out, "\nWhat the suite does not prove\n");
    wrapped(&mut out, "  ", suite.ceiling);
    out
}

/// Breaks `text` at 96 columns; further lines are indented as far as `lead`, at most eight columns.
fn wrapped(out: &mut String, lead: &str, text: &str) {
    const COLUMNS: usize = 96;
    let indent = " ".repeat(lead.chars().count().min(8));
    let mut line = lead.to_owned();
    let mut fresh = true;
    for word in text.split(' ') {
        if !fresh && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(out, "{line}");
            line.clone_from(&indent);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    let _ = writeln!(out, "{line}");
}
