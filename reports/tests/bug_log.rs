//! What public reporters have got wrong (`B6-…` of the project's bug log), in our own records.

mod common;

use common::{mount, record, row, xml};
use storeproof_reports::json;
use storeproof_reports::junit;
use storeproof_reports::record::{Outcome, Record, Verdict};

const SUITE: &str = "store/read";

fn one(outcome: Outcome, message: Option<&str>) -> Record {
    let rows = vec![row("store/read/c1", SUITE, outcome, message)];
    record("s", vec![mount(SUITE, Verdict::Mounted, None, 1)], rows)
}

fn failure_text(message: &str) -> (String, String) {
    let root = xml::parse(&junit::write(&one(Outcome::Fail, Some(message))));
    let result = root.cases()[0].result().expect("a failure");
    assert_eq!(result.name, "failure");
    (result.attribute("message").to_owned(), result.text.clone())
}

/// B6-01: a coloured failure text; no parser reads the report.
#[test]
fn escape_sequences_do_not_break_the_report() {
    let (message, text) = failure_text("want 1\n\u{1b}[31mgot 2\u{1b}[0m\u{1b}[2Kprogress");
    assert_eq!(message, "want 1\ngot 2progress");
    assert!(text.starts_with("want 1\ngot 2progress"), "{text}");
}

/// B6-04: `]]>` ends the CDATA section early.
#[test]
fn ends_of_cdata_are_text() {
    for hostile in ["expected ]]> but was <![CDATA[x]]>", "]]>]]>", "]]", "<![CDATA["] {
        let (message, text) = failure_text(hostile);
        assert_eq!(message, hostile);
        assert!(text.starts_with(hostile), "{text}");
    }
}

/// B6-05, B6-13, B6-14: times with a comma, an exponent, none, or an empty one.
#[test]
fn times_have_a_dot_and_three_digits() {
    let mut record = one(Outcome::Pass, None);
    for (ms, time) in [
        (160, "0.160"),
        (0, "0.000"),
        (1, "0.001"),
        (1_234_567, "1234.567"),
        (u64::MAX, "1000000000.000"),
    ] {
        record.clauses[0].ms = ms;
        let root = xml::parse(&junit::write(&record));
        assert_eq!(root.cases()[0].attribute("time"), time);
        assert_eq!(root.children[0].attribute("time"), time);
    }
    let skipped = xml::parse(&junit::write(&one(Outcome::NotRun, None)));
    assert_eq!(skipped.cases()[0].attribute("time"), "0.003");
}

/// B6-07: of two results with one name a dashboard keeps the last.
#[test]
fn names_are_unique_whatever_the_rows_say() {
    let mut twice = one(Outcome::Fail, Some("m"));
    twice.clauses.push(row("store/read/c1", SUITE, Outcome::Pass, None));
    twice.clauses.push(row("store/read/c1", "store/other", Outcome::Pass, None));
    let root = xml::parse(&junit::write(&twice));
    let names: Vec<&str> = root.cases().iter().map(|case| case.attribute("name")).collect();
    assert_eq!(names, ["store/read/c1", "store/read/c1#2", "store/read/c1#3"]);
    assert!(json::parse(&json::to_string(&twice)).is_err());
}

/// B6-10: no case at all must not look like success, nor be a suite without cases.
#[test]
fn an_empty_run_says_so() {
    for record in [common::zero(), record("s", Vec::new(), Vec::new())] {
        let root = xml::parse(&junit::write(&record));
        let cases = root.cases();
        assert_eq!(cases.len(), 1);
        let result = cases[0].result().expect("an error");
        assert_eq!((result.name.as_str(), result.attribute("type")), ("error", "NothingJudged"));
        assert!(result.text.contains("no case at all"), "{}", result.text);
    }
    assert!(junit::write(&common::zero()).contains("refused: want 1"));
}

