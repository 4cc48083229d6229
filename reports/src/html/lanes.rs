//! A concurrent history as a picture: a column a worker, time downwards, a bar a call from the moment
//! it was sent to the moment it was answered; below it every call in full.

use super::{Html, NAME_BYTES_MAX};
use crate::record::{LaneCall, Lanes};

/// The most lanes and moments that are drawn; the list below holds all calls, as the JSON report does.
const LANES_MAX: usize = 16;
/// See [`LANES_MAX`].
const MOMENTS_MAX: usize = 200;
/// Sizes of the picture, in its own units.
const COLUMN: usize = 250;
/// The height of a moment.
const MOMENT: usize = 24;
/// The height of the lanes' names.
const HEAD: usize = 28;
/// How much text fits beside a bar, in characters.
const LABEL_CHARS_MAX: usize = 36;

pub(super) fn draw(html: &mut Html, lanes: &Lanes) {
    if lanes.rows.is_empty() {
        return;
    }
    html.raw("<div><h3>The calls that cannot stand together</h3>\n");
    let moments = lanes.rows.iter().map(|row| row.end.unwrap_or(row.start)).max().unwrap_or(0) + 1;
    if lanes.lanes.len() <= LANES_MAX && moments <= MOMENTS_MAX {
        picture(html, lanes, moments);
    }
    html.raw("<ol class=\"calls\">\n");
    for row in &lanes.rows {
        html.raw(if row.bad { "<li class=\"bad\"><code>" } else { "<li><code>" });
        html.long_text(lanes.lanes.get(row.lane).map_or("", String::as_str), NAME_BYTES_MAX);
        html.raw("</code> <code>").long_text(&row.of, NAME_BYTES_MAX).raw("</code> <code>");
        html.long_text(&row.label, NAME_BYTES_MAX).raw("</code> → <code>");
        html.long_text(&row.answer, NAME_BYTES_MAX).raw("</code>");
        html.raw(if row.bad {
            " <strong>no order explains this</strong></li>\n"
        } else {
            "</li>\n"
        });
    }
    html.raw("</ol></div>\n");
}

fn picture(html: &mut Html, lanes: &Lanes, moments: usize) {
    let (width, height) = (lanes.lanes.len() * COLUMN, HEAD + moments * MOMENT + MOMENT);
    html.raw("<div class=\"lanes\"><svg role=\"img\" aria-label=\"a lane for each worker, time downwards\"");
    attribute(html, " width=\"", width);
    attribute(html, " height=\"", height);
    html.raw(" viewBox=\"0 0 ").plain(width).raw(" ").plain(height).raw("\">\n");
    for (at, lane) in lanes.lanes.iter().enumerate() {
        words(html, "lane", at * COLUMN + 8, 18, lane);
        html.raw("<line class=\"rail\"");
        for (name, value) in [
            (" x1=\"", at * COLUMN + 14),
            (" x2=\"", at * COLUMN + 14),
            (" y1=\"", HEAD),
            (" y2=\"", height),
        ] {
            attribute(html, name, value);
        }
        html.raw("></line>\n");
    }
    for (number, row) in (1..).zip(&lanes.rows) {
        bar(html, row, number, moments);
    }
    html.raw("</svg></div>\n");
}

fn bar(html: &mut Html, row: &LaneCall, number: usize, moments: usize) {
    let (x, y) = (row.lane * COLUMN, HEAD + row.start * MOMENT);
    // A call without an answer is open to the end.
    let end = row.end.unwrap_or(moments);
    html.raw("<g class=\"call").raw(if row.bad { " bad" } else { "" });
    html.raw(if row.end.is_none() { " open\"><title>" } else { "\"><title>" });
    html.long_text(&row.label, NAME_BYTES_MAX).raw(" → ").long_text(&row.answer, NAME_BYTES_MAX);
    html.raw("</title><rect rx=\"3\" width=\"12\"");
    attribute(html, " x=\"", x + 8);
    attribute(html, " y=\"", y + 4);
    attribute(html, " height=\"", (end - row.start.min(end)) * MOMENT + MOMENT - 8);
    html.raw("></rect>\n");
    words(html, "asked", x + 26, y + 16, &format!("{number}. {}", row.label));
    if let Some(end) = row.end {
        let y = HEAD + end * MOMENT + if end == row.start { 30 } else { 16 };
        words(html, "answer", x + 26, y, &format!("→ {}", row.answer));
    } else {
        words(html, "answer", x + 26, HEAD + moments * MOMENT + 16, "no answer");
    }
    html.raw("</g>\n");
}

fn attribute(html: &mut Html, name: &'static str, value: usize) {
    html.raw(name).plain(value).raw("\"");
}

fn words(html: &mut Html, class: &'static str, x: usize, y: usize, text: &str) {
    let mut shown: String = text.chars().take(LABEL_CHARS_MAX).collect();
    if text.chars().count() > LABEL_CHARS_MAX {
        shown.push('…');
    }
    html.raw("<text class=\"").raw(class).raw("\"");
    attribute(html, " x=\"", x);
    attribute(html, " y=\"", y);
    html.raw(">").long_text(&shown, NAME_BYTES_MAX).raw("</text>\n");
}
