//! The JSON report: the record itself (`storeproof.report/1`).
//!
//! It reads back what it wrote and nothing else: another schema, counts that are not those of the
//! rows, or two rows with one id are refused.

use std::collections::HashSet;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::ReportError;
use crate::record::{Outcome, Record, SCHEMA, Summary};

/// The deepest nesting read back. The protocol lets an answer nest 1,100 levels, and a step adds a
/// few around it.
pub const LEVELS_MAX: usize = 1_200;

/// The largest seed: the largest integer that every JSON reader keeps exactly.
const SEED_MAX: u64 = (1 << 53) - 1;

/// The report as text, for people and programs: indented, members in the order of the record, one
/// line end at the end. The counts are taken from the rows.
#[must_use]
pub fn to_string(record: &Record) -> String {
    let record = Record { summary: Summary::of(&record.clauses), ..record.clone() };
    let mut text = serde_json::to_string_pretty(&record)
        .expect("a record holds only strings, numbers and JSON values, so it always serialises");
    text.push('\n');
    text
}

/// Reads a report back.
///
/// # Errors
/// Text that is no record of exactly this schema, or that contradicts itself.
pub fn parse(text: &str) -> Result<Record, ReportError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        schema: serde_json::Value,
    }
    check_depth(text)?;
    // The schema is looked at alone first: a later schema deserves its name in the message, not a
    // complaint about its third member.
    let head: Head = read(text)?;
    if head.schema != SCHEMA {
        let found = head.schema.as_str().map_or_else(|| head.schema.to_string(), str::to_owned);
        return Err(ReportError::Schema { found });
    }
    let record: Record = read(text)?;
    check(&record)?;
    Ok(record)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ReportError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    // `check_depth` has bounded the nesting; the built-in limit of 128 is below what a step may hold.
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Counts brackets outside strings, before anything recurses over them.
fn check_depth(text: &str) -> Result<(), ReportError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > LEVELS_MAX {
            return Err(ReportError::Depth { max: LEVELS_MAX });
        }
    }
    Ok(())
}

fn check(record: &Record) -> Result<(), ReportError> {
    let counted = Summary::of(&record.clauses);
    for outcome in Outcome::ALL {
        let (said, counted) = (record.summary.count(outcome), counted.count(outcome));
        if said != counted {
            return Err(ReportError::Summary { outcome: outcome.word(), said, counted });
        }
    }
    let mut ids = HashSet::new();
    if let Some(row) = record.clauses.iter().find(|row| !ids.insert(row.id.as_str())) {
        return Err(ReportError::DuplicateId { id: row.id.clone() });
    }
    if record.run.seed > SEED_MAX {
        let found = record.run.seed.to_string();
        return Err(ReportError::Member { what: "run.seed, which ends at 2^53-1,", found });
    }
    if OffsetDateTime::parse(&record.run.started, &Rfc3339).is_err() {
        let found = record.run.started.clone();
        return Err(ReportError::Member { what: "run.started, an RFC 3339 time,", found });
    }
    Ok(())
}
