//! The JUnit report: the dialect that dashboards agree on, whatever an adapter printed.
//!
//! `junit-report` builds the document, behind two guards: names and messages go through the XML 1.0
//! filter of [`crate::text`], and element text goes in already escaped, so that its CDATA sections
//! can be unwrapped as they are. The pass in `dialect` then adds what the crate lacks.
//!
//! Decisions where the command-line page is silent:
//!
//! - `classname` is `storeproof.<subject>.<suite>` with the suite id as it is (`mailbox/core`). In the
//!   subject's name `.`, `/`, `%` and control characters are percent-encoded, as in case ids, so two
//!   subjects never share a class and a dot never makes a package. No name reads `unnamed`.
//! - A name longer than 4 KiB keeps its head and the SHA-256 of the whole: unique and stable. Should
//!   two rows still share a name, the later gets `#2`: a dashboard would show only one of them.
//! - `type=` is the outcome word in camel case: `Fail`, `UnexpectedPass`, `NotDeclared`, ...
//! - `message=` is a headline of at most 4 KiB; the element's text holds up to 64 KiB, less where a
//!   file would pass 16 MiB. The replay line stays whole unless it alone is over half of that.
//! - A record without rows gets one `error` testcase that says so. It is in no JSON row.
//! - Advisories of a row that passed are its `system-out`.

use std::collections::HashSet;

use junit_report::{Duration, OffsetDateTime, ReportBuilder, TestCase, TestResult, TestSuite};
use quick_xml::escape::partial_escape;
use time::format_description::well_known::Rfc3339;

use crate::compact;
use crate::record::{Outcome, Record, Row};
use crate::text::{TEXT_BYTES_MAX, grouped, xml_clean, xml_text_within};
use crate::view::{self, NAME_BYTES_MAX, Suite};

mod dialect;

use dialect::Extras;

/// The longest `message=`: a headline, not the story.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// All element texts of one file together. GitLab takes files below 30 MB.
const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// However many texts there are, each keeps this much.
const TEXT_BYTES_MIN: usize = 1024;
/// The longest case we believe, about 30 years: sums of it overflow nothing.
const CASE_MS_MAX: u64 = 1_000_000_000_000;
/// Lines of a transcript shown at its start and at its end.
const STEPS_SHOWN: usize = 200;

/// The record as JUnit XML, in UTF-8, ending in a line end. The counts are those of the rows.
#[must_use]
pub fn write(record: &Record) -> String {
    draw(record).unwrap_or_else(|why| dialect::broken(&root_name(record), &why))
}

fn draw(record: &Record) -> Result<String, String> {
    let mut taken = HashSet::new();
    let limit = text_limit(record);
    let mut suites: Vec<(TestSuite, Extras)> = view::suites(record)
        .iter()
        .filter(|suite| !suite.rows.is_empty())
        .map(|suite| draw_suite(record, suite, limit, &mut taken))
        .collect();
    if suites.is_empty() {
        suites.push(nothing_judged(record));
    }
    let (suites, extras): (Vec<TestSuite>, Vec<Extras>) = suites.into_iter().unzip();
    let mut xml = Vec::new();
    let report = ReportBuilder::new().add_testsuites(suites).build();
    report.write_xml(&mut xml).map_err(|error| error.to_string())?;
    dialect::finish(&xml, &root_name(record), &extras)
}

fn draw_suite(
    record: &Record,
    suite: &Suite<'_>,
    limit: usize,
    taken: &mut HashSet<String>,
) -> (TestSuite, Extras) {
    let class = class_name(&record.subject.name, suite.id);
    let mut drawn = new_suite(record, suite.id);
    for row in &suite.rows {
        let time = Duration::milliseconds(row.ms.min(CASE_MS_MAX).cast_signed());
        let mut case = TestCase::success(&view::unique(taken, name(&row.id)), time);
        case.set_classname(&class);
        case.result = result(record, row, limit);
        if let (TestResult::Success, Some(advisories)) = (&case.result, advisories(row)) {
            case.set_system_out(&escaped(&xml_text_within(&advisories, limit)));
        }
        drawn.add_testcase(case);
    }
    let extras = Extras { skipped: drawn.skipped(), properties: properties(record) };
    (drawn, extras)
}

fn new_suite(record: &Record, id: &str) -> TestSuite {
    let mut suite = TestSuite::new(&name(id));
    let started = OffsetDateTime::parse(&record.run.started, &Rfc3339);
    suite.set_timestamp(
        started.unwrap_or(OffsetDateTime::UNIX_EPOCH).to_offset(time::UtcOffset::UTC),
    );
    suite
}

