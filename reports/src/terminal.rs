//! The terminal report: what a tired person needs, in the order in which they need it.
//!
//! The mount table says what stood before the bench and how it went; a run without findings ends
//! there. Below it each finding tells its story: promise and sight, the calls, the line that runs it
//! again. Nothing is hidden in silence: a cut says what was cut and where the rest is.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::record::{Mount, Outcome, Record, Row, Summary, Verdict};
use crate::text::{grouped, terminal_line, terminal_text};
use crate::view;

mod story;

/// How the report is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours, where a terminal that wants them is looking.
    pub color: bool,
    /// Every row and every step, not only what needs a look.
    pub verbose: bool,
    /// Columns; 0 stands for 100, and less than 40 is drawn as 40.
    pub width: usize,
}

/// Where the width is unknown.
const WIDTH: usize = 100;
/// Narrower than this nothing reads well.
const WIDTH_MIN: usize = 40;
/// Columns of the longest outcome word, `unexpected-pass`.
const WORD_COLUMNS: usize = 15;

/// Lines of a mount's reason.
const REASON_LINES_MAX: usize = 2;
/// Stands between a count and its word while lines are broken.
const NO_BREAK: char = '\u{A0}';

/// The report of a run, each line ended.
#[must_use]
pub fn render(record: &Record, style: Style) -> String {
    let width = if style.width == 0 { WIDTH } else { style.width.max(WIDTH_MIN) };
    let mut page = Page { out: String::new(), style: Style { width, ..style } };
    heading(&mut page, record);
    mounts(&mut page, record);
    for suite in view::suites(record) {
        let shown: Vec<&Row> =
            suite.rows.iter().copied().filter(|row| style.verbose || needs_a_look(row)).collect();
        if shown.is_empty() {
            continue;
        }
        page.blank();
        page.line(&[(Paint::Bold, &terminal_line(suite.id))]);
        for row in shown {
            story::row(&mut page, record, row);
        }
    }
    page.blank();
    let summary = Summary::of(&record.clauses);
    let paint = if summary.exit_status() == 0 { Paint::Good } else { Paint::Bad };
    page.line(&[(paint, &view::counts(&summary))]);
    page.line(&[(Paint::Plain, &view::exit_meaning(&summary))]);
    page.out
}

/// Whether a row is shown without being asked for.
fn needs_a_look(row: &Row) -> bool {
    match row.outcome {
        Outcome::Pass => row.advisories.as_deref().is_some_and(|lines| !lines.is_empty()),
        Outcome::Exempt | Outcome::NotDeclared | Outcome::NotRun => false,
        Outcome::Fail
        | Outcome::Error
        | Outcome::Tolerated
        | Outcome::ExpectedFail
        | Outcome::UnexpectedPass => true,
    }
}

fn heading(page: &mut Page, record: &Record) {
    let subject = &record.subject;
    let half = page.style.width / 2;
    let mut rest = String::new();
    if !subject.version.is_empty() {
        rest.push_str(&format!(" {}", fit(&terminal_line(&subject.version), half)));
    }
    if let Some(language) = &subject.language {
        rest.push_str(&format!(" ({})", fit(&terminal_line(language), half)));
    }
    rest.push_str(&format!(
        " · kit {} · seed {}",
        fit(&terminal_line(&record.kit), half),
        record.run.seed
    ));
    if let Some(shard) = &record.run.shard {
        rest.push_str(&format!(" · shard {}", terminal_line(shard)));
    }
    rest.push_str(&format!(" · {}", view::duration(record.run.duration_ms)));
    let name = match fit(&terminal_line(&subject.name), half) {
        name if name.is_empty() => "unnamed subject".into(),
        name => name,
    };
    page.line(&[(Paint::Bold, &name), (Paint::Plain, &rest)]);
}

fn mounts(page: &mut Page, record: &Record) {
    if record.mounts.is_empty() {
        return;
    }
    page.blank();
    let names: Vec<String> = record
        .mounts
        .iter()
        .map(|mount| fit(&terminal_line(&view::mount_name(mount)), page.style.width / 2))
        .collect();
    let column = names.iter().map(|name| name.width()).max().unwrap_or(0);
    for (mount, name) in record.mounts.iter().zip(&names) {
        let name = format!("  {}  ", pad(name, column));
        let word = pad(view::verdict_word(mount.verdict), "not-declared".len() + 2);
        let told = mount_told(record, mount);
        let room = page.style.width.saturating_sub(name.width() + word.width());
        // The reason may be long: it goes on under itself.
        let indent = name.width() + word.width();
        let mut lines = wrap(&told, room.max(20));
        if !page.style.verbose && lines.len() > REASON_LINES_MAX {
            lines.truncate(REASON_LINES_MAX);
            lines.push("… (-v shows it all)".into());
        }
        let mut lines = lines.into_iter().map(|line| line.replace(NO_BREAK, " "));
        let first = lines.next().unwrap_or_default();
        page.line(&[
            (Paint::Plain, &name),
            (verdict_paint(record, mount), &word),
            (Paint::Plain, &first),
        ]);
        for line in lines {
            page.line(&[(Paint::Plain, &format!("{}{line}", " ".repeat(indent)))]);
        }
    }
}

