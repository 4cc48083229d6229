//! Foreign bytes as a person reads them in a message: escaped, cut, and the cut said.

use std::fmt::Write as _;

/// The most bytes of a line that a fault shows.
pub const SHOWN_BYTES_MAX: usize = 200;
/// How many bytes before the place of trouble are shown.
const BEFORE_BYTES: usize = 60;

/// The start of `bytes` in backticks; says how many bytes there are where it had to cut.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN_BYTES_MAX) {
        Some(start) if bytes.len() > SHOWN_BYTES_MAX => {
            format!("`{}…` ({} bytes in all)", escaped(start), bytes.len())
        }
        _ => format!("`{}`", escaped(bytes)),
    }
}

/// The start of `bytes`, and what stands around `offset` where the start does not show that.
#[must_use]
pub fn shown_at(bytes: &[u8], offset: usize) -> String {
    let mut text = shown(bytes);
    if offset >= SHOWN_BYTES_MAX {
        let from = offset.saturating_sub(BEFORE_BYTES).min(bytes.len());
        let to = bytes.len().min(from + SHOWN_BYTES_MAX);
        let _ = write!(text, "; around byte {offset}: `…{}`", escaped(&bytes[from..to]));
    }
    text
}

/// `bytes` as text: what is printable UTF-8 as it is, everything else as an escape.
#[must_use]
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, '"' | '\'') {
                text.push(c);
            } else {
                text.extend(c.escape_debug());
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_text_is_escaped_and_what_is_cut_is_said() {
        assert_eq!(escaped(b"{\"a\":\"\xff\x1b\xc3\xa9\"}"), "{\"a\":\"\\xff\\u{1b}é\"}");
        assert_eq!(shown(b"short"), "`short`");
        assert!(shown(&[b'x'; 500]).ends_with("…` (500 bytes in all)"));
        assert!(shown_at(&[b'x'; 500], 300).contains("around byte 300"));
    }
}
