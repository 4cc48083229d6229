//! Reads a JUnit report back with a real parser, and holds the document to XML 1.0 on the way.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element: name, attributes, text, children.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    pub fn count(&self, name: &str) -> usize {
        self.attribute(name).parse().expect("a count")
    }

    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Every testcase of a report.
    pub fn cases(&self) -> Vec<&Element> {
        self.children("testsuite").flat_map(|suite| suite.children("testcase")).collect()
    }

    /// The result child of a testcase.
    pub fn result(&self) -> Option<&Element> {
        let mut results = self.children.iter().filter(|child| child.name != "system-out");
        let result = results.next();
        assert!(results.next().is_none(), "more than one result: {self:?}");
        result
    }
}

/// The root element of a well-formed document.
pub fn parse(xml: &str) -> Element {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..);
    assert!(xml.chars().all(allowed), "a character that XML 1.0 does not allow");
    assert!(!xml.contains("]]>") && !xml.contains("<![CDATA["), "CDATA, or its end in text");
    let mut reader = Reader::from_str(xml);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(start) => open.push(element(&start)),
            Event::Empty(start) => top(&mut open).children.push(element(&start)),
            Event::End(_) => {
                let done = open.pop().expect("an open element");
                top(&mut open).children.push(done);
            }
            Event::Text(text) => {
                let text = std::str::from_utf8(&text).expect("UTF-8").to_owned();
                top(&mut open).text.push_str(&text);
            }
            Event::GeneralRef(reference) => {
                let reference = format!("&{};", std::str::from_utf8(&reference).expect("UTF-8"));
                let text = quick_xml::escape::unescape(&reference).expect("a known reference");
                let text = text.into_owned();
                top(&mut open).text.push_str(&text);
            }
            Event::Decl(_) => {}
            Event::Eof => break,
            other @ (Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_)) => {
                panic!("nothing else belongs here: {other:?}")
            }
        }
    }
    assert_eq!(open.len(), 1, "an element was left open");
    let mut document = open.pop().expect("the document");
    assert_eq!(document.children.len(), 1);
    document.children.pop().expect("the root")
}

fn top(open: &mut [Element]) -> &mut Element {
    open.last_mut().expect("the document at least")
}

fn element(start: &BytesStart<'_>) -> Element {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.expect("an attribute");
        let raw = std::str::from_utf8(&attribute.value).expect("UTF-8");
        // A parser would turn these into spaces.
        assert!(!raw.contains(['\n', '\r', '\t', '<']), "{raw:?}");
        let value = quick_xml::escape::unescape(raw).expect("known references").into_owned();
        (String::from_utf8(attribute.key.as_ref().to_vec()).expect("UTF-8"), value)
    });
    Element {
        name: String::from_utf8(start.name().as_ref().to_vec()).expect("UTF-8"),
        attributes: attributes.collect(),
        ..Element::default()
    }
}
