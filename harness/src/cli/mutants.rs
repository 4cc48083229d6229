//! `storeproof mutants`: the proof that the clauses can fail.

use super::{Ended, Failure, words};
use crate::exit_code;
use crate::prove::{Gap, KillTable};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use storeproof_contract::suite::suites;
use storeproof_reports::write_atomically;

const EXAMPLES: &str = "\
Examples:
  storeproof mutants
  storeproof mutants --json kills.json";

/// Judges every deliberately wrong store by every clause, and shows which clause catches which.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Write the table as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Ended {
    let table = KillTable::judge();
    if let Some(path) = &args.json {
        let text = format!("{:#}\n", as_json(&table));
        write_atomically(path, text.as_bytes()).map_err(Failure::nothing_ran)?;
    }
    let gaps = table.gaps();
    words::result(&page(&table, &gaps));
    if table.0.is_empty() {
        return Err(Failure::nothing_ran("no mutant was run, so nothing was proved"));
    }
    Ok(if gaps.is_empty() { exit_code::OK } else { exit_code::FINDING })
}

fn as_json(table: &KillTable) -> Value {
    let mutants: Vec<Value> = table
        .0
        .iter()
        .map(|line| {
            json!({
                "name": line.mutant.name, "clause": line.suite.clause_id(line.clause),
                "fault": line.mutant.fault, "killed": line.killed, "killed_by": line.killed_by,
            })
        })
        .collect();
    json!({ "mutants": mutants })
}

fn page(table: &KillTable, gaps: &[Gap]) -> String {
    let mut out = String::new();
    let width = table.0.iter().map(|line| line.mutant.name.len()).max().unwrap_or(0);
    for suite in suites() {
        for clause in suite.clauses {
            let id = suite.clause_id(clause);
            let _ = writeln!(out, "{id}");
            for line in table.0.iter().filter(|line| line.suite.clause_id(line.clause) == id) {
                let _ = writeln!(
                    out,
                    "  {:width$}  {}",
                    line.mutant.name,
                    fate(&id, line.killed, &line.killed_by)
                );
            }
        }
    }
    let alive = table.0.iter().filter(|line| !line.killed).count();
    let clauses: usize = suites().iter().map(|suite| suite.clauses.len()).sum();
    let sole = table.sole_killers().len();
    let _ = writeln!(
        out,
        "\n{} mutants of {clauses} clauses: {} killed, {alive} alive; {sole} clauses are the only killer of at least one",
        table.0.len(),
        table.0.len() - alive,
    );
    for gap in gaps {
        let _ = match gap {
            Gap::Alive { mutant, clause } => {
                writeln!(out, "alive: {mutant} is not killed by its own clause {clause}")
            }
            Gap::Uncovered(clause) => writeln!(out, "uncovered: {clause} has no mutant"),
            Gap::NeverSole(clause) => writeln!(
                out,
                "never sole: {clause} is the only killer of nothing and does not say why"
            ),
        };
    }
    out
}

fn fate(own: &str, killed: bool, killed_by: &[String]) -> String {
    let others: Vec<&str> = killed_by.iter().map(String::as_str).filter(|id| *id != own).collect();
    match (killed, others.len()) {
        (true, 0) => "killed by this clause alone".to_owned(),
        (true, 1..=3) => format!("killed, also by {}", others.join(", ")),
        (true, n) => format!("killed, also by {n} other clauses"),
        (false, 0) => "ALIVE".to_owned(),
        (false, n) => format!("ALIVE here, killed by {n} other clauses"),
    }
}
