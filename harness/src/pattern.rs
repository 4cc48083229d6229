//! Patterns over ids: compared component by component, `*` for one, `**` for any number.

/// A pattern such as `mailbox/*/fifo` or `mailbox/**`. It takes everything below what it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// A pattern as it was written.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern takes `id`: it matches the whole id, or its first components.
    #[must_use]
    pub fn takes(&self, id: &str) -> bool {
        let pattern: Vec<&str> = self.text.split('/').collect();
        let id: Vec<&str> = id.split('/').collect();
        takes(&pattern, &id)
    }
}

/// Whether `pattern` matches a prefix of `id`, in time proportional to the product of their lengths.
fn takes(pattern: &[&str], id: &[&str]) -> bool {
    // reached[i]: the pattern so far matches the first i components of the id.
    let mut reached = vec![false; id.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; id.len() + 1];
        if *part == "**" {
            let mut any = false;
            for (now, then) in reached.iter().zip(&mut next) {
                any |= now;
                *then = any;
            }
        } else {
            for (i, name) in id.iter().enumerate() {
                next[i + 1] = reached[i] && (*part == "*" || part == name);
            }
        }
        reached = next;
    }
    reached.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_pattern_takes_what_it_matches_and_everything_below() {
        let cases = [
            ("mailbox", "mailbox/core/fifo", true),
            ("mailbox/core", "mailbox/core/fifo", true),
            ("mailbox/core/fifo", "mailbox/core/fifo", true),
            ("mailbox/core/fifo/face", "mailbox/core/fifo", false),
            ("mailbox/cor", "mailbox/core/fifo", false),
            ("mailbox/*", "mailbox/core/fifo", true),
            ("*/*/fifo", "mailbox/core/fifo", true),
            ("*/fifo", "mailbox/core/fifo", false),
            ("**/fifo", "mailbox/core/fifo", true),
            ("**/core", "mailbox/core/fifo", true),
            ("**", "mailbox/core/fifo", true),
            ("mailbox/**/fifo", "mailbox/core/fifo", true),
            ("mailbox/**/core/fifo", "mailbox/core/fifo", true),
            ("mailbox/**/queue", "mailbox/core/fifo", false),
            ("fifo", "mailbox/core/fifo", false),
            ("", "mailbox/core/fifo", false),
            ("mailbox/", "mailbox/core/fifo", false),
        ];
        for (pattern, id, takes) in cases {
            assert_eq!(Pattern::new(pattern).takes(id), takes, "{pattern} on {id}");
        }
    }

    #[test]
    fn many_double_stars_take_no_exponential_time() {
        let pattern = Pattern::new(&["**/a"; 40].join("/"));
        assert!(!pattern.takes(&["a"; 39].join("/")));
        assert!(pattern.takes(&["a"; 40].join("/")));
    }
}
