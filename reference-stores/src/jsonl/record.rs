//! The lines of the log. A record says what happened, not what was asked: replaying it needs no clock.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::Address;

/// The log's format; another one is refused, never reinterpreted.
pub(super) const VERSION: u64 = 1;

/// The first line of every log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    /// See [`VERSION`].
    pub(super) storeproof_jsonl: u64,
    /// The storage's name, a part of every lease id.
    pub(super) storage: String,
    /// How many compactions made this log; it only ever grows.
    pub(super) generation: u64,
}

/// A recipient as the pair it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recipient(String, String);

impl From<&Address> for Recipient {
    fn from(of: &Address) -> Self {
        Self(of.scope.0.clone(), of.handle.0.clone())
    }
}

impl From<&Recipient> for Address {
    fn from(of: &Recipient) -> Self {
        Address::new(&of.0, &of.1)
    }
}

/// Every other line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Record {
    /// A message came in.
    Append { of: Recipient, seq: u64, body: Json },
    /// A lease was granted for everything up to `delivered`.
    Claim { of: Recipient, lease: u64, owner: String, expiry: u64, delivered: u64 },
    /// The lease was settled and everything up to `through` went.
    Ack { of: Recipient, lease: u64, through: u64 },
    /// The lease was given back.
    Release { of: Recipient, lease: u64 },
    /// The lease's expiry moved.
    Renew { of: Recipient, lease: u64, expiry: u64 },
    /// The box was emptied, its lease included.
    Drop { of: Recipient },
    /// After a compaction: the box has minted seqs up to here, though their messages are gone.
    Minted { of: Recipient, seq: u64 },
    /// After a compaction: this many leases were granted, though most are gone.
    Granted { leases: u64 },
}

/// One line with its newline, so that one write puts a whole record.
pub(super) fn line_of(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a line as `T`. Bodies are limited in depth when they come in, so the reader sets no limit.
pub(super) fn parse<'l, T: Deserialize<'l>>(line: &'l [u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// What the bytes after the last newline are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// A whole JSON text of this many bytes; only its newline is missing.
    Whole(usize),
    /// What a write leaves that was cut short: the start of a JSON text, or padding.
    Torn,
    /// Neither: no write of ours ends like this.
    Garbage,
}

/// Judges a tail. A killed process leaves the start of a record; an unclean stop of the machine may
/// leave NUL padding in place of, or behind, what was written.
pub(super) fn tail(bytes: &[u8]) -> Tail {
    let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let text = &bytes[..bytes.len() - padding];
    let ends_too_early =
        |text: &[u8]| serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof());
    if serde_json::from_slice::<IgnoredAny>(text).is_ok() {
        Tail::Whole(text.len())
    } else if ends_too_early(text) || ends_too_early(&[text, b"0"].concat()) {
        // The second look is for a number cut behind its sign, point or `e`: the parser calls that a
        // bad number, not an early end.
        Tail::Torn
    } else {
        Tail::Garbage
    }
}

/// Whether a line holds nothing: such lines count as nothing, not as a loss.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn append() -> Record {
        let of = Recipient::from(&Address::new("a\u{2028}", "b\n\0"));
        Record::Append { of, seq: 7, body: json!({"__proto__": -0.5, "": "𝄞\r\n", "x": [null]}) }
    }

    #[test]
    fn a_record_is_one_line_and_comes_back_equal() {
        let line = line_of(&append()).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(parse::<Record>(&line).unwrap(), append());
    }

    #[test]
    fn every_cut_of_a_record_is_torn_until_it_is_whole() {
        let line = line_of(&append()).unwrap();
        let text = &line[..line.len() - 1];
        for cut in 0..text.len() {
            assert_eq!(tail(&text[..cut]), Tail::Torn, "at {cut}");
            let padded = [&text[..cut], &[0; 16]].concat();
            assert_eq!(tail(&padded), Tail::Torn, "padded at {cut}");
        }
        assert_eq!(tail(text), Tail::Whole(text.len()));
        assert_eq!(tail(&[text, &[0; 3]].concat()), Tail::Whole(text.len()));
        assert_eq!(tail(&[text, b"x"].concat()), Tail::Garbage);
    }

    #[test]
    fn a_record_with_a_member_too_many_twice_or_missing_is_no_record() {
        let bad = [
            r#"{"drop":{"of":["a","b"],"more":1}}"#,
            r#"{"drop":{"of":["a","b"],"of":["a","b"]}}"#,
            r#"{"drop":{"of":["a"]}}"#,
            r#"{"append":{"of":["a","b"],"seq":1}}"#,
            r#"{"append":{"of":["a","b"],"seq":-1,"body":null}}"#,
            r#"{"other":{}}"#,
        ];
        for line in bad {
            assert!(parse::<Record>(line.as_bytes()).is_err(), "{line}");
        }
        assert!(parse::<Record>(br#"{"append":{"of":["a","b"],"seq":1,"body":null}}"#).is_ok());
    }
}
