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
        id => id.as_i64(),
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
