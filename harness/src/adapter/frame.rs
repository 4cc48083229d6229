//! A line is a message: bytes in, lines out, and what a line means. Pure; knows no process.

use super::shown::{shown, shown_at};
use serde::{Deserialize, Deserializer};
use storeproof_contract::call::{Fault, FaultKind, RpcError};
use storeproof_contract::json::Json;

/// The longest line that is taken unless told otherwise, without its line ending.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The deepest nesting of arrays and objects that the protocol allows.
pub const NESTING_LEVELS_MAX: usize = 1_100;
/// Memory that is kept for the next line; what a larger line took is given back.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Splits bytes into lines at 0x0A, whatever pieces they come in.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    start: usize,
    scanned: usize,
    limit_bytes: usize,
    number: u64,
}

impl Lines {
    /// A splitter that takes lines of up to `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, scanned: 0, limit_bytes, number: 0 }
    }

    /// Takes what came next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).extend_from_slice(bytes);
    }

    /// The buffer, with room for `more` bytes to be appended to it and nothing else done with it.
    pub(super) fn room(&mut self, more: usize) -> &mut Vec<u8> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.reserve(more);
        &mut self.bytes
    }

    /// The next whole line without its ending; blank ones are passed over.
    ///
    /// # Errors
    /// A fault where a line, finished or not, is longer than the limit.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, Fault> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) else {
                self.scanned = self.bytes.len();
                let unfinished = &self.bytes[self.start..];
                if unfinished.len() > self.limit_bytes {
                    self.number += 1;
                    return Err(too_long(unfinished, "so far", self.limit_bytes));
                }
                return Ok(None);
            };
            let (start, end) = (self.start, self.scanned + at);
            self.start = end + 1;
            self.scanned = self.start;
            self.number += 1;
            let line = &self.bytes[start..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > self.limit_bytes {
                return Err(too_long(&self.bytes[start..end], "long", self.limit_bytes));
            }
            if !line.trim_ascii().is_empty() {
                let end = start + line.len();
                return Ok(Some(&self.bytes[start..end]));
            }
        }
    }

    /// What stands after the last line ending.
    #[must_use]
    pub fn unfinished(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The number of the last line given out, blank ones counted, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

fn too_long(line: &[u8], so_far: &str, limit_bytes: usize) -> Fault {
    let message = format!(
        "a line of {} bytes {so_far}, over the limit of {limit_bytes}: {}",
        line.len(),
        shown(line)
    );
    Fault::new(FaultKind::BadLine, message)
}

/// What a line from a child can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A `method` without an `id`: noted and ignored.
    Notification(String),
    /// A reply to the call `id`.
    Reply {
        /// The call.
        id: i64,
        /// Its result or its error.
        outcome: Result<Json, RpcError>,
    },
}

/// Reads a line from a child.
///
/// Nesting of up to [`NESTING_LEVELS_MAX`] makes this recurse: see [`super::stack`].
///
/// # Errors
/// A fault that names what is wrong with the line, where, and shows it.
pub fn parse(line: &[u8]) -> Result<Incoming, Fault> {
    let text = text(line)?;
    nesting(line)?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(not_an_object(line, text));
    }
    let shape: Shape = decode(text).map_err(|error| not_json(line, &error))?;
    incoming(line, shape)
}

/// The line as UTF-8.
pub(super) fn text(line: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        let byte = line.get(at).copied().unwrap_or_default();
        let seen = shown_at(line, at);
        bad_line(format!("the line is not UTF-8: byte 0x{byte:02x} at offset {at}: {seen}"))
    })
}

