//! Names that careless stores take for one another, and the careless ways of making keys of them.
//!
//! Every list is of names that differ; a store may refuse any of them, and may fold none into another.
//! Source: `mailbox/tenancy/keys-injective`, and the public bug reports behind it.

use super::store::Address;

/// What stores join a scope and a handle with.
const SEPARATORS: [&str; 30] = [
    ":", "/", "\\", "|", ".", "-", "_", "#", "%", "\0", " ", "\t", "\n", ",", ";", "@", "=", "+",
    "~", "&", "::", "--", "__", "\u{1f}", "\r\n", "%3A", "%2F", "\",\"", "','", "\u{2028}",
];

/// Names that differ by what a file system, a database, a URL, a shell or a language forgets.
// Kept in groups, which rustfmt would make one long column of.
#[rustfmt::skip]
const LOOK_ALIKES: &[&str] = &[
    // Case, and letters whose case is not a matter of one letter.
    "Worker", "worker", "WORKER", "straße", "STRASSE", "strasse", "İx", "i̇x", "ix", "Ix", "ıx",
    "ΟΔΟΣ", "οδος", "οδοσ", "\u{212a}elvin", "kelvin", "ﬁle", "file", "ａbc", "abc",
    // Composed and decomposed.
    "caf\u{e9}", "cafe\u{301}", "\u{212b}", "\u{c5}", "A\u{30a}", "\u{ac00}", "\u{1100}\u{1161}",
    "q\u{307}\u{323}", "q\u{323}\u{307}",
    // Blanks and dots at the edges, invisible characters, a NUL inside.
    "desk", "desk ", " desk", "desk.", "desk..", "desk .", "desk\t", "desk\n", "desk\r", "desk\u{a0}",
    "desk\u{200b}", "\u{feff}desk", "desk\0", "desk\0x", "desk\0y", " ", "  ", "\t", ".", "..", "...",
    // Percent-encoded against raw, and form encoding.
    "a/b", "a%2Fb", "a%2fb", "a%252Fb", "a b", "a%20b", "a+b", "a%2Bb", "%61", "a", "%", "%25", "%00",
    // What paths and cleaned names forget.
    "a\\b", "a//b", "a/./b", "./a/b", "a/b/", "a/c/../b", "/a/b", "a.b", "a-b", "a_b", "a:b", "a#b",
    "a|b", "a?b", "a*b", "a<b", "a\"b", "a'b", "a''b", "ab", "....//b",
    "C:\\b", "\\\\host\\b", "C:b",
    // Devices, with and without extensions.
    "CON", "con", "con.txt", "NUL", "nul", "NUL.tar.gz", "nul.json", "AUX", "COM1", "LPT9", "CONIN$",
    "PRN.txt",
    // Members that every object has.
    "__proto__", "constructor", "prototype", "hasOwnProperty", "toString", "length", "valueOf",
    // Options, shells, and files that a store may keep for itself.
    "-rf", "-", "--", "~", "$HOME", "`id`", ".lock", "index.json", ".git",
    // Patterns and formats.
    "_", "a_", "a%", "*", "?", "[ab]", "{}", "%s", "%d", "\\", "\"", "'", "\\\"", "'; --",
    // What a loose type makes equal.
    "0", "00", "-0", "1", "01", "1.0", "1e0", "null", "undefined", "true", "NaN", "[]",
    "[\"a\",\"b\"]", "a\",\"b", "a,b",
    // Base64 that holds a slash or differs in case only.
    "subjects?_d", "ÿÿÿ", "i", "I", "hi>>>", "a?>b", "YQ", "YQ==", "yq",
    // Scripts that cleaning leaves nothing of.
    "工作", "作工", "Погода", "مهمة", "👩\u{200d}💻", "👩💻",
];

/// Pairs of names of which neither begins with the other.
const TWIN_NAMES: &[(&str, &str)] = &[
    ("Worker", "worker"),
    ("STRASSE", "straße"),
    ("İx", "ix"),
    ("cafe\u{301}", "caf\u{e9}"),
    (" hall", "hall"),
    ("a%2Fb", "a/b"),
    ("c%2Fd", "c%2fd"),
    ("s/t", "s_t"),
    ("g_h", "gxh"),
    ("k%", "kxx"),
    ("m*n", "mxn"),
    ("NUL.txt", "nul.txt"),
    ("工作", "Погода"),
    ("01", "1"),
    ("lamp ", "lamp\t"),
    ("door. ", "door.."),
    ("room\0x", "room\0y"),
];

/// Names that are scope and handle by turns.
const SWAPPED_NAMES: [(&str, &str); 3] = [("p", "q"), ("north", "south"), ("tenant", "box")];