/// One explicit case that says why there is no other: an empty file looks like success.
fn nothing_judged(record: &Record) -> (TestSuite, Extras) {
    let mut text = String::from("nothing was judged: this run has no case at all");
    for mount in &record.mounts {
        let reason = mount.reason.as_deref().unwrap_or("no reason was recorded");
        let verdict = view::verdict_word(mount.verdict);
        text.push_str(&format!("\n{}: {verdict}: {reason}", view::mount_name(mount)));
    }
    let mut case = TestCase::success("storeproof/nothing-judged", Duration::ZERO);
    case.set_classname(&class_name(&record.subject.name, "storeproof"));
    let (message, cause) = told(&text, text.clone(), TEXT_BYTES_MAX);
    case.result = TestResult::Error { type_: "NothingJudged".into(), message, cause };
    let mut suite = new_suite(record, "storeproof");
    suite.add_testcase(case);
    (suite, Extras { skipped: 0, properties: properties(record) })
}

/// The one result child of a case.
fn result(record: &Record, row: &Row, limit: usize) -> TestResult {
    let type_ = camel(row.outcome.word());
    match row.outcome {
        Outcome::Pass => TestResult::Success,
        Outcome::Fail | Outcome::UnexpectedPass => {
            let (message, cause) =
                told(&view::message(record, row), story(record, row, limit), limit);
            TestResult::Failure { type_, message, cause }
        }
        Outcome::Error => {
            let (message, cause) =
                told(&view::message(record, row), story(record, row, limit), limit);
            TestResult::Error { type_, message, cause }
        }
        Outcome::Tolerated
        | Outcome::ExpectedFail
        | Outcome::Exempt
        | Outcome::NotDeclared
        | Outcome::NotRun => {
            let reason = view::message(record, row).into_owned();
            let (message, cause) = told(&reason.clone(), reason, limit);
            TestResult::SkippedWithCause { type_, message, cause }
        }
    }
}

/// A headline for `message=` and the text of the element.
fn told(message: &str, text: String, limit: usize) -> (String, Option<String>) {
    let headline = xml_text_within(message, MESSAGE_BYTES_MAX.min(limit)).into_owned();
    (headline, Some(escaped(&xml_text_within(&text, limit))))
}

/// What was promised and seen, the numbered calls, and the line that runs it again.
fn story(record: &Record, row: &Row, limit: usize) -> String {
    let mut text = view::message(record, row).into_owned();
    if let Some(steps) = row.steps.as_deref().filter(|steps| !steps.is_empty()) {
        text.push_str("\n\nSteps:\n");
        let lines = compact::lines(steps, compact::LONG);
        for (at, (step, line)) in steps.iter().zip(&lines).enumerate() {
            if at >= STEPS_SHOWN && at + STEPS_SHOWN < steps.len() {
                if at == STEPS_SHOWN {
                    let hidden = steps.len() - 2 * STEPS_SHOWN;
                    text.push_str(&format!(
                        "… {} steps are in the JSON report …\n",
                        grouped(hidden)
                    ));
                }
                continue;
            }
            text.push_str(&format!("{}. {} -> {}\n", step.n, line.asked, line.answered));
        }
    }
    let mut tail = String::new();
    if let Some(advisories) = advisories(row) {
        tail.push_str(&format!("\n{advisories}"));
    }
    if let Some(replay) = &row.replay {
        tail.push_str(&format!("\nReplay: {replay}\n"));
    }
    // The tail is cut last: the replay line is what the reader needs most.
    let tail = xml_text_within(&tail, limit / 2);
    let head = xml_text_within(&text, limit.saturating_sub(tail.len()));
    format!("{}\n{tail}", head.trim_end_matches('\n'))
}

fn advisories(row: &Row) -> Option<String> {
    let advisories = row.advisories.as_deref().filter(|lines| !lines.is_empty())?;
    Some(advisories.iter().map(|line| format!("Advisory: {line}\n")).collect())
}

/// Text that goes into a CDATA section of `junit-report`: escaped here, so it cannot end the section,
/// and unwrapped by `dialect`.
fn escaped(text: &str) -> String {
    partial_escape(text).replace('\r', "&#13;")
}

