//! The JSON report reads back what it wrote, and nothing that contradicts itself.

mod common;

use serde_json::{Value, json};
use storeproof_reports::{ReportError, html, json as report, junit, terminal};

/// The calm report with `change` made to it.
fn changed(change: impl Fn(&mut Value)) -> Result<storeproof_reports::record::Record, ReportError> {
    let mut value: Value =
        serde_json::from_str(&report::to_string(&common::calm())).expect("our own JSON");
    change(&mut value);
    report::parse(&value.to_string())
}

#[test]
fn it_reads_back_what_it_wrote() {
    for record in [common::calm(), common::zero(), common::hostile()] {
        assert_eq!(report::parse(&report::to_string(&record)).expect("our own report"), record);
    }
}

#[test]
fn the_counts_are_those_of_the_rows() {
    let mut record = common::calm();
    record.summary.pass = 99;
    let text = report::to_string(&record);
    assert_eq!(report::parse(&text).expect("our own report").summary, common::calm().summary);
    let summary: Value = serde_json::from_str::<Value>(&text).expect("JSON")["summary"].clone();
    assert_eq!(summary.as_object().expect("an object").len(), 9, "zeros are written too");
    let error = changed(|value| value["summary"]["pass"] = json!(3)).expect_err("a wrong count");
    assert_eq!(
        error.to_string(),
        "the summary does not match the rows: it says 3 pass, the rows hold 4"
    );
}

#[test]
fn another_schema_is_refused_by_name() {
    for (schema, named) in [
        (json!("storeproof.report/2"), "storeproof.report/2"),
        (json!(null), "null"),
        (json!(["storeproof.report/1"]), "[\"storeproof.report/1\"]"),
    ] {
        let error = changed(|value| value["schema"] = schema.clone()).expect_err("another schema");
        assert!(matches!(&error, ReportError::Schema { found } if found == named), "{error}");
    }
    // Whatever else a later schema changes, its name is what the message is about.
    let later = report::parse(r#"{"schema": "storeproof.report/9", "clauses": 7}"#);
    assert!(matches!(later, Err(ReportError::Schema { .. })));
    assert!(matches!(report::parse("{}"), Err(ReportError::Schema { .. })));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let twice = changed(|value| value["clauses"][1]["id"] = value["clauses"][0]["id"].clone());
    assert!(matches!(twice, Err(ReportError::DuplicateId { .. })));
    let seed = changed(|value| value["run"]["seed"] = json!(1_u64 << 53));
    assert!(matches!(seed, Err(ReportError::Member { .. })));
    let started = changed(|value| value["run"]["started"] = json!("yesterday"));
    assert!(matches!(started, Err(ReportError::Member { .. })));
    let outcome = changed(|value| value["clauses"][0]["outcome"] = json!("skipped"));
    assert!(matches!(outcome, Err(ReportError::Json(_))));
    for broken in ["", "[]", "{", "null", "{\"schema\": \"storeproof.report/1\"}"] {
        assert!(report::parse(broken).is_err(), "{broken}");
    }
    let text = report::to_string(&common::calm());
    assert!(report::parse(&format!("{text}{{}}")).is_err(), "two reports in one file");
}

#[test]
fn every_form_bears_the_deepest_answer() {
    let mut deep = json!("bottom");
    for level in 0..1_100 {
        deep = if level % 2 == 0 { json!([deep]) } else { json!({ "m": deep }) };
    }
    let mut record = common::hostile();
    record.clauses[1].steps =
        Some(vec![common::step(1, "x", deep.clone(), json!({"result": deep}))]);
    let text = report::to_string(&record);
    assert_eq!(report::parse(&text).expect("our own report"), record);
    let style = terminal::Style { color: false, verbose: true, width: 80 };
    for drawn in [junit::write(&record), html::write(&record), terminal::render(&record, style)] {
        assert!(drawn.contains("… 1 items") || drawn.contains("… 1 members"));
    }

    let bomb = "[".repeat(200_000);
    assert!(matches!(report::parse(&bomb), Err(ReportError::Depth { .. })));
    // Brackets in strings are text.
    let mut record = common::calm();
    record.clauses[0].message = Some("[{\\\"".repeat(10_000));
    assert_eq!(report::parse(&report::to_string(&record)).expect("our own report"), record);
}
