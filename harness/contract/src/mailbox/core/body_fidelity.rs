//! What goes in comes out equal, whatever JSON it is.

use crate::clause::{Clause, Mutant};
use crate::json::{Json, excerpt, same};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use serde_json::json;

/// How deep the nested body is, in levels.
const DEPTH: usize = 64;
/// How long the long string is, in characters (and bytes).
const LONG_CHARS: usize = 1 << 20;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "body-fidelity",
    at: file!(),
    statement: "A body comes back equal to what was appended: numbers as doubles, strings character by character, objects with every member.",
    why: "A store that changes a body a little (drops a null, normalises an accent, cuts at a NUL) corrupts what agents tell each other, and nobody is told.",
    steps: &[
        "for each body: append it; a loud refusal is only an advisory",
        "claim it: the delivered body equals it; ack it",
        "the bodies: empty object, array, string; null, booleans; 2^53-1, -0.5, 1e-7; U+0000; U+2028; an emoji beyond the BMP; combining marks; keys __proto__ and \"\"; null members; 64 levels; 1 MiB",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "cuts-at-nul",
            fault: "ends a string at its first U+0000",
            make: subject::<CutsAtNul>,
        },
        Mutant {
            name: "composes-accents",
            fault: "replaces a letter and its combining accent by one character",
            make: subject::<ComposesAccents>,
        },
        Mutant {
            name: "drops-null-members",
            fault: "leaves out members that are null",
            make: subject::<DropsNullMembers>,
        },
        Mutant {
            name: "drops-proto-key",
            fault: "leaves out a member called __proto__",
            make: subject::<DropsProtoKey>,
        },
        Mutant {
            name: "mangles-astral",
            fault: "replaces characters beyond the BMP",
            make: subject::<ManglesAstral>,
        },
        Mutant {
            name: "rounds-numbers",
            fault: "keeps numbers as 32-bit floats",
            make: subject::<RoundsNumbers>,
        },
        Mutant {
            name: "cuts-long-strings",
            fault: "cuts strings at 64 KiB",
            make: subject::<CutsLongStrings>,
        },
        Mutant {
            name: "flattens-deep-bodies",
            fault: "replaces what lies deeper than 32 levels by null",
            make: subject::<FlattensDeep>,
        },
        Mutant {
            name: "empty-becomes-null",
            fault: "keeps an empty object as null",
            make: subject::<EmptyBecomesNull>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let bodies = bodies();
    let mut refused = Vec::new();
    for body in &bodies {
        if let Err(refusal) = t.try_append(&store, &alpha, body)? {
            t.expect_reason("mailbox/append", &refusal, &["invalid_body", "too_large"]);
            refused.push(format!("{} ({})", named(body), refusal.reason));
            continue;
        }
        let lease = t.claim_some(&store, &alpha, "ann", "what was appended is claimable")?;
        let got = &lease.messages[0].body;
        if !same(got, body) {
            return broken(
                format!("a body comes back equal: {}", excerpt(body)),
                format!("the claim delivered {}", excerpt(got)),
            );
        }
        t.ack(&store, &lease, lease.last_seq())?;
    }
    if !refused.is_empty() {
        t.advise(format!(
            "{} of {} bodies were refused: {}",
            refused.len(),
            bodies.len(),
            refused.join(", ")
        ));
    }
    Ok(())
}

