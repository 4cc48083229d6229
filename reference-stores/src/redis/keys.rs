//! The keys of a storage: all begin with its name, and no two boxes share one.

use storeproof_contract::mailbox::store::Address;

/// The hash that says what the storage is.
pub(super) fn storage(name: &str) -> String {
    format!("{name}:storage")
}

/// The sorted set of leased boxes.
pub(super) fn expiries(name: &str) -> String {
    format!("{name}:expiries")
}

/// The hash of a box.
pub(super) fn of_box(name: &str, of: &Address) -> String {
    format!("{name}:box:{}", unique(of))
}

/// The list of a box's bodies.
pub(super) fn pending(name: &str, of: &Address) -> String {
    format!("{name}:pending:{}", unique(of))
}

/// All keys of the storage, and no other's, as a pattern: a name has no character that means anything
/// in one.
pub(super) fn all(name: &str) -> String {
    format!("{name}:*")
}

/// The scope's length in bytes says where it ends, so no separator can be taken for a part of a name.
fn unique(of: &Address) -> String {
    format!("{}:{}{}", of.scope.0.len(), of.scope.0, of.handle.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_boxes_share_a_key() {
        let names =
            ["a", "b", ":", "a:", ":b", "1:", "1:a", "11", "1", "\0", "a\0", "é", "e\u{301}"];
        let pairs = names.iter().flat_map(|a| names.iter().map(move |b| Address::new(a, b)));
        let keys: BTreeSet<String> =
            pairs.flat_map(|of| [of_box("n", &of), pending("n", &of)]).collect();
        assert_eq!(keys.len(), 2 * names.len() * names.len());
        assert!(keys.iter().all(|key| *key != storage("n") && *key != expiries("n")));
    }
}
