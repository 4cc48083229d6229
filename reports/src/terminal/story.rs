//! One row, and below a finding its story.

use unicode_width::UnicodeWidthStr as _;

use super::{Page, Paint, WORD_COLUMNS, fit, outcome_paint, pad, wrap};
use crate::compact;
use crate::record::{Outcome, Record, Row, Step};
use crate::text::{TEXT_BYTES_MAX, grouped, terminal_line};
use crate::view;

/// Columns left of a story, under the row it belongs to.
const INDENT: usize = 4;
/// Lines of what was promised and seen.
const MESSAGE_LINES_MAX: usize = 40;
/// Bytes of it, wherever they break.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Lines of an error: its end is where the cause is.
const ERROR_LINES_MAX: usize = 15;
/// Steps shown at the start and at the end of a long transcript.
const FIRST_STEPS: usize = 8;
const LAST_STEPS: usize = 24;

/// The row's line and what is to be said about it.
pub(super) fn row(page: &mut Page, record: &Record, row: &Row) {
    let word = pad(row.outcome.word(), WORD_COLUMNS);
    let id = terminal_line(&row.id);
    let took = if row.ms > 0 { format!("  {}", view::duration(row.ms)) } else { String::new() };
    page.line(&[
        (Paint::Plain, "  "),
        (outcome_paint(row.outcome), &word),
        (Paint::Plain, "  "),
        (Paint::Plain, &id),
        (Paint::Dim, &took),
    ]);
    match row.outcome {
        Outcome::Fail | Outcome::UnexpectedPass => {
            message(page, &view::message(record, row), Keep::Head);
            story(page, row);
        }
        Outcome::Error => {
            message(page, &view::message(record, row), Keep::Tail);
            story(page, row);
        }
        Outcome::Tolerated
        | Outcome::ExpectedFail
        | Outcome::Exempt
        | Outcome::NotDeclared
        | Outcome::NotRun => {
            reason(page, &view::message(record, row));
            advisories(page, row);
        }
        Outcome::Pass => advisories(page, row),
    }
}

fn story(page: &mut Page, row: &Row) {
    if let Some(steps) = row.steps.as_deref().filter(|steps| !steps.is_empty()) {
        transcript(page, steps);
    }
    advisories(page, row);
    if let Some(replay) = &row.replay {
        // Never cut and never wrapped: it is there to be copied.
        page.line(&[
            (Paint::Dim, &" ".repeat(INDENT)),
            (Paint::Dim, "replay: "),
            (Paint::Bold, &terminal_line(replay)),
        ]);
    }
    page.blank();
}

/// Which part of a message is worth more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Its beginning.
    Head,
    /// Its first line and its end: what happened, and the last words of whom it happened to.
    Tail,
}

fn message(page: &mut Page, text: &str, keep: Keep) {
    let verbose = page.style.verbose;
    let text = crate::text::cut(text, if verbose { TEXT_BYTES_MAX } else { MESSAGE_BYTES_MAX });
    let lines = wrap(&text, page.style.width - INDENT);
    let lines_max = match keep {
        _ if verbose => usize::MAX,
        Keep::Head => MESSAGE_LINES_MAX,
        Keep::Tail => ERROR_LINES_MAX,
    };
    let hidden = lines.len().saturating_sub(lines_max);
    let head = match keep {
        Keep::Head => lines.len() - hidden,
        Keep::Tail => 1.min(lines.len()),
    };
    for (at, line) in lines.iter().enumerate() {
        if hidden > 0 && at == head {
            let note = format!("… {} lines left out; the JSON report holds them", grouped(hidden));
            indented(page, Paint::Dim, &note);
        }
        if at < head || at >= head + hidden {
            indented(page, Paint::Plain, line);
        }
    }
}

/// Why a row decides nothing: one line, or two.
fn reason(page: &mut Page, text: &str) {
    let lines = wrap(&crate::text::cut(text, 4 * 1024), page.style.width - INDENT);
    let lines_max = if page.style.verbose { usize::MAX } else { 2 };
    for line in lines.iter().take(lines_max) {
        indented(page, Paint::Dim, line);
    }
    if lines.len() > lines_max {
        let hidden = grouped(lines.len() - lines_max);
        indented(
            page,
            Paint::Dim,
            &format!("… {hidden} lines left out; the JSON report holds them"),
        );
    }
}

fn transcript(page: &mut Page, steps: &[Step]) {
    let lines = compact::lines(steps, compact::SHORT);
    let digits = steps.iter().map(|step| step.n).max().unwrap_or(1).to_string().len();
    let hides = !page.style.verbose && steps.len() > FIRST_STEPS + LAST_STEPS + 1;
    for (at, (step, line)) in steps.iter().zip(&lines).enumerate() {
        let hidden = hides && at >= FIRST_STEPS && at + LAST_STEPS < steps.len();
        if hidden && at == FIRST_STEPS {
            let count = grouped(steps.len() - FIRST_STEPS - LAST_STEPS);
            indented(
                page,
                Paint::Dim,
                &format!("… {count} steps; -v and the JSON report show them"),
            );
        }
        if hidden {
            continue;
        }
        let number = format!("{:>digits$}. ", step.n);
        let room = page.style.width.saturating_sub(INDENT + number.width());
        let (asked, answered) = share(&line.asked, &line.answered, room);
        page.line(&[
            (Paint::Plain, &" ".repeat(INDENT)),
            (Paint::Dim, &number),
            (Paint::Plain, &asked),
            (Paint::Dim, " -> "),
            (Paint::Plain, &answered),
        ]);
    }
}

/// Both halves of a call in `room` columns: the answer keeps at least half, as it is what was seen.
fn share(asked: &str, answered: &str, room: usize) -> (String, String) {
    let room = room.saturating_sub(" -> ".len());
    let spare = room.saturating_sub(asked.width());
    let answered = fit(answered, spare.max(room / 2));
    (fit(asked, room.saturating_sub(answered.width())), answered)
}

fn advisories(page: &mut Page, row: &Row) {
    for advisory in row.advisories.iter().flatten() {
        let text = format!("advisory: {}", crate::text::cut(advisory, 4 * 1024));
        for line in wrap(&text, page.style.width - INDENT) {
            indented(page, Paint::Odd, &line);
        }
    }
}

fn indented(page: &mut Page, paint: Paint, line: &str) {
    page.line(&[(Paint::Plain, &" ".repeat(INDENT)), (paint, line)]);
}
