//! One suite: a tile a clause, a dot a case, and below them the stories.

use super::{Anchors, Html, chips, sign, story};
use crate::record::{Outcome, Record, Row};
use crate::view::{self, Suite};

pub(super) fn draw(
    html: &mut Html,
    record: &Record,
    suite: &Suite<'_>,
    anchors: &Anchors,
    room: &mut story::Room,
) {
    if suite.rows.is_empty() {
        return;
    }
    html.raw("<section class=\"suite\">\n<header><h2>").name(suite.id).raw("</h2>");
    chips(html, &suite.summary());
    html.raw("</header>\n<ul class=\"grid\">\n");
    for rows in clauses(suite) {
        tile(html, record, &rows, anchors);
    }
    html.raw("</ul>\n");
    for row in suite.rows.iter().filter(|row| has_story(row)) {
        story::draw(html, record, row, anchors, room);
    }
    unjudged(html, record, suite, anchors);
    html.raw("</section>\n");
}

/// The rows of each clause, clauses in the order of their first row.
fn clauses<'a>(suite: &Suite<'a>) -> Vec<Vec<&'a Row>> {
    let mut clauses: Vec<Vec<&Row>> = Vec::new();
    let mut at = std::collections::HashMap::new();
    for row in &suite.rows {
        let index = *at.entry(row.clause.as_str()).or_insert_with(|| {
            clauses.push(Vec::new());
            clauses.len() - 1
        });
        clauses[index].push(row);
    }
    clauses
}

/// A row that says more than its outcome and its reason.
fn has_story(row: &Row) -> bool {
    let advised = row.advisories.as_deref().is_some_and(|lines| !lines.is_empty());
    !is_unjudged(row) && (row.outcome != Outcome::Pass || advised || row.message.is_some())
}

/// A row of which there is only to say why nobody looked.
fn is_unjudged(row: &Row) -> bool {
    match row.outcome {
        Outcome::Exempt | Outcome::NotDeclared | Outcome::NotRun => true,
        Outcome::Pass
        | Outcome::Fail
        | Outcome::Error
        | Outcome::Tolerated
        | Outcome::ExpectedFail
        | Outcome::UnexpectedPass => false,
    }
}

/// One closed list of what was not judged and why: dozens of rows with one reason are no story.
fn unjudged(html: &mut Html, record: &Record, suite: &Suite<'_>, anchors: &Anchors) {
    let rows: Vec<&Row> = suite.rows.iter().copied().filter(|row| is_unjudged(row)).collect();
    if rows.is_empty() {
        return;
    }
    html.raw("<details class=\"story\"").tone(Outcome::NotRun).raw("><summary><span>");
    html.number(rows.len()).raw(if rows.len() == 1 { " case" } else { " cases" });
    html.raw(" not judged, and why</span></summary>\n<div><ul class=\"unjudged\">\n");
    for row in rows {
        html.raw("<li id=\"").long_text(anchors.of(row), usize::MAX).raw("\" data-find=\"");
        html.raw(row.outcome.word()).raw("\"><span class=\"chip\"").tone(row.outcome).raw(">");
        html.raw(row.outcome.word()).raw("</span><code>").name(&row.id);
        html.raw("</code><span class=\"soft\">").text(&view::message(record, row));
        html.raw("</span></li>\n");
    }
    html.raw("</ul></div></details>\n");
}

fn tile(html: &mut Html, record: &Record, rows: &[&Row], anchors: &Anchors) {
    let Some(first) = rows.first() else { return };
    let mut outcomes: Vec<Outcome> = rows.iter().map(|row| row.outcome).collect();
    outcomes.sort_by_key(|outcome| gravity(*outcome));
    outcomes.dedup();
    html.raw("<li class=\"tile\"").tone(outcomes[0]).raw(" data-find=\"");
    for (at, outcome) in outcomes.iter().enumerate() {
        html.raw(if at == 0 { "" } else { " " }).raw(outcome.word());
    }
    html.raw("\" title=\"").long_text(&first.clause, super::NAME_BYTES_MAX).raw("\">");
    html.raw("<span class=\"slug\">");
    html.name(first.clause.rsplit('/').next().unwrap_or_default());
    html.raw("</span><span class=\"dots\">");
    for row in rows {
        dot(html, record, row, anchors);
    }
    html.raw("</span></li>\n");
}

fn dot(html: &mut Html, record: &Record, row: &Row, anchors: &Anchors) {
    html.raw("<a class=\"dot\"").tone(row.outcome);
    if !has_story(row) && !is_unjudged(row) {
        html.raw(" id=\"").long_text(anchors.of(row), usize::MAX).raw("\"");
    }
    html.raw(" href=\"#").long_text(anchors.of(row), usize::MAX).raw("\" title=\"");
    html.raw(row.outcome.word()).raw(": ").long_text(&row.id, super::NAME_BYTES_MAX);
    html.raw(" (").text(&view::duration(row.ms)).raw(")");
    if row.outcome != Outcome::Pass {
        let message = view::message(record, row);
        html.raw("\n").long_text(message.lines().next().unwrap_or_default(), 256);
    }
    html.raw("\"><span aria-hidden=\"true\">").raw(sign(row.outcome)).raw("</span></a>");
}

/// The outcome that a tile of several cases is coloured by: the first of these.
fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Fail => 0,
        Outcome::UnexpectedPass => 1,
        Outcome::Error => 2,
        Outcome::ExpectedFail => 3,
        Outcome::Tolerated => 4,
        Outcome::Pass => 5,
        Outcome::Exempt => 6,
        Outcome::NotDeclared => 7,
        Outcome::NotRun => 8,
    }
}
