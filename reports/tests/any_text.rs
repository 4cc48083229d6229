//! Any text in any field: the reports stay well-formed, and the text is what the filters say.

mod common;

use std::collections::HashSet;

use common::{mount, record, row, step, xml};
use proptest::prelude::*;
use serde_json::json;
use storeproof_reports::record::{LaneCall, Lanes, Outcome, Record, Verdict};
use storeproof_reports::terminal::{self, Style};
use storeproof_reports::text::{terminal_text, xml_clean, xml_text, xml_text_within};
use storeproof_reports::{html, json as report, junit};

/// Text made of what breaks reports, with anything else between.
fn text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "\0",
        "\u{1b}",
        "\u{1b}[31m",
        "\u{1b}]0;",
        "\u{7}",
        "\u{9b}",
        "\u{9b}1m",
        "\u{9c}",
        "\\",
        "[0m",
        "\u{FFFE}",
        "\u{FFFF}",
        "]]>",
        "]]",
        ">",
        "<![CDATA[",
        "<!--",
        "-->",
        "</script>",
        "<script>",
        "</style>",
        "</pre>",
        "\"",
        "'",
        "`",
        "&",
        "&amp;",
        "&#27;",
        "&#x0;",
        "\r",
        "\n",
        "\r\n",
        "\t",
        " ",
        "\u{202e}",
        "\u{2066}",
        "\u{2028}",
        "\u{85}",
        "\u{7f}",
        "\u{feff}",
        "🙂",
        "👩\u{200d}👧",
        "e\u{301}",
        "日本",
        "%",
        "/",
        "%2F",
        ".",
        "{",
        "}",
        "… 5 bytes cut",
        "onerror=alert(1)",
    ]);
    let part = prop_oneof![
        4 => special.prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        1 => "[a-z]{1,12}",
    ];
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(Outcome::ALL.to_vec())
}