/// A body in a few characters.
fn named(body: &Json) -> String {
    const CHARS_MAX: usize = 24;
    let text = body.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn bodies() -> Vec<Json> {
    let deep_array = (1..DEPTH).fold(json!([]), |inner, _| json!([inner]));
    let deep_object = (1..DEPTH).fold(json!({}), |inner, _| json!({ "in": inner }));
    vec![
        json!("plain"),
        json!({}),
        json!([]),
        json!(""),
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(9_007_199_254_740_991_u64),
        json!(-9_007_199_254_740_991_i64),
        json!(-0.5),
        json!(1e-7),
        json!("before\u{0}after"),
        json!("line\u{2028}separator\u{2029}and\r\nnewlines\ttabs"),
        json!("quote \" backslash \\ slash / \u{1b}[31m \u{7f}"),
        json!("beyond the BMP: \u{1f642}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{10ffff}"),
        json!("e\u{301} \u{e9} \u{212b} \u{1100}\u{1161}"),
        json!({ "__proto__": { "a": 1 }, "constructor": 2, "toString": "t" }),
        json!({ "": "empty key", "a": { "": null } }),
        json!({ "gone": null, "kept": [null, { "inner": null }] }),
        json!({ "mixed": [1, "1", true, null, { "b": [], "a": {} }] }),
        deep_array,
        deep_object,
        json!("x".repeat(LONG_CHARS)),
    ]
}

/// The value with every string (keys aside) and number passed through `text` and `number`.
fn mapped(value: &Json, text: &dyn Fn(&str) -> String, number: &dyn Fn(f64) -> f64) -> Json {
    match value {
        Json::Null | Json::Bool(_) => value.clone(),
        Json::Number(n) => n.as_f64().map_or(Json::Null, |n| json!(number(n))),
        Json::String(s) => Json::String(text(s)),
        Json::Array(items) => items.iter().map(|item| mapped(item, text, number)).collect(),
        Json::Object(members) => {
            members.iter().map(|(k, v)| (k.clone(), mapped(v, text, number))).collect()
        }
    }
}

/// The value without the members that `drop` names.
fn without(value: &Json, drop: &dyn Fn(&str, &Json) -> bool) -> Json {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.clone(),
        Json::Array(items) => items.iter().map(|item| without(item, drop)).collect(),
        Json::Object(members) => members
            .iter()
            .filter(|(k, v)| !drop(k, v))
            .map(|(k, v)| (k.clone(), without(v, drop)))
            .collect(),
    }
}

fn cut_below(value: &Json, levels: usize) -> Json {
    match value {
        Json::Array(_) | Json::Object(_) if levels == 0 => Json::Null,
        Json::Array(items) => items.iter().map(|item| cut_below(item, levels - 1)).collect(),
        Json::Object(members) => {
            members.iter().map(|(k, v)| (k.clone(), cut_below(v, levels - 1))).collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.clone(),
    }
}

/// Defines a mutant that appends something else than it was handed.
macro_rules! changes_bodies {
    ($name:ident, $change:expr) => {
        altered!($name {
            fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
                let change: fn(&Json) -> Json = $change;
                self.0.append(to, &change(body), now)
            }
        });
    };
}

changes_bodies!(CutsAtNul, |body| mapped(
    body,
    &|s| s.split('\0').next().unwrap_or("").to_owned(),
    &|n| n
));
changes_bodies!(ComposesAccents, |body| mapped(body, &|s| s.replace("e\u{301}", "\u{e9}"), &|n| n));
changes_bodies!(DropsNullMembers, |body| without(body, &|_, v| v.is_null()));
changes_bodies!(DropsProtoKey, |body| without(body, &|k, _| k == "__proto__"));
changes_bodies!(ManglesAstral, |body| mapped(
    body,
    &|s| s.chars().map(|c| if c > '\u{ffff}' { '\u{fffd}' } else { c }).collect(),
    &|n| n
));
#[expect(clippy::cast_possible_truncation, reason = "losing digits is this mutant's fault")]
fn as_single(n: f64) -> f64 {
    f64::from(n as f32)
}
changes_bodies!(RoundsNumbers, |body| mapped(body, &str::to_owned, &as_single));
changes_bodies!(CutsLongStrings, |body| mapped(
    body,
    &|s| s.chars().take(65_536).collect(),
    &|n| n
));
changes_bodies!(FlattensDeep, |body| cut_below(body, 32));
changes_bodies!(EmptyBecomesNull, |body| if *body == json!({}) {
    Json::Null
} else {
    body.clone()
});
