//! What foreign text may become: XML 1.0 text, or text that is safe to look at.
//!
//! Adapters print what they like: colours, NULs, torn UTF-16, megabytes. Every report passes foreign
//! text through one of two filters, and both are rules a reader can undo in the head:
//!
//! - An ANSI escape sequence is removed: it is paint, not text. One that never ends is no sequence;
//!   its ESC is then a character like any other.
//! - A character that may not stand becomes visible: a C0 control its control picture (NUL is `␀`,
//!   ESC is `␛`, DEL is `␡`), anything else its number, such as `\u{FFFE}`. The 8-bit introducers of
//!   escape sequences (U+009B and its kin) count as such characters everywhere.
//! - What is too long keeps its head and its tail and says how many bytes are missing.

use std::borrow::Cow;

/// The most bytes one cleaned text takes in a report: 64 KiB.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The longest string (OSC, DCS, ...) an escape sequence may carry and still count as one.
const SEQUENCE_BYTES_MAX: usize = 4096;

/// Room kept for the sentence that says what was cut.
const NOTE_BYTES_MAX: usize = 128;

/// `text` as XML 1.0 can carry it, cut to [`TEXT_BYTES_MAX`]. Not yet escaped.
///
/// ```
/// use storeproof_reports::text::xml_text;
/// assert_eq!(xml_text("\u{1b}[31mred\u{1b}[0m \0 ]]>"), "red ␀ ]]>");
/// ```
#[must_use]
pub fn xml_text(text: &str) -> Cow<'_, str> {
    xml_text_within(text, TEXT_BYTES_MAX)
}

/// [`xml_text`] with another limit.
#[must_use]
pub fn xml_text_within(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match xml_clean(text) {
        Cow::Borrowed(text) => cut(text, bytes_max),
        Cow::Owned(text) => Cow::Owned(cut(&text, bytes_max).into_owned()),
    }
}

/// [`xml_text`] without a limit.
#[must_use]
pub fn xml_clean(text: &str) -> Cow<'_, str> {
    filter(text, is_xml_char)
}

/// `text` as a terminal or a page may show it: no escape sequence, no control character but `\n` and
/// `\t`, no bidirectional override and nothing invisible that could disguise other text.
///
/// ```
/// use storeproof_reports::text::terminal_text;
/// assert_eq!(terminal_text("a\u{202e}b\r\nc\u{1b}[2J"), "a\\u{202E}b\nc");
/// ```
#[must_use]
pub fn terminal_text(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        return Cow::Owned(filter(&text.replace("\r\n", "\n"), is_plain_char).into_owned());
    }
    filter(text, is_plain_char)
}

/// [`terminal_text`] on one line: a line end is `␊`, a tab `␉`.
///
/// ```
/// assert_eq!(storeproof_reports::text::terminal_line("a\nb\tc"), "a␊b␉c");
/// ```
#[must_use]
pub fn terminal_line(text: &str) -> Cow<'_, str> {
    filter(text, |c| c != '\n' && c != '\t' && is_plain_char(c))
}

/// Every character that may not be shown made visible and nothing removed, on one line.
pub(crate) fn visible_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && c != '\t' && is_plain_char(c) {
            out.push(c);
        } else {
            push_visible(&mut out, c);
        }
    }
    out
}

/// `text` where it has at most `bytes_max` bytes, else its head and its tail with a line between
/// them that says how many bytes are missing. Cuts between characters only.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let room = bytes_max.saturating_sub(NOTE_BYTES_MAX);
    let head = floor_boundary(text, room - room / 4);
    let tail = ceil_boundary(text, text.len() - room / 4);
    let note = format!(
        "\n… {} of {} bytes cut here; the JSON report holds them all …\n",
        grouped(tail - head),
        grouped(text.len())
    );
    Cow::Owned([&text[..head], &note, &text[tail..]].concat())
}

/// `n` with a comma between thousands.
#[must_use]
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The last character boundary at or before `at`.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The first character boundary at or after `at`.
fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

/// The `Char` production of XML 1.0. A Rust string holds no surrogates.
fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Whether `c` may be shown as it is: neither a control nor something that reorders or hides text.
/// The joiners U+200C and U+200D stay, as emoji and several scripts need them.
fn is_plain_char(c: char) -> bool {
    let disguise = matches!(c,
        '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E007F}');
    let not_a_character = u32::from(c) & 0xFFFE == 0xFFFE;
    matches!(c, '\n' | '\t') || !(c.is_control() || disguise || not_a_character)
}