/// B6-11: 12 MiB of output; a consumer gives up at 10 MB.
#[test]
fn floods_are_cut_and_say_so() {
    let flood = "line of output\n".repeat(12 * 1024 * 1024 / 15);
    let mut record = one(Outcome::Error, Some(&flood));
    record.clauses[0].replay = Some("storeproof replay it.json memory".into());
    let xml_text = junit::write(&record);
    assert!(xml_text.len() < 100_000, "{}", xml_text.len());
    let root = xml::parse(&xml_text);
    let text = &root.cases()[0].result().expect("an error").text;
    assert!(text.contains("of 12,582,9") && text.contains(" bytes cut here"), "no note");
    assert!(
        text.ends_with("Replay: storeproof replay it.json memory\n"),
        "the replay line is gone"
    );
}

/// B6-12: at most one result child, and counts that are those of the elements.
#[test]
fn one_result_a_case_and_counts_of_the_elements() {
    let record = common::hostile();
    let root = xml::parse(&junit::write(&record));
    assert_eq!(root.attributes.len(), 1, "the root carries a name and no counts");
    let mut seen = [0; 4];
    for suite in root.children("testsuite") {
        let cases: Vec<_> = suite.children("testcase").collect();
        let of = |kind: &str| {
            cases
                .iter()
                .filter(|case| case.result().is_some_and(|child| child.name == kind))
                .count()
        };
        let counted = [cases.len(), of("failure"), of("error"), of("skipped")];
        let said = ["tests", "failures", "errors", "skipped"].map(|name| suite.count(name));
        assert_eq!(said, counted);
        for (sum, count) in seen.iter_mut().zip(counted) {
            *sum += count;
        }
    }
    let summary = record.summary;
    let skipped = summary.tolerated
        + summary.expected_fail
        + summary.exempt
        + summary.not_declared
        + summary.not_run;
    assert_eq!(
        seen,
        [record.clauses.len(), summary.fail + summary.unexpected_pass, summary.error, skipped]
    );
}

/// B6-14: never an empty attribute; a skipped case gives its reason twice.
#[test]
fn nothing_is_empty() {
    fn walk(element: &xml::Element) {
        for (name, value) in &element.attributes {
            assert!(!value.is_empty(), "{name} of {} is empty", element.name);
        }
        element.children.iter().for_each(walk);
    }
    let mut bare = one(Outcome::NotDeclared, None);
    bare.subject.name = String::new();
    bare.subject.version = String::new();
    bare.clauses.push(row("", "", Outcome::Exempt, Some("")));
    bare.mounts[0].verdict = Verdict::NotDeclared;
    bare.mounts[0].reason = Some("does not declare `read`".into());
    let root = xml::parse(&junit::write(&bare));
    walk(&root);
    let result = root.cases()[0].result().expect("skipped");
    assert_eq!(result.attribute("message"), "does not declare `read`");
    assert_eq!(result.text, "does not declare `read`");
}

/// B6-16: names with markup, line ends, emoji, 600 characters, leading spaces.
#[test]
fn names_survive_a_parse() {
    let names = ["a<b>&\"c'", "x\ny\tz\r", &"🙂".repeat(600), "  lead", "trail  ", "é\u{301}"];
    let mut record = one(Outcome::Pass, None);
    record.clauses = names.iter().map(|name| row(name, SUITE, Outcome::Pass, None)).collect();
    let root = xml::parse(&junit::write(&record));
    let seen: Vec<&str> = root.cases().iter().map(|case| case.attribute("name")).collect();
    assert_eq!(seen, names);
}

/// B6-18: a timestamp on each suite, in UTC, without zone and fraction.
#[test]
fn timestamps_are_plain_utc() {
    let mut record = common::hostile();
    for (started, stamp) in [
        ("2026-11-30T15:21:36Z", "2026-11-30T15:21:36"),
        ("2026-11-30T15:21:36.987654+02:00", "2026-11-30T13:21:36"),
        ("not a time", "1970-01-01T00:00:00"),
    ] {
        record.run.started = started.into();
        let root = xml::parse(&junit::write(&record));
        assert!(root.children.iter().all(|suite| suite.attribute("timestamp") == stamp));
    }
}
