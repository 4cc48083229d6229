//! The HTML report: one file, no network, nothing foreign that is not text.
//!
//! Foreign text can reach the page through `Html::text` only: markup is `&'static str`, so a value
//! of a record cannot be passed for it. The Content-Security-Policy allows the one inline style and
//! the one inline script by their hashes and nothing else.
//!
//! Each case has an element whose `id` is the case id as it stands in a link (white space, quotes,
//! angle brackets and non-ASCII percent-encoded, as browsers do it): `report.html#<case id>` works.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use crate::record::{Outcome, Record, Row, Summary, Verdict};
use crate::text::{cut, grouped, terminal_text};
use crate::view;

mod lanes;
mod story;
mod suite;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// The longest text of one place of the page.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The longest name as it is shown; links hold more.
const NAME_BYTES_MAX: usize = 512;

/// The record as one self-contained page.
#[must_use]
pub fn write(record: &Record) -> String {
    let mut html = Html::default();
    let anchors = anchors(record);
    head(&mut html, record);
    html.raw("<body>\n<main>\n");
    verdict(&mut html, record);
    mounts(&mut html, record);
    tools(&mut html, &Summary::of(&record.clauses));
    let mut room = story::Room::default();
    for suite in view::suites(record) {
        suite::draw(&mut html, record, &suite, &anchors, &mut room);
    }
    html.raw("</main>\n<script>").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    html.out
}

/// The page so far.
#[derive(Default)]
struct Html {
    out: String,
}

impl Html {
    /// Markup of ours.
    fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Anything else: made visible, cut, escaped. For element content and for attributes in double
    /// quotes.
    fn text(&mut self, text: &str) -> &mut Self {
        self.long_text(text, TEXT_BYTES_MAX)
    }

    /// A name: isolated, so that its direction does not leak into the page.
    fn name(&mut self, name: &str) -> &mut Self {
        self.raw("<bdi>").long_text(name, NAME_BYTES_MAX).raw("</bdi>")
    }

    fn long_text(&mut self, text: &str, bytes_max: usize) -> &mut Self {
        for c in cut(&terminal_text(text), bytes_max).chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                c => self.out.push(c),
            }
        }
        self
    }

    fn number(&mut self, n: usize) -> &mut Self {
        self.out.push_str(&grouped(n));
        self
    }

    /// A number as a program reads it.
    fn plain(&mut self, n: usize) -> &mut Self {
        self.out.push_str(&n.to_string());
        self
    }

    /// ` data-o="word"`: what the style colours.
    fn tone(&mut self, outcome: Outcome) -> &mut Self {
        self.raw(" data-o=\"").raw(outcome.word()).raw("\"")
    }
}

/// The `id` of each row, by its place in the record.
struct Anchors(HashMap<*const Row, String>);

impl Anchors {
    fn of(&self, row: &Row) -> &str {
        self.0.get(&std::ptr::from_ref(row)).map_or("", String::as_str)
    }
}

fn anchors(record: &Record) -> Anchors {
    let mut taken = HashSet::new();
    let named = |row: &Row, taken: &mut HashSet<String>| {
        let name = view::unique(taken, view::shortened(&anchor(&row.id)));
        (std::ptr::from_ref(row), name)
    };
    Anchors(record.clauses.iter().map(|row| named(row, &mut taken)).collect())
}

/// An id as a link holds it: what the URL standard encodes in a fragment is encoded, so that the id
/// and the link are the same text whoever wrote the link.
fn anchor(id: &str) -> String {
    view::encode(id, |c| !c.is_ascii() || c <= ' ' || matches!(c, '"' | '<' | '>' | '`' | '\u{7F}'))
}

fn head(html: &mut Html, record: &Record) {
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '",
    );
    html.out.push_str(&hash(STYLE));
    html.raw("'; script-src '");
    html.out.push_str(&hash(SCRIPT));
    html.raw("'; base-uri 'none'; form-action 'none'\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html.long_text(&subject_name(record), NAME_BYTES_MAX).raw(" · storeproof</title>\n");
    html.raw("<style>").raw(STYLE).raw("</style>\n</head>\n");
}

/// The hash of an inline element as the policy names it.
fn hash(inline: &str) -> String {
    let digest = Sha256::digest(inline.as_bytes());
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
}

fn subject_name(record: &Record) -> String {
    match record.subject.name.trim() {
        "" => "unnamed subject".into(),
        name => name.into(),
    }
}

