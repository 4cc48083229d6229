//! JSON as the clauses see it: equality by value, and excerpts that fit in a sentence.

pub use serde_json::Value as Json;

/// The most characters an [`excerpt`] shows.
const EXCERPT_CHARS_MAX: usize = 120;

/// Whether two values are the same body: objects without regard to member order, strings character
/// by character and never normalised, numbers as doubles (so `1` equals `1.0`).
///
/// Source: `mailbox/core/body-fidelity`.
#[must_use]
pub fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(x), Json::Number(y)) => x.as_f64() == y.as_f64(),
        (Json::Array(x), Json::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Json::Object(x), Json::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same(v, w)))
        }
        (Json::Null, Json::Null) => true,
        (Json::Bool(x), Json::Bool(y)) => x == y,
        (Json::String(x), Json::String(y)) => x == y,
        (
            Json::Null
            | Json::Bool(_)
            | Json::Number(_)
            | Json::String(_)
            | Json::Array(_)
            | Json::Object(_),
            _,
        ) => false,
    }
}

/// The value as compact text, cut to fit in a sentence; what was cut is said.
#[must_use]
pub fn excerpt(value: &Json) -> String {
    cut(&value.to_string())
}

/// The text cut to fit in a sentence; what was cut is said.
#[must_use]
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_compared_as_doubles_and_members_without_order() {
        assert!(same(&json!({"a": 1, "b": [2]}), &json!({"b": [2.0], "a": 1.0})));
        assert!(!same(&json!({"a": null}), &json!({})));
        assert!(!same(&json!("e\u{301}"), &json!("\u{e9}")));
        assert!(!same(&json!(1), &json!("1")));
    }

    #[test]
    fn a_cut_says_how_much_there_was() {
        assert_eq!(cut("short"), "short");
        assert!(cut(&"x".repeat(500)).ends_with("(500 bytes in all)"));
    }
}
