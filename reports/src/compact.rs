//! A call on one line, for people: generic over methods, short over values.
//!
//! The JSON report holds every value whole; here long ones are cut and say how long they were.

use serde_json::{Map, Value};

use crate::record::Step;
use crate::text::{floor_boundary, grouped, terminal_line, visible_line};

/// How much of a value is shown.
#[derive(Clone, Copy)]
pub(crate) struct Brevity {
    /// Bytes of a string.
    pub(crate) string_bytes: usize,
    /// Members of an object or an array.
    pub(crate) items: usize,
    /// Levels of nesting.
    pub(crate) levels: usize,
}

/// For a line of a terminal.
pub(crate) const SHORT: Brevity = Brevity { string_bytes: 48, items: 4, levels: 3 };
/// For a file that is searched rather than read.
pub(crate) const LONG: Brevity = Brevity { string_bytes: 1_024, items: 32, levels: 8 };

/// One call: what was asked and what came back.
pub(crate) struct Line {
    /// `mailbox/append default/alpha "m1" now=1000`
    pub(crate) asked: String,
    /// `seq 1`
    pub(crate) answered: String,
}

/// The calls of a case. A `store` that never changes is left out of every line.
pub(crate) fn lines(steps: &[Step], brevity: Brevity) -> Vec<Line> {
    let mut stores = steps.iter().filter_map(|step| step.params.get("store"));
    let first = stores.next();
    let one_store = stores.all(|store| Some(store) == first);
    steps.iter().map(|step| line(step, brevity, one_store)).collect()
}

fn line(step: &Step, brevity: Brevity, one_store: bool) -> Line {
    let mut asked = String::new();
    if let Some(process) = &step.process {
        asked = format!("{}: ", terminal_line(process));
    }
    asked.push_str(&terminal_line(&step.call));
    for word in params(&step.params, brevity, one_store) {
        asked.push(' ');
        asked.push_str(&word);
    }
    Line { asked, answered: answer(&step.answer, brevity) }
}

/// Params as words: the box as `scope/handle`, then the body bare, then `name=value`.
fn params(params: &Value, brevity: Brevity, one_store: bool) -> Vec<String> {
    let Value::Object(members) = params else {
        return if params.is_null() { Vec::new() } else { vec![short(params, brevity)] };
    };
    let mut words = Vec::new();
    let mut said: Vec<&str> = if one_store { vec!["store"] } else { Vec::new() };
    if let (Some(scope), Some(handle)) = (plain(members, "scope"), plain(members, "handle")) {
        words.push(format!("{scope}/{handle}"));
        said.extend(["scope", "handle"]);
    }
    if let Some(body) = members.get("body") {
        words.push(short(body, brevity));
        said.push("body");
    }
    let rest = members.iter().filter(|(name, _)| !said.contains(&name.as_str()));
    words.extend(rest.map(|(name, value)| format!("{}={}", key(name), short(value, brevity))));
    words
}

/// A string member that reads well without quotes.
fn plain<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = members.get(name)?.as_str()?;
    let reads = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    (!text.is_empty() && text.len() <= 40 && text.chars().all(reads)).then_some(text)
}

/// `seq 1`, `ok`, `null`, `refused lost_lease`, `fault: ...`.
fn answer(answer: &Value, brevity: Brevity) -> String {
    let member = |name| answer.get(name);
    if let Some(fault) = member("fault") {
        return format!("fault: {}", fault.as_str().map_or_else(|| short(fault, brevity), bare));
    }
    if let Some(error) = member("error") {
        return refusal(error, brevity);
    }
    match member("result") {
        Some(Value::Object(members)) if members.is_empty() => "ok".into(),
        Some(Value::Object(members)) if members.len() == 1 => {
            let mut one = members.iter();
            one.next().map_or_else(String::new, |(name, value)| {
                format!("{} {}", key(name), short(value, brevity))
            })
        }
        Some(Value::Object(members)) => named(members, brevity, brevity.levels),
        Some(value) => short(value, brevity),
        None => short(answer, brevity),
    }
}

fn refusal(error: &Value, brevity: Brevity) -> String {
    let mut text = match error.get("code") {
        Some(code) => format!("error {}", short(code, brevity)),
        None => "error".into(),
    };
    if let Some(reason) = error.pointer("/data/reason").and_then(Value::as_str) {
        text = format!("{text} {}", terminal_line(reason));
    }
    match error.get("message").and_then(Value::as_str) {
        Some(message) if !message.is_empty() => format!("{text}: {}", bare(message)),
        _ if error.is_object() => text,
        _ => format!("{text} {}", short(error, brevity)),
    }
}

/// Text that stands last on a line needs no quotes.
fn bare(text: &str) -> String {
    terminal_line(text.trim_end()).into_owned()
}

fn key(name: &str) -> String {
    elided(name, 40, |text| terminal_line(text).into_owned())
}

/// A value in one short line.
pub(crate) fn short(value: &Value, brevity: Brevity) -> String {
    nested(value, brevity, brevity.levels)
}

