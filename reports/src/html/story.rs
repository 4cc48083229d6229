//! A case that needs a look: what was promised and seen, the calls, the line that runs it again.

use serde_json::Value;

use super::{Anchors, Html, NAME_BYTES_MAX};
use crate::compact::{self, Line};
use crate::record::{Outcome, Record, Row, Step, Tier};
use crate::view;

/// Literal params and answers of one step.
const VALUE_BYTES_MAX: usize = 4 * 1024;
/// All of them together; from there on the page shows the short forms only.
const VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Steps shown at the start and at the end of a long transcript.
const STEPS_SHOWN: usize = 100;

/// How much of the page literal values have taken.
#[derive(Default)]
pub(super) struct Room {
    taken: usize,
}

pub(super) fn draw(
    html: &mut Html,
    record: &Record,
    row: &Row,
    anchors: &Anchors,
    room: &mut Room,
) {
    html.raw("<details class=\"story\" id=\"").long_text(anchors.of(row), usize::MAX).raw("\"");
    html.tone(row.outcome).raw(" data-find=\"").raw(row.outcome.word()).raw("\"");
    if opens(row.outcome) {
        html.raw(" open");
    }
    html.raw(">\n<summary><span class=\"chip\"").tone(row.outcome).raw(">");
    html.raw(row.outcome.word()).raw("</span> <code>").name(&row.id).raw("</code> ");
    html.raw("<span class=\"facts\">").raw(tier(row.tier)).raw(" · ");
    html.text(&view::duration(row.ms)).raw("</span></summary>\n<div>\n");
    if row.outcome != Outcome::Pass || row.message.is_some() {
        // A parser drops the first line end of a `<pre>`: this one, not one of the text.
        html.raw("<pre>\n").text(&view::message(record, row)).raw("</pre>\n");
    }
    if let Some(lanes) = &row.lanes {
        super::lanes::draw(html, lanes);
    }
    if let Some(steps) = row.steps.as_deref().filter(|steps| !steps.is_empty()) {
        transcript(html, steps, room);
    }
    for advisory in row.advisories.iter().flatten() {
        html.raw("<p class=\"advisory\"><bdi>Advisory: ").text(advisory).raw("</bdi></p>\n");
    }
    if let Some(replay) = &row.replay {
        html.raw("<div><h3>Run it again</h3><div class=\"replay\"><pre>\n").text(replay);
        html.raw("</pre><button type=\"button\" data-do=\"copy\">Copy</button></div></div>\n");
    }
    html.raw("</div>\n</details>\n");
}

/// Whether the story is open before anyone asks.
fn opens(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Fail | Outcome::Error | Outcome::UnexpectedPass => true,
        Outcome::Pass
        | Outcome::Tolerated
        | Outcome::ExpectedFail
        | Outcome::Exempt
        | Outcome::NotDeclared
        | Outcome::NotRun => false,
    }
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::T1 => "T1",
        Tier::T2 => "T2",
    }
}

fn transcript(html: &mut Html, steps: &[Step], room: &mut Room) {
    html.raw("<div><h3>Steps</h3><ol class=\"steps\">\n");
    let lines = compact::lines(steps, compact::SHORT);
    for (at, (step, line)) in steps.iter().zip(&lines).enumerate() {
        if at >= STEPS_SHOWN && at + STEPS_SHOWN < steps.len() {
            if at == STEPS_SHOWN {
                html.raw("<li class=\"gap\"><span></span><span>… ");
                html.number(steps.len() - 2 * STEPS_SHOWN);
                html.raw(" steps are in the JSON report</span></li>\n");
            }
            continue;
        }
        draw_step(html, step, line, room);
    }
    html.raw("</ol></div>\n");
}

fn draw_step(html: &mut Html, step: &Step, line: &Line, room: &mut Room) {
    html.raw("<li><details><summary><span class=\"n\">").text(&step.n.to_string());
    html.raw("</span><code>").long_text(&line.asked, NAME_BYTES_MAX);
    html.raw("</code><code>→ ").long_text(&line.answered, NAME_BYTES_MAX);
    html.raw("</code></summary>\n<div class=\"both\"><div><h3>Asked</h3><pre>");
    literal(html, &step.params, room);
    html.raw("</pre></div><div><h3>Answered</h3><pre>");
    literal(html, &step.answer, room);
    html.raw("</pre></div></div></details></li>\n");
}

/// The value as JSON, cut where it is long.
fn literal(html: &mut Html, value: &Value, room: &mut Room) {
    if room.taken >= VALUES_BYTES_MAX {
        html.raw("(in the JSON report: this page is full)");
        return;
    }
    // Indenting a value of a thousand levels would take megabytes of spaces.
    let text = if is_deep(value, 12) { value.to_string() } else { format!("{value:#}") };
    let before = html.out.len();
    html.long_text(&text, VALUE_BYTES_MAX);
    room.taken += html.out.len() - before;
}

fn is_deep(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deep(item, levels - 1)),
        Value::Object(members) => {
            levels == 0 || members.values().any(|member| is_deep(member, levels - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