/// Names, each with one that only adds something at the end that careless stores cut off.
pub(super) const PADDED_NAMES: [(&str, &str); 6] = [
    ("desk", "desk "),
    ("lamp", "lamp."),
    ("door", "door\0x"),
    ("hall", "hall\n"),
    ("wall", "wall/"),
    ("roof", "roof:top"),
];

/// Pairs of recipients that are one text when scope and handle are joined by some separator.
pub(super) fn joins() -> Vec<(Address, Address)> {
    let mut pairs = Vec::new();
    for s in SEPARATORS {
        pairs.push(pair_around(s, ["a+b", "c"], ["a", "b+c"]));
        pairs.push(pair_around(s, ["a+", "b"], ["a", "+b"]));
        pairs.push(pair_around(s, ["d++e", "f"], ["d+", "e+f"]));
        pairs.push(pair_around(s, ["d++e", "f"], ["d", "+e+f"]));
        // An escape that forgets to escape itself.
        pairs.push(pair_around(s, ["g+h\\", "k"], ["g\\", "h+k"]));
    }
    pairs
}

/// Pairs of recipients of which one's scope is the other's handle.
pub(super) fn swapped() -> Vec<(Address, Address)> {
    let pair = |(a, b): &(&str, &str)| (Address::new(a, b), Address::new(b, a));
    SWAPPED_NAMES.iter().map(pair).collect()
}

/// The pairs that stores are known to have folded, each name in one pair only.
pub(super) fn classics() -> Vec<(Address, Address)> {
    const JOINED_BY: [&str; 8] = [":", "/", "|", "#", ".", "-", " ", "\0"];
    let mut pairs: Vec<_> =
        JOINED_BY.iter().map(|s| pair_around(s, ["a+b", "c"], ["a", "b+c"])).collect();
    pairs.extend(twin_handles("acme"));
    pairs.extend(
        TWIN_NAMES.iter().map(|(a, b)| (Address::new(a, "inbox"), Address::new(b, "inbox"))),
    );
    pairs.extend(swapped());
    pairs
}

/// Two recipients given as scope and handle, with `separator` for every `+`.
fn pair_around(separator: &str, first: [&str; 2], second: [&str; 2]) -> (Address, Address) {
    let put = |[scope, handle]: [&str; 2]| {
        Address::new(&scope.replace('+', separator), &handle.replace('+', separator))
    };
    (put(first), put(second))
}

/// Pairs of recipients in one scope whose handles careless stores take for one another; neither
/// begins with the other.
pub(super) fn twin_handles(scope: &str) -> Vec<(Address, Address)> {
    let pair = |a: &str, b: &str| (Address::new(scope, a), Address::new(scope, b));
    let mut pairs: Vec<_> = TWIN_NAMES.iter().map(|(a, b)| pair(a, b)).collect();
    pairs.extend(long_pairs().iter().map(|(a, b)| pair(a, b)));
    pairs
}

/// Every look-alike as a handle and as a scope, long names included.
pub(super) fn look_alikes() -> Vec<Address> {
    let mut names: Vec<String> = LOOK_ALIKES.iter().map(|name| (*name).to_owned()).collect();
    names.extend(long_pairs().into_iter().flat_map(|(a, b)| [a, b]));
    names.extend(["n".repeat(255), "n".repeat(256)]);
    names
        .iter()
        .flat_map(|name| [Address::new("acme", name), Address::new(name, "inbox")])
        .collect()
}

/// `count` random pairs that are one text when joined, split at two different places.
pub(super) fn generated(rng: &mut fastrand::Rng, count: usize) -> Vec<(Address, Address)> {
    (0..count)
        .map(|_| {
            let separator = SEPARATORS[rng.usize(..SEPARATORS.len())];
            let pieces: Vec<String> = (0..rng.usize(3..=5)).map(|_| piece(rng)).collect();
            let first = rng.usize(1..pieces.len() - 1);
            let second = rng.usize(first + 1..pieces.len());
            let split = |at: usize| {
                Address::new(&pieces[..at].join(separator), &pieces[at..].join(separator))
            };
            (split(first), split(second))
        })
        .collect()
}

/// Long names that differ in their last byte or character only.
fn long_pairs() -> Vec<(String, String)> {
    let pair = |stem: String, a: &str, b: &str| (format!("{stem}{a}"), format!("{stem}{b}"));
    vec![
        pair("n".repeat(299), "a", "b"),
        pair("n".repeat(999), "a", "b"),
        pair("n".repeat(4095), "a", "b"),
        pair("🙂".repeat(99), "🙂", "🙃"),
    ]
}

