//! `storeproof list`: what there is.

use super::{Ended, words};
use crate::exit_code;
use serde_json::{Value, json};
use std::fmt::Write as _;
use storeproof_contract::suite::{Tier, clauses, mutants, suites};
use storeproof_reference_stores::STORES;

const EXAMPLES: &str = "\
Examples:
  storeproof list
  storeproof list clauses
  storeproof list mutants --json";

/// Lists suites, clauses, bundled stores or mutants.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What to list
    #[arg(value_enum, default_value = "suites")]
    what: What,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// What is mounted together
    Suites,
    /// Every promise
    Clauses,
    /// Bundled stores
    Stores,
    /// Deliberately wrong stores
    Mutants,
}

pub(super) fn run(args: &Args) -> Ended {
    let (rows, as_json) = match args.what {
        What::Suites => listed_suites(),
        What::Clauses => listed_clauses(),
        What::Stores => listed_stores(),
        What::Mutants => listed_mutants(),
    };
    if args.json {
        words::result(&format!("{as_json:#}\n"));
    } else {
        words::result(&aligned(&rows));
    }
    Ok(exit_code::OK)
}

/// The word of a tier in reports.
pub(super) fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::T1 => "T1",
        Tier::T2 => "T2",
    }
}

type Listed = (Vec<[String; 3]>, Value);

fn listed_suites() -> Listed {
    let rows = suites().iter().map(|suite| {
        [
            suite.id.to_owned(),
            format!("{} {:>2} clauses", tier(suite.tier), suite.clauses.len()),
            suite.about.to_owned(),
        ]
    });
    let all: Vec<Value> = suites()
        .iter()
        .map(|suite| {
            let needs: Vec<&str> = suite.needs.iter().map(|need| need.word()).collect();
            json!({
                "id": suite.id, "tier": tier(suite.tier), "about": suite.about, "needs": needs,
                "ceiling": suite.ceiling, "clauses": suite.clauses.len(),
            })
        })
        .collect();
    (rows.collect(), json!({ "suites": all }))
}

fn listed_clauses() -> Listed {
    let rows = clauses().map(|(suite, clause)| {
        [suite.clause_id(clause), tier(suite.tier).to_owned(), clause.statement.to_owned()]
    });
    let all: Vec<Value> = clauses()
        .map(|(suite, clause)| {
            let mutants: Vec<&str> = clause.mutants.iter().map(|mutant| mutant.name).collect();
            json!({
                "id": suite.clause_id(clause), "suite": suite.id, "tier": tier(suite.tier),
                "statement": clause.statement, "mutants": mutants,
            })
        })
        .collect();
    (rows.collect(), json!({ "clauses": all }))
}

fn listed_stores() -> Listed {
    let rows =
        STORES.iter().map(|store| [store.name.to_owned(), String::new(), store.about.to_owned()]);
    let all: Vec<Value> =
        STORES.iter().map(|store| json!({ "name": store.name, "about": store.about })).collect();
    (rows.collect(), json!({ "stores": all }))
}

fn listed_mutants() -> Listed {
    let rows = mutants().map(|(suite, clause, mutant)| {
        [mutant.name.to_owned(), suite.clause_id(clause), mutant.fault.to_owned()]
    });
    let all: Vec<Value> = mutants()
        .map(|(suite, clause, mutant)| {
            json!({ "name": mutant.name, "clause": suite.clause_id(clause), "fault": mutant.fault })
        })
        .collect();
    (rows.collect(), json!({ "mutants": all }))
}

/// Rows with the first two columns padded to their longest entry.
fn aligned(rows: &[[String; 3]]) -> String {
    let longest =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (longest(0), longest(1));
    rows.iter().fold(String::new(), |mut out, [a, b, c]| {
        let middle = if second == 0 { String::new() } else { format!("{b:second$}  ") };
        let _ = writeln!(out, "{a:first$}  {middle}{c}");
        out
    })
}
