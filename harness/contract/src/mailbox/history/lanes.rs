//! A history as a picture: a lane for each worker, time downwards.
//!
//! ```text
//!     process 0, lane 0       process 1, lane 1
//!  1  ● append "a" → #1
//!  2                          ┌ ann claims for 60 ms
//!  3  ┌ drop                  │
//!  2  │                       └ l [#1 "a"]
//!  3  └ 1
//! ```

use super::act::Call;
use super::check::Violation;
use serde::Serialize;
use std::collections::BTreeMap;

/// The narrowest column that still says something, in characters.
const COLUMN_CHARS_MIN: usize = 12;
/// The widest, in characters.
const COLUMN_CHARS_MAX: usize = 48;
/// What stands before the first column: the number of the call.
const MARGIN_CHARS: usize = 5;

/// A history as data for a drawing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lanes {
    /// What each lane is called.
    pub lanes: Vec<String>,
    /// The calls, by the order of their sending.
    pub rows: Vec<Row>,
}

/// A call as data for a drawing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Which of [`Lanes::lanes`] it lies in.
    pub lane: usize,
    /// Where it begins: the places of all beginnings and ends are counted from 0.
    pub start: usize,
    /// Where it ends; none where it never had an answer.
    pub end: Option<usize>,
    /// The box.
    pub of: String,
    /// What was asked.
    pub label: String,
    /// What came back.
    pub answer: String,
    /// Whether this is the call that no order explains.
    pub bad: bool,
}

impl Violation {
    /// The small history as data for a drawing.
    #[must_use]
    pub fn lanes(&self) -> Lanes {
        Lanes::of(&self.calls, Some(self.bad))
    }
}

impl Lanes {
    /// These calls, of which `bad` is marked.
    #[must_use]
    pub fn of(calls: &[Call], bad: Option<usize>) -> Self {
        let mut lanes: BTreeMap<(usize, usize), usize> =
            calls.iter().map(|call| ((call.lane, call.process), 0)).collect();
        for (place, number) in lanes.values_mut().enumerate() {
            *number = place;
        }
        let mut moments: Vec<u64> = calls.iter().map(|call| call.sent.order).collect();
        moments.extend(calls.iter().filter_map(|call| call.answered).map(|stamp| stamp.order));
        moments.sort_unstable();
        moments.dedup();
        let place_of = |order: u64| moments.partition_point(|moment| *moment < order);
        let mut rows: Vec<Row> = calls
            .iter()
            .enumerate()
            .map(|(place, call)| Row {
                lane: lanes.get(&(call.lane, call.process)).copied().unwrap_or(0),
                start: place_of(call.sent.order),
                end: call.answered.map(|stamp| place_of(stamp.order)),
                of: call.of.to_string(),
                label: call.asked(),
                answer: call.came(),
                bad: bad == Some(place),
            })
            .collect();
        rows.sort_by_key(|row| row.start);
        let label = |(lane, process): &(usize, usize)| format!("process {process}, lane {lane}");
        Self { lanes: lanes.keys().map(label).collect(), rows }
    }

    /// The picture, at most `width` characters wide where the lanes leave each a readable column, and
    /// below it every call in full.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let room = width.saturating_sub(MARGIN_CHARS) / self.lanes.len().max(1);
        let column = room.clamp(COLUMN_CHARS_MIN, COLUMN_CHARS_MAX);
        let mut text = line("", self.lanes.iter().map(String::as_str), column);
        let last = self.rows.iter().map(|row| row.end.unwrap_or(row.start).max(row.start)).max();
        for moment in 0..=last.unwrap_or(0) {
            let Some((number, mark)) = self.mark(moment) else { continue };
            let lane = self.rows[number].lane;
            let cells: Vec<&str> = (0..self.lanes.len())
                .map(|at| match at {
                    _ if at == lane => mark.as_str(),
                    _ if self.is_open(at, moment) => "│",
                    _ => "",
                })
                .collect();
            text.push_str(&line(&(number + 1).to_string(), cells.into_iter(), column));
        }
        let several = self.rows.iter().any(|row| row.of != self.rows[0].of);
        for (number, row) in self.rows.iter().enumerate() {
            let mark = if row.bad { "✗" } else { " " };
            let of = if several { format!("{}: ", row.of) } else { String::new() };
            let (number, label, answer) = (number + 1, &row.label, &row.answer);
            text.push_str(&format!("{mark}{number:>2}  {of}{label} → {answer}\n"));
        }
        text
    }

    /// What begins or ends at a moment: whose, and how it is drawn. A call that nothing comes between is
    /// drawn at its beginning only.
    fn mark(&self, moment: usize) -> Option<(usize, String)> {
        self.rows.iter().enumerate().find_map(|(number, row)| {
            let bad = if row.bad { "✗ " } else { "" };
            let whole = row.end == Some(row.start + 1);
            let drawn = match (row.start == moment, row.end == Some(moment)) {
                (true, _) if whole => format!("● {bad}{} → {}", row.label, row.answer),
                (true, _) if row.end.is_none() => format!("┌ {bad}{} → ?", row.label),
                (true, _) => format!("┌ {bad}{}", row.label),
                (false, true) if !whole => format!("└ {bad}{}", row.answer),
                (false, _) => return None,
            };
            Some((number, drawn))
        })
    }

    fn is_open(&self, lane: usize, moment: usize) -> bool {
        self.rows.iter().any(|row| {
            row.lane == lane && row.start < moment && row.end.is_some_and(|end| moment < end)
        })
    }
}

fn line<'a>(number: &str, cells: impl Iterator<Item = &'a str>, column: usize) -> String {
    let mut text = format!("{number:>3}  ");
    for cell in cells {
        let chars = cell.chars().count();
        if chars < column {
            text.push_str(cell);
            text.push_str(&" ".repeat(column - chars));
        } else {
            text.extend(cell.chars().take(column - 2));
            text.push_str("… ");
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
