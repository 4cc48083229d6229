//! How far a run has come: a bar on a terminal, a plain line now and then elsewhere.

use crate::cli::words;
use crate::event::Event;
use crate::plan::Plan;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};
use storeproof_contract::trial::Stop;

/// How often a plain line is said.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of one run, on stderr.
pub(super) struct Progress<'a> {
    plan: &'a Plan,
    total: usize,
    done: usize,
    failed: usize,
    bar: Option<ProgressBar>,
    quiet: bool,
    said: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn new(plan: &'a Plan, quiet: bool) -> Self {
        let total = plan.to_judge();
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(total as u64);
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { plan, total, done: 0, failed: 0, bar, quiet, said: Instant::now() }
    }

    pub(super) fn watch(&mut self, event: &Event) {
        match event {
            Event::Began { case } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(self.plan.cases[*case].id.clone());
                }
            }
            Event::Ended { judgement, .. } => {
                self.done += 1;
                match &judgement.verdict {
                    Err(Stop::Broken { .. }) => self.failed += 1,
                    Ok(()) | Err(Stop::Fault(_) | Stop::Undecided(_)) => {}
                }
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        } else if !self.quiet && self.said.elapsed() >= LINE_EVERY {
            self.said = Instant::now();
            words::note(&format!(
                "{} of {} clauses done, {} failed",
                self.done, self.total, self.failed
            ));
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
