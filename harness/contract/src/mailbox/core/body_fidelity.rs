//! What goes in comes out equal, whatever JSON it is.

use crate::clause::{Clause, Mutant};
use crate::json::{Json, excerpt, same};
use crate::mailbox::model::State;
use crate::mailbox::moves::{Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// How deep the nested body is, in levels.
const DEPTH: usize = 64;
/// How long the long string is, in characters (and bytes).
const LONG_CHARS: usize = 1 << 20;
/// How many characters of four bytes follow one of one byte in the long multibyte string: every border
/// of a chunk of even length falls inside a character.
const LONG_WIDE_CHARS: usize = 50_000;
/// How many numbers the long array holds.
const LONG_ITEMS: u32 = 3_000;
/// Long strings repeat themselves at no distance below this prime times [`SPREAD`].
const PRIME: usize = 61;
/// See [`PRIME`].
const SPREAD: usize = 93;
/// Bodies whose text is longer are sent once and left out of the second and third box, in bytes.
const HEAVY_BYTES: usize = 1 << 19;
/// Where the mutants cut, tear or swap long texts, in bytes.
const CHUNK: usize = 65_536;

/// A mutant in one line.
macro_rules! wrong {
    ($name:literal, $fault:literal, $kind:ty) => {
        Mutant { name: $name, fault: $fault, make: subject::<$kind> }
    };
}

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "body-fidelity",
    at: file!(),
    statement: "A body comes back equal to what was appended: numbers as doubles, strings character by character, objects with every member.",
    why: "A store that changes a body a little (drops a null, normalises an accent, cuts at a NUL) corrupts what agents tell each other, and nobody is told.",
    steps: &[
        "for each body: append it; a loud refusal is only an advisory",
        "claim it: the delivered body equals it; ack it",
        "append all that were taken (but the longest) to a second box; where they are claimed, left to expire and claimed again, each comes back equal (by the wall clock one such round)",
        "append them to a third box; each is equal to peek (declared), and, after a reopen (durable), to peek and to claims",
        "the bodies: empty object, array, string; null, booleans; 2^53-1, -0.5, 1e-7, 0.1+0.2, 1e300; U+0000; U+2028; U+FEFF, noncharacters; an emoji beyond the BMP; combining marks; white space at the ends; texts that look like null, numbers, JSON, dates",
        "and: keys __proto__, \"\", with dots, dollars, U+0000, combining marks; null and false members; 64 levels; 3,000 numbers; 1 MiB of letters; 50,000 emoji",
    ],
    needs: None,
    check,
    mutants: &[
        wrong! { "cuts-at-nul", "ends a string at its first U+0000", CutsAtNul },
        wrong! { "composes-accents", "replaces a letter and its combining accent by one character", ComposesAccents },
        wrong! { "drops-null-members", "leaves out members that are null", DropsNullMembers },
        wrong! { "drops-proto-key", "leaves out a member called __proto__", DropsProtoKey },
        wrong! { "mangles-astral", "replaces characters beyond the BMP", ManglesAstral },
        wrong! { "rounds-numbers", "keeps numbers as 32-bit floats", RoundsNumbers },
        wrong! { "cuts-long-strings", "cuts strings at 64 KiB", CutsLongStrings },
        wrong! { "flattens-deep-bodies", "replaces what lies deeper than 32 levels by null", FlattensDeep },
        wrong! { "empty-becomes-null", "keeps an empty object as null", EmptyBecomesNull },
        wrong! { "trims-strings", "takes white space off both ends of a string", TrimsStrings },
        wrong! { "strips-byte-order-marks", "takes U+FEFF off the front of a string", StripsBom },
        wrong! { "null-word-becomes-null", "keeps the string \"null\" as null", NullWord },
        wrong! { "digits-become-numbers", "keeps a string of digits as a number", DigitsToNumbers },
        wrong! { "parses-json-strings", "keeps a string that reads as a JSON object or array as that", ParsesStrings },
        wrong! { "dates-gain-milliseconds", "writes a date text with milliseconds", Dates },
        wrong! { "keeps-ten-digits", "keeps ten digits of a number", TenDigits },
        wrong! { "huge-numbers-become-null", "keeps a number above 1e100 as null", HugeToNull },
        wrong! { "drops-falsy-members", "leaves out members that are false, 0 or empty text", DropsFalsy },
        wrong! { "nests-dotted-keys", "takes a dot in a key for a path", NestsDotted },
        wrong! { "drops-dollar-keys", "leaves out members whose key begins with a dollar", DropsDollar },
        wrong! { "composes-keys", "replaces a letter and its combining accent in a key by one character", ComposesKeys },
        wrong! { "cuts-keys-at-nul", "ends a key at its first U+0000", CutsKeys },
        wrong! { "replaces-noncharacters", "replaces noncharacters by U+FFFD", Noncharacters },
        wrong! { "cuts-long-arrays", "keeps the first thousand items of an array", CutsArrays },
        wrong! { "swaps-long-chunks", "exchanges the first two chunks of 64 KiB of a long string", SwapsChunks },
        wrong! { "tears-wide-characters", "tears the character at the border of a chunk of 64 KiB", TearsWide },
        wrong! { "peek-drops-nulls", "leaves out null members when it shows a message to peek", PeekNoNull },
        wrong! { "redelivery-drops-nulls", "leaves out null members when a message is delivered again", RedeliveryNoNull },
        wrong! { "reopen-drops-nulls", "leaves out null members when the storage is opened again", ReopenNoNull },
        wrong! { "reopen-writes-ascii", "replaces what is not ASCII when the storage is opened again", ReopenAscii },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let bodies = bodies();
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for body in &bodies {
        if let Err(refusal) = t.try_append(&store, &alpha, body)? {
            t.expect_reason("mailbox/append", &refusal, &["invalid_body", "too_large"]);
            refused.push(format!("{} ({})", named(body), refusal.reason));
            continue;
        }
        let lease = t.claim_some(&store, &alpha, "ann", "what was appended is claimable")?;
        unchanged(&lease.messages[0].body, body, "the claim delivered")?;
        t.ack(&store, &lease, lease.last_seq())?;
        if !is_heavy(body) {
            taken.push(body);
        }
    }
    if !refused.is_empty() {
        t.advise(format!(
            "{} of {} bodies were refused: {}",
            refused.len(),
            bodies.len(),
            refused.join(", ")
        ));
    }
    again_after_expiry(t, &store, &taken)?;
    peeked_and_reopened(t, &store, &taken)
}

fn unchanged(got: &Json, body: &Json, how: &str) -> Verdict {
    if same(got, body) {
        return Ok(());
    }
    broken(format!("a body comes back equal: {}", excerpt(body)), format!("{how} {}", excerpt(got)))
}

/// Each message must bear the body that was sent under its seq; which messages come is judged elsewhere.
fn all_unchanged(got: &[Sent], sent: &[Sent], how: &str) -> Verdict {
    for message in got {
        if let Some(original) = sent.iter().find(|m| m.seq == message.seq) {
            unchanged(&message.body, &original.body, how)?;
        }
    }
    Ok(())
}

fn send_all(
    t: &mut Trial<'_>,
    store: &StoreRef,
    to: &Address,
    bodies: &[&Json],
) -> Result<Vec<Sent>, Stop> {
    let mut sent = Vec::new();
    for body in bodies {
        if let Ok(seq) = t.try_append(store, to, body)? {
            sent.push(Sent { seq, body: (*body).clone() });
        }
    }
    Ok(sent)
}

/// Lets a first lease over what a claim delivers run out, and looks at what comes then.
fn again_after_expiry(t: &mut Trial<'_>, store: &StoreRef, bodies: &[&Json]) -> Verdict {
    let beta = at("beta");
    let sent = send_all(t, store, &beta, bodies)?;
    let rounds = if t.is_caller_clock() { sent.len() } else { 1 };
    for _ in 0..rounds {
        let ttl_ms = t.short_ttl_ms();
        let Some(first) = t.claim_for(store, &beta, "ann", ttl_ms, None)? else { break };
        t.wait_for_expiry(&first)?;
        let Some(second) = t.claim(store, &beta, "bob")? else { break };
        all_unchanged(&second.messages, &sent, "delivered again after an expiry, it was")?;
        if t.try_ack(store, &beta, "bob", &second.id, second.last_seq())?.is_err() {
            break;
        }
    }
    Ok(())
}

fn peeked_and_reopened(t: &mut Trial<'_>, store: &StoreRef, bodies: &[&Json]) -> Verdict {
    let gamma = at("gamma");
    let sent = send_all(t, store, &gamma, bodies)?;
    if t.caps().peek {
        all_unchanged(&t.peek(store, &gamma)?, &sent, "peek showed")?;
    }
    if !t.caps().durable {
        return Ok(());
    }
    let store = &t.reopen(store)?;
    if t.caps().peek {
        all_unchanged(&t.peek(store, &gamma)?, &sent, "after a reopen, peek showed")?;
    }
    for _ in 0..sent.len() {
        let Some(lease) = t.claim(store, &gamma, "cid")? else { break };
        all_unchanged(&lease.messages, &sent, "after a reopen, the claim delivered")?;
        if t.try_ack(store, &gamma, "cid", &lease.id, lease.last_seq())?.is_err() {
            break;
        }
    }
    Ok(())
}

fn is_heavy(body: &Json) -> bool {
    body.as_str().is_some_and(|text| text.len() > HEAVY_BYTES)
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
        json!({ "null": null, "text": "\u{e9}\u{df} \u{1f642}", "list": [null, { "inner": null }], "n": 0.5 }),
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
        json!(0.1 + 0.2),
        json!(1e300),
        json!("  spaces and tabs around\t\n"),
        json!("\u{feff}after a byte order mark"),
        json!("null"),
        json!("12"),
        json!("1.50"),
        json!("{\"a\":1}"),
        json!("[1]"),
        json!("2020-01-01T00:00:00Z"),
        json!("noncharacters \u{fffe}\u{ffff}\u{fdd0}"),
        json!({ "false": false, "zero": 0, "text": "", "list": [], "object": {} }),
        json!({ "a.b": 1, "$k": { "$set": 2 }, "e\u{301}": 3, "a\u{0}b": 4 }),
        (0..LONG_ITEMS).collect(),
        long_text().into(),
        wide_text().into(),
    ]
}

