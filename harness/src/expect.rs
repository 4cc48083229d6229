//! The `--expect` file: failures that are known, each with its reason. A line that matches nothing is
//! a mistake, and a line whose clause stops failing is a finding.

use crate::pattern::Pattern;
use crate::plan::{PlanError, all_ids, no_match};
use serde::Deserialize;
use std::path::Path;
use storeproof_reports::record::Outcome;

/// The expected failures of one subject.
#[derive(Debug, Default)]
pub struct Expectations(Vec<Expectation>);

#[derive(Debug)]
struct Expectation {
    pattern: Pattern,
    reason: String,
    issue: Option<String>,
}

/// Why an `--expect` file is not taken; exit 2.
#[derive(Debug, thiserror::Error)]
pub enum ExpectError {
    /// It cannot be read.
    #[error("--expect {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the machine said.
        source: std::io::Error,
    },
    /// It is not a list of `[[expect]]` tables.
    #[error("--expect {path} is not a list of [[expect]] tables with clause and reason: {message}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong and where.
        message: String,
    },
    /// A line matches nothing.
    #[error("--expect {path}: {source}")]
    NoMatch {
        /// The file.
        path: String,
        /// Which line.
        source: PlanError,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    expect: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    clause: String,
    reason: String,
    issue: Option<String>,
}

impl Expectations {
    /// Reads an `--expect` file and holds each line against the whole plan, before filter and shard.
    ///
    /// # Errors
    /// See [`ExpectError`].
    pub fn read(path: &Path) -> Result<Self, ExpectError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ExpectError::Unreadable { path: shown.clone(), source })?;
        Self::parse(&text, &shown)
    }

    fn parse(text: &str, path: &str) -> Result<Self, ExpectError> {
        let malformed = |message: String| ExpectError::Malformed { path: path.to_owned(), message };
        let file: File = toml::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let mut lines = Vec::new();
        for line in file.expect {
            if line.reason.trim().is_empty() {
                return Err(malformed(format!("the reason of {} is empty", line.clause)));
            }
            let pattern = Pattern::new(&line.clause);
            if !all_ids().any(|id| pattern.takes(&id)) {
                let source = no_match("the line for", &pattern, "clauses");
                return Err(ExpectError::NoMatch { path: path.to_owned(), source });
            }
            lines.push(Expectation { pattern, reason: line.reason, issue: line.issue });
        }
        Ok(Self(lines))
    }

    /// What a judged outcome becomes in the light of these expectations, and the reason to show.
    #[must_use]
    pub fn apply(&self, id: &str, outcome: Outcome) -> (Outcome, Option<String>) {
        let Some(line) = self.0.iter().find(|line| line.pattern.takes(id)) else {
            return (outcome, None);
        };
        let reason = match &line.issue {
            Some(issue) => format!("{} ({issue})", line.reason),
            None => line.reason.clone(),
        };
        match outcome {
            Outcome::Fail => (Outcome::ExpectedFail, Some(format!("expected: {reason}"))),
            Outcome::Pass | Outcome::Tolerated => {
                let said = format!(
                    "expected to fail, and it did not; take the line out of the --expect file: {reason}"
                );
                (Outcome::UnexpectedPass, Some(said))
            }
            // Not judged: the expectation is neither met nor refuted.
            Outcome::Error
            | Outcome::ExpectedFail
            | Outcome::UnexpectedPass
            | Outcome::Exempt
            | Outcome::NotDeclared
            | Outcome::NotRun => (outcome, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[expect]]
        clause = "mailbox/core/claim-fences"
        reason = "leases each message, not the box"
        issue = "example/queue#1"
    "#;

    #[test]
    fn only_a_fail_satisfies_an_expectation() {
        let expected = Expectations::parse(FILE, "e.toml").unwrap();
        let id = "mailbox/core/claim-fences";
        assert_eq!(expected.apply(id, Outcome::Fail).0, Outcome::ExpectedFail);
        assert_eq!(expected.apply(id, Outcome::Pass).0, Outcome::UnexpectedPass);
        assert_eq!(expected.apply(id, Outcome::Error).0, Outcome::Error);
        assert_eq!(expected.apply(id, Outcome::NotDeclared).0, Outcome::NotDeclared);
        assert_eq!(expected.apply("mailbox/core/fifo", Outcome::Fail), (Outcome::Fail, None));
    }

    #[test]
    fn mistakes_in_the_file_are_told() {
        let no_reason = "[[expect]]\nclause = \"mailbox/core/fifo\"";
        let unknown_key = "[[expect]]\nclause = \"mailbox\"\nreason = \"r\"\nwhy = \"w\"";
        let empty_reason = "[[expect]]\nclause = \"mailbox\"\nreason = \" \"";
        for text in [no_reason, unknown_key, empty_reason, "expect = 3", "not toml ="] {
            assert!(
                matches!(Expectations::parse(text, "e.toml"), Err(ExpectError::Malformed { .. })),
                "{text}"
            );
        }
        let stale = "[[expect]]\nclause = \"mailbox/core/no-such\"\nreason = \"r\"";
        assert!(matches!(Expectations::parse(stale, "e.toml"), Err(ExpectError::NoMatch { .. })));
    }
}
