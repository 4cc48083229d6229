//! How many cases it takes to find each wrong store of the registry: `storeproof explore` against a
//! plain state machine of `proptest-state-machine`, in simulated time, with the same operations and the
//! same judge. Prints a Markdown table.
//!
//! `storeproof-explore-bench [SEEDS] [CASES]`

mod plain;

use rayon::prelude::*;
use std::collections::BTreeMap;
use storeproof::explore::search::{Ask, Bench as _, search};
use storeproof::explore::sim::SimBench;
use storeproof::explore::unseen::{seen, unseen};
use storeproof::explore::{End, run};
use storeproof_contract::clause::Mutant;
use storeproof_contract::mailbox::mutant::model;
use storeproof_contract::sim::SimTime;
use storeproof_contract::suite::mutants;

/// Cases until the first finding, by one seed; one more than all where there was none.
fn ours(mutant: &Mutant, seed: u64, cases: u64) -> u64 {
    let ask = Ask { cases, seed, single: true, several: true, stop_at_first: true, shrink_runs: 0 };
    let mut bench = SimBench::new(SimTime::Caller, mutant.make);
    let searched = search(&mut bench, &ask, &mut || true, &mut |_| {});
    searched.ok().and_then(|s| s.findings.first().map(|f| f.case)).unwrap_or(cases + 1)
}

/// The same for the plain way.
fn theirs(mutant: &Mutant, seed: u64, cases: u64) -> u64 {
    let mut plain = plain::Plain::new(seed);
    let mut bench = SimBench::new(SimTime::Caller, mutant.make);
    (1..=cases)
        .find(|case| {
            let script = plain.script();
            let backend = bench.fresh().expect("a simulation");
            matches!(run(&script, backend, *case).end, End::Forbidden(_))
        })
        .unwrap_or(cases + 1)
}

/// The median.
fn median(of: &[u64]) -> u64 {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) / 2]
}

/// Vargha and Delaney's A12: how likely one of ours needs fewer cases than one of theirs, ties by half.
fn a12(ours: &[u64], theirs: &[u64]) -> f64 {
    let mut wins = 0.0;
    for a in ours {
        for b in theirs {
            wins += match a.cmp(b) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Greater => 0.0,
            };
        }
    }
    wins / (ours.len() * theirs.len()) as f64
}

fn main() {
    let mut args = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (seeds, cases) = (args.next().unwrap_or(10), args.next().unwrap_or(2_000));
    let rows: Vec<_> = seen().collect();
    let measured: Vec<_> = rows
        .par_iter()
        .map(|(suite, clause, mutant)| {
            let a: Vec<u64> = (1..=seeds).map(|seed| ours(mutant, seed, cases)).collect();
            let b: Vec<u64> = (1..=seeds).map(|seed| theirs(mutant, seed, cases)).collect();
            eprintln!("{} {a:?} {b:?}", mutant.name);
            (mutant.name, suite.clause_id(clause), a, b)
        })
        .collect();
    print(&measured, seeds, cases);
}

type Row = (&'static str, String, Vec<u64>, Vec<u64>);

fn print(rows: &[Row], seeds: u64, cases: u64) {
    let shown = |of: &[u64]| match median(of) {
        n if n > cases => format!("> {cases}"),
        n => n.to_string(),
    };
    let found = |of: &[u64]| of.iter().filter(|n| **n <= cases).count();
    println!(
        "# 0004: How soon wrong stores are found\n\nWritten by `scripts/bench explore {seeds} {cases}`.\n"
    );
    println!(
        "{seeds} seeds, at most {cases} cases each. Median cases to the first finding; in brackets"
    );
    println!(
        "how many seeds found it. A12: how likely `explore` needs fewer cases, 0.5 is a draw.\n"
    );
    let (a, b) = calls_a_case(cases);
    println!(
        "A case of `explore` makes {a:.1} calls on average, a plain one {b:.1} (on the model).\n"
    );
    println!("| wrong store | of | explore | plain | A12 |");
    println!("|---|---|---:|---:|---:|");
    let (mut better, mut worse, mut never) = (0, 0, (0, 0));
    for (name, clause, a, b) in rows {
        let a12 = a12(a, b);
        better += usize::from(a12 > 0.71);
        worse += usize::from(a12 < 0.29);
        never.0 += usize::from(found(a) < a.len());
        never.1 += usize::from(found(b) < b.len());
        println!(
            "| {name} | {clause} | {} ({}) | {} ({}) | {a12:.2} |",
            shown(a),
            found(a),
            shown(b),
            found(b)
        );
    }
    let n = rows.len();
    println!(
        "\n{n} wrong stores: explore needs clearly fewer cases (A12 > 0.71) for {better}, clearly more"
    );
    println!(
        "(A12 < 0.29) for {worse}. Missed by at least one seed: {} by explore, {} by the plain way.",
        never.0, never.1
    );
    println!("\nNot looked for:\n\n| why | wrong stores |\n|---|---|");
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (suite, clause, mutant) in mutants() {
        if let Some(why) = unseen(suite, clause, mutant) {
            reasons.entry(why).or_default().push(mutant.name);
        }
    }
    for (why, names) in reasons {
        println!("| {why} | {} |", names.join(", "));
    }
}

/// How many calls a case makes on average, of ours and of the plain way, on the model.
fn calls_a_case(cases: u64) -> (f64, f64) {
    let mut bench = SimBench::new(SimTime::Caller, model);
    let ask =
        Ask { cases, seed: 1, single: true, several: true, stop_at_first: true, shrink_runs: 0 };
    let searched = search(&mut bench, &ask, &mut || true, &mut |_| {}).expect("a simulation");
    let mut plain = plain::Plain::new(1);
    let theirs: u64 = (1..=cases)
        .map(|case| run(&plain.script(), bench.fresh().expect("a simulation"), case).reached.calls)
        .sum();
    (searched.reached.calls as f64 / cases as f64, theirs as f64 / cases as f64)
}