fn piece(rng: &mut fastrand::Rng) -> String {
    const LETTERS: [char; 12] = ['a', 'b', 'c', 'x', 'y', 'Z', '0', '7', 'é', 'ß', '作', '🙂'];
    (0..rng.usize(2..=6)).map(|_| LETTERS[rng.usize(..LETTERS.len())]).collect()
}

/// A careless way of making a key: two recipients with one key are one to the store.
pub(super) trait CarelessKey: Send + 'static {
    /// What the store knows the recipient by.
    fn key(of: &Address) -> Address;
}

/// Scope and handle joined by one character, unescaped.
pub(super) struct Joined<const SEPARATOR: char>;

impl<const SEPARATOR: char> CarelessKey for Joined<SEPARATOR> {
    fn key(of: &Address) -> Address {
        Address::new("joined", &format!("{}{SEPARATOR}{}", of.scope.0, of.handle.0))
    }
}

macro_rules! careless {
    ($($(#[$doc:meta])* $name:ident($of:ident) => $key:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            impl CarelessKey for $name {
                fn key($of: &Address) -> Address {
                    $key
                }
            }
        )*
    };
}

careless! {
    /// Scope and handle as the text of a list of two strings, put together by hand.
    JsonByHand(of) => Address::new("json", &format!("[\"{}\",\"{}\"]", of.scope.0, of.handle.0));
    /// Colons escaped with a backslash, backslashes not escaped.
    HalfEscaped(of) => {
        let escaped = |name: &str| name.replace(':', "\\:");
        Address::new("escaped", &format!("{}:{}", escaped(&of.scope.0), escaped(&of.handle.0)))
    };
    /// Scope and handle as a set, which has no order.
    Unordered(of) => {
        let Address { scope, handle } = of;
        Address::new((&scope.0).min(&handle.0), (&scope.0).max(&handle.0))
    };
    /// Everything in lower case.
    Lowercased(of) => each(of, str::to_lowercase);
    /// Composed, as far as the names here need it.
    Composed(of) => each(of, |name| {
        name.replace("e\u{301}", "\u{e9}").replace("A\u{30a}", "\u{c5}").replace('\u{212b}', "\u{c5}")
    });
    /// Without blanks at the edges.
    Trimmed(of) => each(of, |name| name.trim_matches([' ', '\t', '\n']).to_owned());
    /// Without dots at the end.
    DotsStripped(of) => each(of, |name| name.trim_end_matches('.').to_owned());
    /// Cut after 255 bytes.
    Truncated(of) => each(of, |name| first_bytes(name, 255).to_owned());
    /// Cut at the first NUL.
    CutAtNul(of) => each(of, |name| name.split('\0').next().unwrap_or_default().to_owned());
    /// Percent-decoded.
    PercentDecoded(of) => each(of, |name| name.replace("%2F", "/").replace("%2f", "/"));
    /// Cleaned for a file system: everything else is an underscore.
    Cleaned(of) => each(of, |name| {
        name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "_")
    });
}

fn each(of: &Address, fold: impl Fn(&str) -> String) -> Address {
    Address::new(&fold(&of.scope.0), &fold(&of.handle.0))
}

fn first_bytes(name: &str, bytes: usize) -> &str {
    let mut end = name.len().min(bytes);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn joined_pairs_differ_and_every_separator_folds_one() {
        assert!(joins().iter().all(|(a, b)| a != b));
        for separator in SEPARATORS {
            let key = |of: &Address| format!("{}{separator}{}", of.scope.0, of.handle.0);
            assert!(joins().iter().filter(|(a, b)| key(a) == key(b)).count() >= 4, "{separator:?}");
        }
    }

    #[test]
    fn generated_pairs_differ_and_some_separator_folds_each() {
        let mut rng = fastrand::Rng::with_seed(3);
        for (a, b) in generated(&mut rng, 500) {
            let folds = |s: &&str| {
                let key = |of: &Address| format!("{}{s}{}", of.scope.0, of.handle.0);
                key(&a) == key(&b)
            };
            assert!(a != b && SEPARATORS.iter().any(folds), "{a} {b}");
        }
    }

    #[test]
    fn a_classic_name_is_in_one_pair_only() {
        let pairs = classics();
        let names: BTreeSet<_> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(names.len(), 2 * pairs.len());
    }

    #[test]
    fn no_twin_begins_with_another_and_padded_names_do() {
        let twins = twin_handles("acme");
        for (a, _) in &twins {
            for (_, b) in &twins {
                let (a, b) = (&a.handle.0, &b.handle.0);
                assert!(!a.starts_with(b) && !b.starts_with(a), "{a:?} {b:?}");
            }
        }
        assert!(PADDED_NAMES.iter().all(|(plain, padded)| padded.starts_with(plain)));
    }

    #[test]
    fn look_alikes_are_listed_once() {
        let all = look_alikes();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