/// Removes escape sequences, keeps what `allowed` allows and makes the rest visible.
fn filter(text: &str, allowed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(|c| allowed(c) && !starts_sequence(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let sequence = if starts_sequence(c) { sequence_len(rest) } else { None };
        if let Some(len) = sequence {
            rest = &rest[len..];
            continue;
        }
        // An introducer of no sequence is shown, not kept: before other text it could become one.
        if allowed(c) && !starts_sequence(c) {
            out.push(c)
        } else {
            push_visible(&mut out, c)
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// A character that may not stand, made visible.
fn push_visible(out: &mut String, c: char) {
    let picture = match c {
        '\0'..='\u{1F}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7F}' => Some('␡'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        None => out.push_str(&format!("\\u{{{:04X}}}", u32::from(c))),
    }
}

/// ESC, and the 8-bit introducers of the same sequences.
fn starts_sequence(c: char) -> bool {
    matches!(c, '\u{1B}' | '\u{90}' | '\u{98}' | '\u{9B}' | '\u{9D}'..='\u{9F}')
}

/// The length in bytes of the escape sequence `text` starts with; none if it is not a whole one.
fn sequence_len(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let (kind, prefix) = match chars.next()? {
        '\u{1B}' => (chars.next()?, 2),
        '\u{9B}' => ('[', 2),
        '\u{90}' | '\u{98}' | '\u{9D}'..='\u{9F}' => (']', 2),
        _ => return None,
    };
    match kind {
        '[' => final_byte(&text[prefix..], ' '..='?', '@'..='~').map(|len| prefix + len),
        ']' | 'P' | 'X' | '^' | '_' => string_end(&text[prefix..]).map(|len| prefix + len),
        ' '..='/' => final_byte(&text[1..], ' '..='/', '0'..='~').map(|len| 1 + len),
        '0'..='~' => Some(prefix),
        _ => None,
    }
}

/// The length of `middle` characters and one `last` character.
fn final_byte(
    text: &str,
    middle: std::ops::RangeInclusive<char>,
    last: std::ops::RangeInclusive<char>,
) -> Option<usize> {
    let (at, c) = text.char_indices().find(|(_, c)| !middle.contains(c))?;
    (at <= SEQUENCE_BYTES_MAX && last.contains(&c)).then(|| at + c.len_utf8())
}

/// The length of a control string with its terminator (BEL, ST, or ESC `\`). A control character
/// inside says that this was no such string: text after a stray ESC must not vanish.
fn string_end(text: &str) -> Option<usize> {
    let (at, c) = text.char_indices().find(|(_, c)| c.is_control())?;
    if at > SEQUENCE_BYTES_MAX {
        return None;
    }
    match c {
        '\u{07}' => Some(at + 1),
        '\u{9C}' => Some(at + 2),
        '\u{1B}' if text[at + 1..].starts_with('\\') => Some(at + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_goes_and_text_stays() {
        for (dirty, clean) in [
            ("want 1\n\u{1b}[31mgot 2\u{1b}[0m", "want 1\ngot 2"),
            ("\u{1b}[2Kprogress", "progress"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "xlink"),
            ("\u{1b}(Bx\u{1b}7y\u{1b}cz", "xyz"),
            ("\u{1b}[38;5;12mblue", "blue"),
        ] {
            assert_eq!(xml_text(dirty), clean, "{dirty:?}");
            assert_eq!(terminal_text(dirty), clean, "{dirty:?}");
        }
    }

    #[test]
    fn a_sequence_that_never_ends_hides_nothing() {
        assert_eq!(xml_text("a\u{1b}"), "a␛");
        assert_eq!(xml_text("a\u{1b}[31"), "a␛[31");
        assert_eq!(xml_text("\u{1b}]0;all of\nthis stays"), "␛]0;all of\nthis stays");
        assert_eq!(xml_text("\u{1b}\u{1b}[0m[31m"), "␛[31m");
        assert_eq!(xml_text("\u{1b}[1\nm"), "␛[1\nm");
        assert_eq!(xml_text("a\u{9b}\u{FFFE}"), "a\\u{009B}\\u{FFFE}");
    }

    #[test]
    fn what_xml_forbids_becomes_visible() {
        assert_eq!(xml_text("\0\u{8}\u{b}\u{1f}"), "␀␈␋␟");
        assert_eq!(xml_text("\u{FFFE}\u{FFFF}"), "\\u{FFFE}\\u{FFFF}");
        assert_eq!(xml_text("\t\n\r\u{7f}\u{85}\u{FFFD}🙂"), "\t\n\r\u{7f}\u{85}\u{FFFD}🙂");
    }

    #[test]
    fn a_terminal_gets_no_controls_and_no_overrides() {
        assert_eq!(terminal_text("a\rb\u{7f}\u{85}"), "a␍b␡\\u{0085}");
        assert_eq!(terminal_text("\u{202e}gnp.exe\u{2066}"), "\\u{202E}gnp.exe\\u{2066}");
        assert_eq!(terminal_text("👩\u{200d}👧 שלום"), "👩\u{200d}👧 שלום");
        assert_eq!(terminal_line("a\r\nb"), "a␍␊b");
    }

    #[test]
    fn a_cut_keeps_both_ends_and_counts_what_is_missing() {
        let long = format!("START{}END", "é".repeat(100_000));
        let cut = xml_text(&long);
        assert!(cut.len() <= TEXT_BYTES_MAX, "{}", cut.len());
        assert!(cut.starts_with("STARTé") && cut.ends_with("éEND"));
        let missing: usize = cut
            .split("… ")
            .nth(1)
            .and_then(|note| note.split(' ').next())
            .map(|n| n.replace(',', "").parse().expect("a number"))
            .expect("a note");
        let note = cut.lines().nth(1).expect("the note's line").len() + 2;
        assert_eq!(missing + cut.len() - note, long.len());
        assert_eq!(super::cut("tiny", 4), "tiny");
        assert!(super::cut("tiny!", 4).contains("5 of 5 bytes cut"));
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