/// Refuses nesting that could exhaust a stack; a scan, since a parser would have to recurse to know.
pub(super) fn nesting(line: &[u8]) -> Result<(), Fault> {
    if line.len() <= NESTING_LEVELS_MAX {
        return Ok(());
    }
    let (mut depth, mut in_string, mut at) = (0_usize, false, 0);
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            // What a backslash escapes ends no string.
            b'\\' if in_string => at += 1,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > NESTING_LEVELS_MAX {
                    let seen = shown(line);
                    return Err(bad_line(format!(
                        "the line nests deeper than {NESTING_LEVELS_MAX} levels at byte {at}: {seen}"
                    )));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Reads one JSON text as `T`; the nesting was judged by then.
pub(super) fn decode<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The members of a message; absent and `null` are kept apart.
#[derive(Deserialize)]
pub(super) struct Shape {
    #[serde(default, deserialize_with = "present")]
    pub(super) jsonrpc: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    pub(super) id: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    pub(super) method: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    pub(super) params: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Json>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(value).map(Some)
}

fn not_an_object(line: &[u8], text: &str) -> Fault {
    let seen = shown(line);
    let what = match decode::<Json>(text) {
        Err(error) => return not_json(line, &error),
        Ok(Json::Array(_)) => "an array: the protocol has no batches",
        Ok(Json::Null) => "null",
        Ok(Json::String(_)) => "a string",
        Ok(Json::Number(_)) => "a number",
        Ok(Json::Bool(_)) => "true or false",
        Ok(Json::Object(_)) => "an object",
    };
    bad_line(format!("the line is JSON but no message, it is {what}: {seen}"))
}

fn not_json(line: &[u8], error: &serde_json::Error) -> Fault {
    let at = error.column().saturating_sub(1);
    let seen = shown_at(line, at);
    // serde_json's own words end in a line and column that mean nothing within one line.
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    if error.is_data() {
        return bad_reply(format!("the message names a member twice ({words}): {seen}"));
    }
    bad_line(format!("the line is not JSON ({words} at byte {at}): {seen}"))
}

fn incoming(line: &[u8], shape: Shape) -> Result<Incoming, Fault> {
    let wrong = |what: &str| Err(bad_reply(format!("{what}: {}", shown(line))));
    if let Some(method) = &shape.method {
        let method = method.as_str().map_or_else(|| method.to_string(), str::to_owned);
        return match shape.id {
            None => Ok(Incoming::Notification(method)),
            Some(_) => wrong("a request from the child, which only answers in this protocol"),
        };
    }
    let Some(id) = &shape.id else {
        return wrong("a message with neither `id` nor `method`");
    };
    if shape.jsonrpc.as_ref().and_then(Json::as_str) != Some("2.0") {
        return wrong("a message without `jsonrpc`: \"2.0\"");
    }
    let id = match id {
        Json::Null => return wrong("a reply whose `id` is null, so it answers no call"),
        Json::String(_) => return wrong("a reply whose `id` is a string, not an integer"),
        Json::Number(id) => id.as_i64(),
        Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    };
    let Some(id) = id else {
        return wrong("a reply whose `id` is not an integer that was ever sent");
    };
    match (shape.result, shape.error) {
        (Some(_), Some(_)) => wrong("a reply with both `result` and `error`"),
        (None, None) => wrong("a reply with neither `result` nor `error`"),
        (Some(result), None) => Ok(Incoming::Reply { id, outcome: Ok(result) }),
        (None, Some(error)) => match rpc_error(error) {
            Ok(error) => Ok(Incoming::Reply { id, outcome: Err(error) }),
            Err(what) => wrong(what),
        },
    }
}

fn rpc_error(error: Json) -> Result<RpcError, &'static str> {
    let Json::Object(mut members) = error else {
        return Err("a reply whose `error` is not an object");
    };
    let Some(code) = members.get("code").and_then(Json::as_i64) else {
        return Err("a reply whose `error.code` is not an integer");
    };
    let Some(Json::String(message)) = members.remove("message") else {
        return Err("a reply whose `error.message` is not a string");
    };
    Ok(RpcError { code, message, data: members.remove("data") })
}

fn bad_line(message: String) -> Fault {
    Fault::new(FaultKind::BadLine, message)
}

fn bad_reply(message: String) -> Fault {
    Fault::new(FaultKind::BadReply, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn all(pieces: &[&[u8]], limit_bytes: usize) -> Result<Vec<Vec<u8>>, Fault> {
        let mut lines = Lines::new(limit_bytes);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece);
            while let Some(line) = lines.next_line()? {
                found.push(line.to_vec());
            }
        }
        Ok(found)
    }

    fn reply(id: i64, result: Json) -> Incoming {
        Incoming::Reply { id, outcome: Ok(result) }
    }

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let text = "a\u{2028}b\rc\r\n\n \t\r\n\u{85}d\nunfinished";
        let found = all(&[text.as_bytes()], 100).expect("lines");
        assert_eq!(found, ["a\u{2028}b\rc".as_bytes(), "\u{85}d".as_bytes()]);
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let line = |count: usize, end: &str| format!("{}{end}", "x".repeat(count));
        for end in ["\n", "\r\n"] {
            assert!(all(&[line(10, end).as_bytes()], 10).is_ok());
            assert!(all(&[line(11, end).as_bytes()], 10).is_err());
        }
        let fault = all(&[line(12, "").as_bytes()], 10).expect_err("unfinished");
        assert_eq!(
            fault.message,
            "a line of 12 bytes so far, over the limit of 10: `xxxxxxxxxxxx`"
        );
    }

    #[test]
    fn the_buffer_of_a_large_line_is_given_back() {
        let mut lines = Lines::new(LINE_BYTES_MAX);
        lines.push(&vec![b'x'; 4 * KEPT_BYTES_MAX]);
        lines.push(b"\n");
        assert!(lines.next_line().expect("a line").is_some());
        lines.push(b"y");
        assert!(lines.bytes.capacity() < KEPT_BYTES_MAX);
        assert_eq!(lines.unfinished(), b"y");
    }

    #[test]
    fn levels_are_counted_outside_of_strings() {
        let line = |inner: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{inner}"}}"#);
        assert!(parse(line(&"[".repeat(5_000)).as_bytes()).is_ok());
        assert!(parse(line(&r#"\"[{"#.repeat(5_000)).as_bytes()).is_ok());
        let flat = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}1]}}"#, "[],".repeat(5_000));
        assert!(parse(flat.as_bytes()).is_ok());
        // A million levels: a scan, or the stack would end here.
        let fault = parse("[".repeat(1_000_000).as_bytes()).expect_err("too deep");
        assert!(fault.message.contains("1100 levels at byte 1100"), "{fault}");
    }

    #[test]
    fn null_is_a_result_and_unknown_members_are_ignored() {
        let line = br#" {"x":[{}],"result":null,"id":7,"jsonrpc":"2.0","params":1} "#;
        assert_eq!(parse(line), Ok(reply(7, Json::Null)));
        let note = Incoming::Notification("log".to_owned());
        assert_eq!(parse(br#"{"method":"log","params":[1]}"#), Ok(note));
    }

    #[test]
    fn numbers_and_escapes_that_json_has_no_value_for_are_named() {
        for (text, word) in [("1e999", "number out of range"), (r#""\ud800""#, "hex escape")] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{text}}}"#);
            let fault = parse(line.as_bytes()).expect_err("no value");
            assert_eq!(fault.kind, FaultKind::BadLine);
            assert!(fault.message.contains(word), "{fault}");
        }
    }

    /// Bytes of which many are JSON's own, so that the inner checks are reached.
    fn json_like() -> impl Strategy<Value = Vec<u8>> {
        let text =
            r#"{ } [ ] , : " \ 1 -9e9 null "id": "jsonrpc":"2.0" "result": "error": "code":"#;
        let others: [&'static [u8]; 6] =
            [b"\"message\":", b"\"method\":", b"\xff", b"\xe6", b"\r", b"\n"];
        let words: Vec<_> = text.split(' ').map(str::as_bytes).chain(others).collect();
        let word = proptest::sample::select(words);
        proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_faults_are_bounded(
            bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..400), json_like()],
            limit in 0_usize..300,
        ) {
            let mut lines = Lines::new(limit);
            lines.push(&bytes);
            loop {
                let line = match lines.next_line() {
                    Ok(Some(line)) => line,
                    Ok(None) => break,
                    Err(fault) => {
                        prop_assert!(fault.message.len() < 8_000);
                        break;
                    }
                };
                prop_assert!(line.len() <= limit && !line.contains(&b'\n'));
                if let Err(fault) = parse(line) {
                    prop_assert!(fault.message.len() < 8_000);
                    prop_assert!(matches!(fault.kind, FaultKind::BadLine | FaultKind::BadReply));
                }
            }
        }

        #[test]
        fn a_reply_in_any_pieces_is_the_same_reply(
            body in ".{0,40}",
            id in 1_i64..1_000_000,
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
            ending in prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n\r\n")],
        ) {
            let line = json!({ "jsonrpc": "2.0", "id": id, "result": { "body": body } });
            let text = format!("{line}{ending}{line}{ending}").into_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for to in at.into_iter().chain([text.len()]) {
                pieces.push(&text[from..to]);
                from = to;
            }
            let found = all(&pieces, LINE_BYTES_MAX).expect("lines");
            prop_assert_eq!(found.len(), 2);
            for line in found {
                prop_assert_eq!(parse(&line), Ok(reply(id, json!({ "body": body }))));
            }
        }
    }
}
