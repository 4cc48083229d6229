//! The page of all clauses, `docs/CLAUSES.md`, drawn from the registry.

use crate::suite::{Tier, suites};
use std::fmt::Write as _;

/// The whole page as Markdown.
#[must_use]
pub fn clauses() -> String {
    let mut page = String::from(
        "<!-- Generated from the registry by scripts/regenerate; do not edit. -->\n\n# Clauses\n\n\
         Every promise that storeproof judges. An id is forever: a clause may be added or retired, never\n\
         renamed into another meaning. `storeproof explain ID` prints one of them.\n",
    );
    for suite in suites() {
        let tier = match suite.tier {
            Tier::T1 => "T1: every store of the family owes it",
            Tier::T2 => "T2: owed by those that declare the capability",
        };
        let needs: Vec<String> =
            suite.needs.iter().map(|need| format!("`{}`", need.word())).collect();
        let _ = writeln!(page, "\n## {}\n\n{}.\n", suite.id, capitalised(suite.about));
        let _ = writeln!(page, "{tier}. Needs {}.\n", needs.join(", "));
        let _ = writeln!(page, "What passing it does not prove: {}.", suite.ceiling);
        for clause in suite.clauses {
            let _ = writeln!(page, "\n### {}\n\n{}\n", suite.clause_id(clause), clause.statement);
            if let Some(need) = clause.needs {
                let _ = writeln!(page, "Only for subjects that declare `{}`.\n", need.word());
            }
            let _ = writeln!(page, "*Why it matters.* {}\n", clause.why);
            for (n, step) in (1..).zip(clause.steps) {
                let _ = writeln!(page, "{n}. {step}");
            }
            let _ = writeln!(page, "\nWrong stores that it catches:\n");
            for mutant in clause.mutants {
                let _ = writeln!(page, "- `{}` {}", mutant.name, mutant.fault);
            }
            if let Some(reason) = clause.never_sole {
                let _ = writeln!(page, "\nNever the only clause to catch one: {reason}");
            }
        }
    }
    page
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