/// How long one text may be, so that all of them fit into one file.
fn text_limit(record: &Record) -> usize {
    let sizes: Vec<usize> = record
        .clauses
        .iter()
        .filter(|row| row.outcome != Outcome::Pass || row.advisories.is_some())
        .map(rough_size)
        .collect();
    let mut limit = TEXT_BYTES_MAX;
    while limit > TEXT_BYTES_MIN
        && sizes.iter().map(|size| size.min(&limit)).sum::<usize>() > FILE_BYTES_MAX
    {
        limit /= 2;
    }
    limit
}

/// About how much a row has to tell, without drawing it. The message counts twice: it is also
/// `message=`.
fn rough_size(row: &Row) -> usize {
    let steps = row.steps.as_deref().map_or(0, <[_]>::len) * 256;
    let advisories: usize = row.advisories.iter().flatten().map(String::len).sum();
    let message = row.message.as_deref().map_or(0, str::len);
    2 * message + steps + advisories + row.replay.as_deref().map_or(0, str::len)
}

fn root_name(record: &Record) -> String {
    name(format!("storeproof {}", record.subject.name).trim_end())
}

fn class_name(subject: &str, suite: &str) -> String {
    let odd = |c: char| matches!(c, '.' | '/' | '%') || c.is_control();
    let subject = match view::encode(subject, odd) {
        empty if empty.is_empty() => "unnamed".into(),
        subject => subject,
    };
    format!("storeproof.{}.{}", name(&subject), name(suite))
}

/// A name as XML can carry it: unchanged wherever that is possible, never empty.
fn name(text: &str) -> String {
    match view::shortened(&xml_clean(text)) {
        name if name.is_empty() => "unnamed".into(),
        name => name,
    }
}

/// `not-declared` as `NotDeclared`.
fn camel(word: &str) -> String {
    word.split('-')
        .map(|part| {
            let (first, rest) = part.split_at(1.min(part.len()));
            first.to_ascii_uppercase() + rest
        })
        .collect()
}

/// Who, what and with which seed, and every mount verdict: the same on each suite, as dashboards that
/// split a file keep only the suite. Nothing empty.
fn properties(record: &Record) -> Vec<(String, String)> {
    let (subject, run) = (&record.subject, &record.run);
    let mut list = vec![
        ("schema".to_owned(), record.schema.clone()),
        ("storeproof.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("kit".to_owned(), record.kit.clone()),
        ("seed".to_owned(), run.seed.to_string()),
        ("started".to_owned(), run.started.clone()),
        ("duration_ms".to_owned(), run.duration_ms.to_string()),
        ("shard".to_owned(), run.shard.clone().unwrap_or_default()),
        ("subject.name".to_owned(), subject.name.clone()),
        ("subject.version".to_owned(), subject.version.clone()),
        ("subject.language".to_owned(), subject.language.clone().unwrap_or_default()),
        ("subject.capabilities".to_owned(), subject.capabilities.to_string()),
    ];
    list.extend(subject.limits.iter().map(|limits| ("subject.limits".into(), limits.to_string())));
    list.extend(record.mounts.iter().map(|mount| {
        let verdict = view::verdict_word(mount.verdict);
        let value = match &mount.reason {
            Some(reason) => format!("{verdict}: {reason}"),
            None => verdict.to_owned(),
        };
        (format!("mount: {}", view::mount_name(mount)), value)
    }));
    list.retain(|(_, value)| !value.is_empty());
    list.into_iter()
        .map(|(key, value)| (name(&key), xml_text_within(&value, NAME_BYTES_MAX).into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_tell_subjects_apart() {
        let of = |subject| class_name(subject, "mailbox/core");
        assert_eq!(of("memory"), "storeproof.memory.mailbox/core");
        assert_eq!(of("a.b"), "storeproof.a%2Eb.mailbox/core");
        assert_eq!(of("a/b%2E\n"), "storeproof.a%2Fb%252E%0A.mailbox/core");
        assert_eq!(of(""), "storeproof.unnamed.mailbox/core");
        assert_eq!(of("plain job"), "storeproof.plain job.mailbox/core");
    }

    #[test]
    fn long_names_stay_apart() {
        let long = "n".repeat(10_000);
        let (one, two) = (name(&format!("{long}1")), name(&format!("{long}2")));
        assert!(one != two && one.len() <= NAME_BYTES_MAX);
        assert_eq!(name(&"🙂".repeat(600)), "🙂".repeat(600));
    }

    #[test]
    fn types_are_outcome_words() {
        assert_eq!(camel("unexpected-pass"), "UnexpectedPass");
        assert_eq!(camel("fail"), "Fail");
    }
}