fn nested(value: &Value, brevity: Brevity, levels: usize) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => elided(text, brevity.string_bytes, quoted),
        Value::Array(items) if items.is_empty() => "[]".into(),
        Value::Object(members) if members.is_empty() => "{}".into(),
        Value::Array(items) if levels == 0 => format!("[… {} items]", grouped(items.len())),
        Value::Object(members) if levels == 0 => {
            format!("{{… {} members}}", grouped(members.len()))
        }
        Value::Array(items) => {
            let shown = items.iter().take(brevity.items);
            let mut words: Vec<String> =
                shown.map(|item| nested(item, brevity, levels - 1)).collect();
            push_rest(&mut words, items.len(), brevity);
            format!("[{}]", words.join(", "))
        }
        Value::Object(members) => format!("{{{}}}", named(members, brevity, levels)),
    }
}

fn named(members: &Map<String, Value>, brevity: Brevity, levels: usize) -> String {
    let mut words: Vec<String> = members
        .iter()
        .take(brevity.items)
        .map(|(name, value)| {
            format!("{}={}", key(name), nested(value, brevity, levels.saturating_sub(1)))
        })
        .collect();
    push_rest(&mut words, members.len(), brevity);
    words.join(" ")
}

fn push_rest(words: &mut Vec<String>, len: usize, brevity: Brevity) {
    if len > brevity.items {
        words.push(format!("… {} more", grouped(len - brevity.items)));
    }
}

/// As JSON quotes it, so exactly, and with nothing in it that could disguise the line.
fn quoted(text: &str) -> String {
    visible_line(&Value::from(text).to_string())
}

/// `text` through `form`; where it is too long its beginning, and how long it was.
fn elided(text: &str, bytes_max: usize, form: impl Fn(&str) -> String) -> String {
    if text.len() <= bytes_max {
        return form(text);
    }
    let head = &text[..floor_boundary(text, bytes_max / 2)];
    format!("{}… ({} bytes)", form(head), grouped(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(steps: &[(&str, Value, Value)]) -> Vec<String> {
        let steps: Vec<Step> = steps
            .iter()
            .zip(1..)
            .map(|((call, params, answer), n)| Step {
                n,
                process: None,
                call: (*call).into(),
                params: params.clone(),
                answer: answer.clone(),
            })
            .collect();
        let lines = lines(&steps, SHORT);
        lines.iter().map(|line| format!("{} -> {}", line.asked, line.answered)).collect()
    }

    #[test]
    fn a_call_reads_as_one_line() {
        let params = json!({"store": "s1", "scope": "default", "handle": "alpha", "body": "m1", "now": 1000});
        let claim = json!({"store": "s1", "scope": "", "handle": "a b", "max": null});
        let claimed = json!({"lease": "l1", "messages": [{"seq": 1, "body": "m1"}]});
        assert_eq!(
            shown(&[
                ("mailbox/append", params, json!({"result": {"seq": 1}})),
                ("mailbox/claim", claim, json!({"result": claimed})),
                ("store/close", json!({"store": "s1"}), json!({"result": {}})),
                ("mailbox/claim", json!({}), json!({"result": null})),
            ]),
            [
                r#"mailbox/append default/alpha "m1" now=1000 -> seq 1"#,
                r#"mailbox/claim scope="" handle="a b" max=null -> lease="l1" messages=[{seq=1 body="m1"}]"#,
                "store/close -> ok",
                "mailbox/claim -> null",
            ]
        );
    }

    #[test]
    fn stores_are_named_where_there_are_two() {
        let with = |store: &str| ("x", json!({"store": store}), json!({"result": true}));
        assert_eq!(
            shown(&[with("a"), with("b")]),
            ["x store=\"a\" -> true", "x store=\"b\" -> true"]
        );
    }

    #[test]
    fn refusals_and_faults_say_what_they_are() {
        let refused =
            json!({"error": {"code": -32001, "message": "gone", "data": {"reason": "lost_lease"}}});
        assert_eq!(
            shown(&[
                ("x", Value::Null, refused),
                ("x", Value::Null, json!({"error": "odd"})),
                ("x", Value::Null, json!({"fault": "no answer within 10 s\nkilled"})),
                ("x", json!([1]), json!("neither")),
            ]),
            [
                "x -> error -32001 lost_lease: gone",
                "x -> error \"odd\"",
                "x -> fault: no answer within 10 s␊killed",
                "x [1] -> \"neither\"",
            ]
        );
    }

    #[test]
    fn long_values_say_how_long_they_are() {
        let many: Vec<u32> = (0..1_000).collect();
        let lines = shown(&[(
            "x",
            json!({"body": "é".repeat(50_000), "list": many, "deep": [[[[[1]]]]]}),
            json!({"result": {}}),
        )]);
        assert_eq!(
            lines[0],
            "x \"éééééééééééé\"… (100,000 bytes) list=[0, 1, 2, 3, … 996 more] \
             deep=[[[[… 1 items]]]] -> ok"
        );
    }
}