/// Letters and digits whose chunks differ from each other.
fn long_text() -> String {
    let letters: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    (0..LONG_CHARS).map(|i| letters[(i * 7 + i / SPREAD) % PRIME]).collect()
}

fn wide_text() -> String {
    let faces: Vec<char> = ('\u{1f600}'..='\u{1f640}').collect();
    let wide = (0..LONG_WIDE_CHARS).map(|i| faces[(i * 7 + i / SPREAD) % PRIME]);
    std::iter::once('x').chain(wide).collect()
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

/// The value with every key passed through `rename`.
fn rekeyed(value: &Json, rename: &dyn Fn(&str) -> String) -> Json {
    match value.as_object() {
        Some(members) => members.iter().map(|(k, v)| (rename(k), v.clone())).collect(),
        None => value.clone(),
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

/// Defines a mutant that changes strings, wherever they stand in a body (keys aside).
macro_rules! changes_texts {
    ($name:ident, $change:expr) => {
        changes_bodies!($name, |body| mapped(body, &$change, &|n| n));
    };
}

/// Defines a mutant that keeps some bodies as another value, or as they are.
macro_rules! replaces_bodies {
    ($name:ident, $replacement:expr) => {
        changes_bodies!($name, |body| {
            let replacement: fn(&Json) -> Option<Json> = $replacement;
            replacement(body).unwrap_or_else(|| body.clone())
        });
    };
}

fn until_nul(text: &str) -> String {
    text.split('\0').next().unwrap_or("").to_owned()
}
fn composed(text: &str) -> String {
    text.replace("e\u{301}", "\u{e9}")
}
fn bmp(c: char) -> char {
    if c > '\u{ffff}' { '\u{fffd}' } else { c }
}
fn torn(text: &str) -> String {
    let (head, tail) = text.as_bytes().split_at(CHUNK.min(text.len()));
    format!("{}{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
}
fn swapped(text: &str) -> String {
    match (text.get(..CHUNK), text.get(CHUNK..2 * CHUNK)) {
        (Some(first), Some(second)) => format!("{second}{first}{}", &text[2 * CHUNK..]),
        (_, _) => text.to_owned(),
    }
}
#[expect(clippy::cast_possible_truncation, reason = "losing digits is this mutant's fault")]
fn as_single(n: f64) -> f64 {
    f64::from(n as f32)
}
fn ten_digits(n: f64) -> f64 {
    if n.fract() == 0.0 { n } else { format!("{n:.9e}").parse().unwrap_or(n) }
}

changes_texts!(CutsAtNul, until_nul);
changes_texts!(ComposesAccents, composed);
changes_texts!(ManglesAstral, |s: &str| s.chars().map(bmp).collect());
changes_texts!(CutsLongStrings, |s: &str| s.chars().take(CHUNK).collect());
changes_texts!(TrimsStrings, |s: &str| s.trim().to_owned());
changes_texts!(StripsBom, |s: &str| s.trim_start_matches('\u{feff}').to_owned());
changes_texts!(Noncharacters, |s: &str| s
    .replace(['\u{fffe}', '\u{ffff}', '\u{fdd0}'], "\u{fffd}"));
changes_texts!(SwapsChunks, swapped);
changes_texts!(TearsWide, torn);
changes_texts!(Dates, |s: &str| s.replace("T00:00:00Z", "T00:00:00.000Z"));
changes_bodies!(DropsNullMembers, without_nulls);
changes_bodies!(DropsProtoKey, |body| without(body, &|k, _| k == "__proto__"));
changes_bodies!(DropsDollar, |body| without(body, &|k, _| k.starts_with('$')));
changes_bodies!(DropsFalsy, |body| without(body, &|_, v| [json!(false), json!(0), json!("")]
    .contains(v)));
changes_bodies!(RoundsNumbers, |body| mapped(body, &str::to_owned, &as_single));
changes_bodies!(TenDigits, |body| mapped(body, &str::to_owned, &ten_digits));
changes_bodies!(FlattensDeep, |body| cut_below(body, 32));
changes_bodies!(ComposesKeys, |body| rekeyed(body, &composed));
changes_bodies!(CutsKeys, |body| rekeyed(body, &until_nul));
replaces_bodies!(EmptyBecomesNull, |body| (*body == json!({})).then_some(Json::Null));
replaces_bodies!(NullWord, |body| (body == "null").then_some(Json::Null));
replaces_bodies!(DigitsToNumbers, |body| body.as_str()?.parse::<u64>().ok().map(Json::from));
replaces_bodies!(ParsesStrings, |body| {
    serde_json::from_str(body.as_str().filter(|text| text.starts_with(['{', '[']))?).ok()
});
replaces_bodies!(HugeToNull, |body| body.as_f64().filter(|n| *n > 1e100).map(|_| Json::Null));
replaces_bodies!(NestsDotted, |body| Some(json!({ "a": { "b": body.get("a.b")? } })));
replaces_bodies!(CutsArrays, |body| Some(body.as_array()?.iter().take(1_000).cloned().collect()));

fn without_nulls(body: &Json) -> Json {
    without(body, &|_, v| v.is_null())
}

altered!(PeekNoNull {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let found = self.0.peek(of, now)?;
        Ok(found.into_iter().map(|m| Message { body: without_nulls(&m.body), ..m }).collect())
    }
});

altered!(RedeliveryNoNull {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        self.0.with_box(from, |b| {
            if b.lease.as_ref().is_some_and(|held| held.expiry <= time) {
                b.messages.iter_mut().for_each(|m| m.body = without_nulls(&m.body));
            }
        });
        self.0.claim(from, ask, now)
    }
});

fn change_all(state: &mut State, change: &dyn Fn(&Json) -> Json) {
    for message in state.boxes.values_mut().flat_map(|b| &mut b.messages) {
        message.body = change(&message.body);
    }
}

altered!(ReopenNoNull {
    fn reopened(state: &mut State) {
        change_all(state, &without_nulls);
    }
});

altered!(ReopenAscii {
    fn reopened(state: &mut State) {
        let ascii = |s: &str| s.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
        change_all(state, &|body| mapped(body, &ascii, &|n| n));
    }
});