fn verdict(html: &mut Html, record: &Record) {
    let (subject, run) = (&record.subject, &record.run);
    html.raw("<h1>").name(&subject_name(record));
    if !subject.version.is_empty() {
        html.raw(" <span class=\"soft\">").name(&subject.version).raw("</span>");
    }
    html.raw("</h1>\n<p class=\"facts\">");
    if let Some(language) = &subject.language {
        html.name(language).raw(" · ");
    }
    html.raw("kit ").name(&record.kit).raw(" · seed <code>").text(&run.seed.to_string());
    html.raw("</code>");
    if let Some(shard) = &run.shard {
        html.raw(" · shard ").name(shard);
    }
    html.raw(" · ").text(&run.started).raw(" · took ").text(&view::duration(run.duration_ms));
    html.raw("</p>\n");
    let summary = Summary::of(&record.clauses);
    let tone = if summary.exit_status() == 0 { "held" } else { "broken" };
    html.raw("<section class=\"verdict ").raw(tone).raw("\" aria-label=\"Verdict\">\n<strong>");
    html.text(&view::exit_meaning(&summary)).raw("</strong>\n<p class=\"soft\">");
    html.number(summary.judged()).raw(" judged of ").number(record.clauses.len());
    html.raw(" cases</p>\n");
    chips(html, &summary);
    html.raw("</section>\n<p class=\"facts\">declared <code>");
    html.text(&subject.capabilities.to_string()).raw("</code>");
    if let Some(limits) = &subject.limits {
        html.raw(" · limits <code>").text(&limits.to_string()).raw("</code>");
    }
    html.raw("</p>\n");
}

fn chips(html: &mut Html, summary: &Summary) {
    html.raw("<ul class=\"chips\">");
    for outcome in Outcome::ALL.into_iter().filter(|outcome| summary.count(*outcome) > 0) {
        html.raw("<li class=\"chip\"").tone(outcome).raw(">").number(summary.count(outcome));
        html.raw(" ").raw(outcome.word()).raw("</li>");
    }
    html.raw("</ul>\n");
}

fn mounts(html: &mut Html, record: &Record) {
    if record.mounts.is_empty() {
        return;
    }
    html.raw("<div class=\"mounts\"><table>\n<thead><tr><th scope=\"col\">Suite</th>");
    html.raw("<th scope=\"col\">Mount</th><th scope=\"col\">Outcomes</th>");
    html.raw("<th scope=\"col\">Why</th></tr></thead>\n<tbody>\n");
    for mount in &record.mounts {
        html.raw("<tr><th scope=\"row\">").name(&mount.suite);
        if let Some(face) = &mount.face {
            html.raw(" <span class=\"soft\">· ").name(face).raw("</span>");
        }
        let class = match mount.verdict {
            Verdict::Mounted => "mounted",
            Verdict::Refused => "refused",
            Verdict::NotDeclared | Verdict::Exempt => "unmounted",
        };
        html.raw("</th><td class=\"").raw(class).raw("\">");
        html.raw(view::verdict_word(mount.verdict)).raw("</td><td>");
        let summary = view::mount_summary(record, mount);
        if Outcome::ALL.iter().any(|outcome| summary.count(*outcome) > 0) {
            chips(html, &summary);
        }
        html.raw("</td><td class=\"soft\">");
        let unsaid = mount.verdict != Verdict::Mounted;
        match &mount.reason {
            Some(reason) => html.text(reason),
            None if unsaid => html.raw("no reason was recorded"),
            None => html,
        };
        html.raw("</td></tr>\n");
    }
    html.raw("</tbody></table></div>\n");
}

/// Search and filter: hidden until the script is there to serve them.
fn tools(html: &mut Html, summary: &Summary) {
    html.raw("<div class=\"tools\" role=\"search\" hidden>\n");
    html.raw("<input type=\"search\" placeholder=\"Search clauses and texts ( / )\" ");
    html.raw("aria-label=\"Search clauses and texts\">\n");
    for outcome in Outcome::ALL.into_iter().filter(|outcome| summary.count(*outcome) > 0) {
        html.raw("<label><input type=\"checkbox\" checked value=\"").raw(outcome.word());
        html.raw("\"><span class=\"chip\"").tone(outcome).raw(">");
        html.raw(outcome.word()).raw("</span></label>\n");
    }
    html.raw("<button type=\"button\" data-do=\"open\">Open all</button>\n");
    html.raw("<button type=\"button\" data-do=\"close\">Close all</button>\n");
    html.raw("<output aria-live=\"polite\"></output>\n</div>\n");
}

/// What an outcome is drawn as, beside its colour.
fn sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "✓",
        Outcome::Fail => "✗",
        Outcome::Error => "!",
        Outcome::Tolerated => "≈",
        Outcome::ExpectedFail => "✗",
        Outcome::UnexpectedPass => "✓",
        Outcome::Exempt => "○",
        Outcome::NotDeclared => "–",
        Outcome::NotRun => "·",
    }
}