/// A record in which every text is foreign.
fn any_record() -> impl Strategy<Value = Record> {
    let rows =
        prop::collection::vec((text(), text(), outcome(), text(), text(), any::<u64>()), 1..5);
    (rows, prop::array::uniform6(text())).prop_map(|(rows, texts)| {
        let [name, version, kit, suite, face, reason] = texts;
        let mut ids = HashSet::new();
        let rows = rows
            .into_iter()
            .filter(|(id, ..)| ids.insert(id.clone()))
            .enumerate()
            .map(|(at, (id, message, outcome, other, replay, ms))| {
                let suite = if at % 2 == 0 { &suite } else { "mailbox/core" };
                let mut row = row(&id, suite, outcome, Some(&message));
                row.ms = ms;
                row.replay = Some(replay);
                row.lanes = Some(lanes(&message, &other));
                row.advisories = Some(vec![other.clone()]);
                let params = json!({"scope": message, "body": other, other.as_str(): [other]});
                row.steps = Some(vec![
                    step(1, &other, params, json!({"result": {message.as_str(): other}})),
                    step(2, &id, json!(other), json!({"fault": message})),
                    step(
                        3,
                        &id,
                        json!(null),
                        json!({"error": {"message": message, "code": other}}),
                    ),
                ]);
                row
            })
            .collect();
        let mut mounts = vec![mount(&suite, Verdict::Exempt, Some(&reason), 1)];
        mounts[0].face = Some(face);
        let mut record = record(&name, mounts, rows);
        record.subject.version = version;
        record.subject.language = Some(reason.clone());
        record.subject.capabilities = json!({reason.as_str(): kit});
        record.run.shard = Some(reason);
        record.kit = kit;
        record
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_is_done_after_one_pass(text in text()) {
        let clean = xml_clean(&text).into_owned();
        prop_assert_eq!(xml_clean(&clean).into_owned(), clean.clone());
        let shown = terminal_text(&text).into_owned();
        prop_assert_eq!(terminal_text(&shown).into_owned(), shown.clone());
        prop_assert!(shown.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')));
        // Plain text is never touched.
        let plain: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
        prop_assert_eq!(xml_clean(&plain).into_owned(), plain.clone());
    }

    #[test]
    fn junit_is_well_formed_and_says_what_the_filter_says(record in any_record()) {
        let root = xml::parse(&junit::write(&record));
        let cases = root.cases();
        prop_assert_eq!(cases.len(), record.clauses.len());
        let names: HashSet<_> =
            cases.iter().map(|case| (case.attribute("classname"), case.attribute("name"))).collect();
        prop_assert_eq!(names.len(), cases.len());
        for row in &record.clauses {
            let name = xml_clean(&row.id);
            let found: Vec<_> =
                cases.iter().filter(|case| case.attribute("name").starts_with(&*name)).collect();
            prop_assert!(name.is_empty() || !found.is_empty(), "no testcase {:?}", name);
        }
        // One suite after another, rows in order within: as the report groups them.
        let mut rows: Vec<_> = record.clauses.iter().collect();
        let first = record.mounts[0].suite.clone();
        rows.sort_by_key(|row| row.suite != first);
        for (row, case) in rows.iter().zip(&cases) {
            let message = row.message.as_deref().unwrap_or_default();
            let Some(result) = case.result() else {
                prop_assert_eq!(row.outcome, Outcome::Pass);
                continue;
            };
            if message.trim().is_empty() {
                continue;
            }
            prop_assert_eq!(result.attribute("message"), &*xml_text_within(message, 4096));
            if result.name == "skipped" {
                prop_assert_eq!(&result.text, &*xml_text(message));
            } else {
                let clean = xml_text(message);
                prop_assert!(result.text.starts_with(clean.trim_end_matches('\n')), "{:?}", result.text);
            }
        }
    }

    #[test]
    fn html_holds_no_foreign_markup(record in any_record()) {
        let page = html::write(&record);
        let texts = markup_is_ours(&page);
        for row in &record.clauses {
            let message = row.message.as_deref().unwrap_or_default();
            if row.outcome != Outcome::Pass && !message.trim().is_empty() {
                prop_assert!(texts.contains(&*terminal_text(message)), "{:?} is lost", message);
            }
        }
    }

    #[test]
    fn a_terminal_sees_our_colours_and_no_others(record in any_record(), width in 0_usize..140) {
        for verbose in [false, true] {
            let plain = terminal::render(&record, Style { color: false, verbose, width });
            prop_assert!(plain.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", plain);
            let disguise = plain.contains(['\u{202e}', '\u{2066}', '\u{2028}', '\u{feff}']);
            prop_assert!(!disguise, "{:?}", plain);
            let painted = terminal::render(&record, Style { color: true, verbose, width });
            let mut unpainted = painted.clone();
            for paint in ["1", "2", "32", "1;31", "33", "0"] {
                unpainted = unpainted.replace(&format!("\u{1b}[{paint}m"), "");
            }
            prop_assert!(!unpainted.contains('\u{1b}'), "{:?}", unpainted);
        }
    }

    #[test]
    fn json_reads_back(record in any_record()) {
        prop_assert_eq!(report::parse(&report::to_string(&record)).expect("our own report"), record);
    }
}

#[test]
fn the_samples_hold_no_foreign_markup() {
    for record in [common::calm(), common::zero(), common::hostile()] {
        markup_is_ours(&html::write(&record));
    }
}

/// Every tag and attribute of the page is one we write. Returns the page's text, unescaped.
fn markup_is_ours(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").expect("a style");
    let (_, rest) = rest.split_once("</style>").expect("the style's end");
    let (body, script) = rest.rsplit_once("<script>").expect("a script");
    let (_, end) = script.split_once("</script>").expect("the script's end");
    let head = head.strip_prefix("<!doctype html>").expect("a doctype");
    let mut text = String::new();
    for piece in [head, body, end] {
        assert!(!piece.contains('\0'));
        let mut rest = piece;
        while let Some((before, tag)) = rest.split_once('<') {
            assert!(!before.contains(['"', '\'', '>']) || piece == head, "unescaped: {before}");
            text.push_str(before);
            let (tag, after) = tag.split_once('>').expect("the tag's end");
            check_tag(tag);
            rest = after;
        }
        text.push_str(rest);
    }
    quick_xml::escape::unescape(&text).expect("our entities").into_owned()
}

const TAGS: [&str; 43] = [
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "section",
    "strong", "span", "code", "ul", "li", "ol", "div", "table", "thead", "tbody", "tr", "th", "td",
    "input", "label", "button", "output", "header", "a", "details", "summary", "pre", "bdi",
    "script", "em", "br", "svg", "g", "rect", "line", "text",
];
const ATTRIBUTES: [&str; 32] = [
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "id",
    "href",
    "title",
    "type",
    "value",
    "placeholder",
    "role",
    "hidden",
    "checked",
    "open",
    "scope",
    "data-o",
    "data-find",
    "data-do",
    "aria-label",
    "aria-hidden",
    "width",
    "height",
    "viewBox",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "rx",
];

fn check_tag(tag: &str) {
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(TAGS.contains(&name), "<{tag}>");
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        assert!(ATTRIBUTES.contains(&key) || key == "aria-live", "{key} in <{tag}>");
        rest = after;
        if let Some(value) = after.strip_prefix("=\"") {
            let (value, after) = value.split_once('"').expect("the value's end");
            assert!(key != "href" || value.starts_with('#'), "{value}");
            rest = after;
        }
    }
}

/// Two calls that overlap, with foreign words in every place.
fn lanes(one: &str, other: &str) -> Lanes {
    let call = |lane, start, end, bad| LaneCall {
        lane,
        start,
        end,
        of: other.to_owned(),
        label: one.to_owned(),
        answer: other.to_owned(),
        bad,
    };
    let rows = vec![call(0, 0, Some(2), false), call(1, 1, None, true)];
    Lanes { lanes: vec![one.to_owned(), other.to_owned()], rows }
}
