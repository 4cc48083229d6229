//! The second pass over `junit-report`'s output: the attributes in one order, `skipped` counts, suite
//! properties, times with three digits, timestamps without a zone, text in place of CDATA.
//!
//! Attribute values are copied as they were escaped, with white space as character references: a
//! parser would otherwise read each line end in a message as a space.

use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

/// What one suite has beyond what `junit-report` writes.
pub(super) struct Extras {
    pub(super) skipped: usize,
    /// Clean, not yet escaped.
    pub(super) properties: Vec<(String, String)>,
}

/// Rewrites `xml`, whose suites are those of `extras`, in order.
pub(super) fn finish(xml: &[u8], root: &str, extras: &[Extras]) -> Result<String, String> {
    let xml = std::str::from_utf8(xml).map_err(|error| error.to_string())?;
    let mut reader = Reader::from_str(xml);
    let mut writer = Writer::new_with_indent(Vec::with_capacity(xml.len() * 2), b' ', 2);
    let mut extras = extras.iter();
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let done = matches!(event, Event::Eof);
        rewrite(event, root, &mut extras, &mut writer)?;
        if done {
            break;
        }
    }
    let mut out = String::from_utf8(writer.into_inner()).map_err(|error| error.to_string())?;
    out.push('\n');
    Ok(out)
}

/// A file that says that the report could not be drawn: better than no file, and never green.
pub(super) fn broken(root: &str, why: &str) -> String {
    let why = quick_xml::escape::escape(crate::text::xml_text(why)).into_owned();
    let root = quick_xml::escape::escape(root);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{root}\">\n  \
         <testsuite name=\"storeproof\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" \
         time=\"0.000\">\n    <testcase classname=\"storeproof\" name=\"storeproof/report\" \
         time=\"0.000\"><error type=\"Report\" message=\"the JUnit report could not be drawn\">\
         {why}</error></testcase>\n  </testsuite>\n</testsuites>\n"
    )
}

fn rewrite<'a>(
    event: Event<'_>,
    root: &str,
    extras: &mut impl Iterator<Item = &'a Extras>,
    writer: &mut Writer<Vec<u8>>,
) -> Result<(), String> {
    match event {
        Event::Decl(_) => put(writer, Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None))),
        Event::Start(start) => match start.name().as_ref() {
            b"testsuites" => {
                let mut element = BytesStart::new("testsuites");
                push(&mut element, "name", &escaped(root));
                put(writer, Event::Start(element))
            }
            b"testsuite" => open_suite(&start, extras, writer),
            _ => put(writer, Event::Start(element(&start)?)),
        },
        Event::Empty(start) => put(writer, Event::Empty(element(&start)?)),
        Event::CData(text) => {
            let text = std::str::from_utf8(&text).map_err(|error| error.to_string())?;
            put(writer, Event::Text(BytesText::from_escaped(text)))
        }
        Event::End(end) => put(writer, Event::End(end)),
        Event::Eof => Ok(()),
        // `junit-report` writes nothing else, and white space between elements is ours to set.
        Event::Text(_)
        | Event::Comment(_)
        | Event::PI(_)
        | Event::DocType(_)
        | Event::GeneralRef(_) => Ok(()),
    }
}

fn open_suite<'a>(
    start: &BytesStart<'_>,
    extras: &mut impl Iterator<Item = &'a Extras>,
    writer: &mut Writer<Vec<u8>>,
) -> Result<(), String> {
    let extras = extras.next().ok_or("more suites than were drawn")?;
    let mut suite = BytesStart::new("testsuite");
    for key in ["name", "tests", "failures", "errors"] {
        push(&mut suite, key, &attribute(start, key)?);
    }
    push(&mut suite, "skipped", &extras.skipped.to_string());
    push(&mut suite, "time", &seconds(&attribute(start, "time")?)?);
    // `2026-11-30T15:21:36.5Z`, in UTC: up to the seconds.
    let timestamp: String = attribute(start, "timestamp")?.chars().take(19).collect();
    push(&mut suite, "timestamp", &timestamp);
    push(&mut suite, "hostname", &attribute(start, "hostname")?);
    put(writer, Event::Start(suite))?;
    put(writer, Event::Start(BytesStart::new("properties")))?;
    for (name, value) in &extras.properties {
        let mut property = BytesStart::new("property");
        push(&mut property, "name", &escaped(name));
        push(&mut property, "value", &escaped(value));
        put(writer, Event::Empty(property))?;
    }
    put(writer, Event::End(BytesEnd::new("properties")))
}

/// A testcase or one of its children, attributes in the order of the dialect.
fn element(start: &BytesStart<'_>) -> Result<BytesStart<'static>, String> {
    let name = std::str::from_utf8(start.name().into_inner()).map_err(|error| error.to_string())?;
    let mut element = BytesStart::new(name.to_owned());
    match name {
        "testcase" => {
            push(&mut element, "classname", &attribute(start, "classname")?);
            push(&mut element, "name", &attribute(start, "name")?);
            push(&mut element, "time", &seconds(&attribute(start, "time")?)?);
        }
        "failure" | "error" | "skipped" => {
            push(&mut element, "type", &attribute(start, "type")?);
            push(&mut element, "message", &attribute(start, "message")?);
        }
        _ => {}
    }
    Ok(element)
}

/// An attribute as it was escaped, white space as references.
fn attribute(start: &BytesStart<'_>, key: &str) -> Result<String, String> {
    let found = start.try_get_attribute(key).map_err(|error| error.to_string())?;
    let found = found.ok_or_else(|| format!("no {key} in the first pass"))?;
    let value = std::str::from_utf8(&found.value).map_err(|error| error.to_string())?;
    Ok(white_space(value))
}

fn escaped(text: &str) -> String {
    white_space(&quick_xml::escape::escape(text))
}

fn white_space(escaped: &str) -> String {
    escaped.replace('\n', "&#10;").replace('\r', "&#13;").replace('\t', "&#9;")
}

/// Three digits, a dot, no exponent.
fn seconds(text: &str) -> Result<String, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("no time: {text:?}"))?;
    Ok(format!("{:.3}", seconds.max(0.0)))
}

/// `value` is escaped already.
fn push(element: &mut BytesStart<'_>, key: &str, value: &str) {
    element.push_attribute((key.as_bytes(), value.as_bytes()));
}

fn put(writer: &mut Writer<Vec<u8>>, event: Event<'_>) -> Result<(), String> {
    writer.write_event(event).map_err(|error| error.to_string())
}
