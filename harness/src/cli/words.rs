//! What goes to the terminal: results on stdout, everything else on stderr. A reader that went away
//! is no reason to fail.

use std::io::{self, IsTerminal as _, Write as _};
use storeproof_reports::terminal::Style;
use storeproof_reports::text::terminal_text;

/// Writes a result to stdout.
pub(super) fn result(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    // `storeproof ... | head` closes the pipe; the exit status still tells.
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        note(&format!("the result could not be printed: {error}"));
    }
}

/// Says something beside the result, on stderr; foreign text in it cannot steer the terminal.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "storeproof: {}", terminal_text(text));
}

/// How a report is drawn on this stdout.
pub(super) fn style(verbose: bool) -> Style {
    let width = terminal_size::terminal_size().map_or(0, |(width, _)| usize::from(width.0));
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style { color: io::stdout().is_terminal() && !no_color, verbose, width }
}

/// A command line that a shell reads back as these words.
pub(super) fn shell_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::shell_words;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_stumble() {
        assert_eq!(
            shell_words(["python3", "./my_store.py", "--n=3"]),
            "python3 ./my_store.py --n=3"
        );
        assert_eq!(shell_words(["a b", "", "it's", "$HOME"]), r"'a b' '' 'it'\''s' '$HOME'");
    }
}