/// How the rows of a mount ended, and why it is not mounted.
fn mount_told(record: &Record, mount: &Mount) -> String {
    let summary = view::mount_summary(record, mount);
    let words: Vec<String> = Outcome::ALL
        .iter()
        .filter(|outcome| summary.count(**outcome) > 0)
        .map(|outcome| format!("{}{NO_BREAK}{}", grouped(summary.count(*outcome)), outcome.word()))
        .collect();
    let counts = match (mount.verdict, words.is_empty()) {
        (Verdict::Mounted, false) => words.join(", "),
        (Verdict::Mounted, true) => "no case".into(),
        (Verdict::NotDeclared | Verdict::Exempt | Verdict::Refused, _) => String::new(),
    };
    match &mount.reason {
        Some(reason) if counts.is_empty() => terminal_line(reason).into_owned(),
        Some(reason) => format!("{counts} ({})", terminal_line(reason)),
        None if counts.is_empty() => "no reason was recorded".into(),
        None => counts,
    }
}

fn verdict_paint(record: &Record, mount: &Mount) -> Paint {
    let summary = view::mount_summary(record, mount);
    match mount.verdict {
        Verdict::Refused => Paint::Bad,
        Verdict::NotDeclared | Verdict::Exempt => Paint::Dim,
        Verdict::Mounted if summary.fail + summary.error + summary.unexpected_pass > 0 => {
            Paint::Bad
        }
        Verdict::Mounted => Paint::Good,
    }
}

/// What a piece of a line is painted with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paint {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Odd,
}

impl Paint {
    fn codes(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "1;31",
            Self::Odd => "33",
        }
    }
}

/// The paint of an outcome word.
fn outcome_paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Pass => Paint::Good,
        Outcome::Fail | Outcome::Error | Outcome::UnexpectedPass => Paint::Bad,
        Outcome::Tolerated | Outcome::ExpectedFail => Paint::Odd,
        Outcome::Exempt | Outcome::NotDeclared | Outcome::NotRun => Paint::Dim,
    }
}

/// The text so far.
struct Page {
    out: String,
    style: Style,
}

impl Page {
    /// One line of painted pieces. The pieces are clean.
    fn line(&mut self, pieces: &[(Paint, &str)]) {
        for (paint, text) in pieces {
            if self.style.color && *paint != Paint::Plain && !text.is_empty() {
                self.out.push_str(&format!("\u{1b}[{}m{text}\u{1b}[0m", paint.codes()));
            } else {
                self.out.push_str(text);
            }
        }
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.out.push('\n');
    }

    /// One blank line, however often it is asked for.
    fn blank(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

/// `text` padded to `columns`.
fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// `text` in at most `columns`, its end replaced by `…` where it is longer.
fn fit(text: &str, columns: usize) -> String {
    if text.width() <= columns && text.chars().count() <= columns * 4 {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for (n, c) in text.chars().enumerate() {
        used += c.width().unwrap_or(0);
        // A flood of characters without a width is a flood all the same.
        if used >= columns || n >= columns * 4 {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// `text` in lines of at most `columns`, broken at spaces where there are some.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in terminal_text(text).lines() {
        let line = line.replace('\t', "    ");
        let mut rest = line.trim_end();
        while rest.width() > columns {
            let (head, tail) = rest.split_at(break_at(rest, columns));
            lines.push(head.trim_end().to_owned());
            rest = tail.trim_start();
        }
        lines.push(rest.to_owned());
    }
    lines
}

/// Where a line that is too long is broken: after the last space that fits, else where it must be.
fn break_at(line: &str, columns: usize) -> usize {
    let (mut used, mut hard, mut space) = (0, 0, 0);
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        hard = at + c.len_utf8();
        if c == ' ' {
            space = hard;
        }
    }
    let first = line.chars().next().map_or(0, char::len_utf8);
    // A space near the start is indentation, not a place to break.
    if space > hard / 3 { space } else { hard.max(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_wide_text_counts_double() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本語日本語", 4), ["日本", "語日", "本語"]);
        assert_eq!(wrap("a\n\n  b", 9), ["a", "", "  b"]);
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(pad("日", 4), "日  ");
    }
}
