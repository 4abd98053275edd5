//! Entries from a pipe, or from a terminal that can only show lines.

use std::io::{self, BufRead, Write};

use super::entry::{Entry, Kind};
use super::reading::is_whole;

/// The maximum length in bytes of an entry that is parsed after each of its lines. A longer entry,
/// which nobody types, is parsed each time it has grown by an eighth.
const MAX_REPARSED_BYTES: usize = 64 << 10;

/// Reads lines of standard input until they form an entry, and returns it with the number of lines.
/// `prompt` is shown before the first line, if a person is to see it.
pub(super) fn read(prompt: Option<&str>, kind: Kind) -> io::Result<(Entry, usize)> {
    entry(&mut io::stdin().lock(), &mut io::stdout(), prompt, kind)
}

fn entry(from: &mut impl BufRead, to: &mut impl Write, prompt: Option<&str>, kind: Kind) -> io::Result<(Entry, usize)> {
    if let Some(prompt) = prompt {
        to.write_all(prompt.as_bytes())?;
        to.flush()?;
    }
    let mut bytes = Vec::new();
    // The length of the text when it was last found to be incomplete.
    let (mut part, mut lines) = (0, 0);
    loop {
        let read = from.read_until(b'\n', &mut bytes)?;
        lines += usize::from(read > 0);
        if read == 0 && (bytes.is_empty() || prompt.is_some()) {
            // Ctrl-D leaves the cursor after the prompt.
            to.write_all(if prompt.is_some() { b"\n" } else { b"" })?;
            return Ok((Entry::End, lines));
        }
        let due = bytes.len() <= MAX_REPARSED_BYTES || bytes.len() - part > part / 8;
        if read > 0 && kind == Kind::Code && !due {
            continue;
        }
        let text = consort::text::decode(bytes.clone());
        if read == 0 || kind == Kind::Line || is_whole(&text) {
            return Ok((Entry::Text(text.trim_end_matches(['\n', '\r']).to_owned()), lines));
        }
        part = bytes.len();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entries(mut text: &[u8], prompt: Option<&str>) -> (Vec<String>, String) {
        let (mut found, mut shown) = (Vec::new(), Vec::new());
        while let (Entry::Text(text), lines) = entry(&mut text, &mut shown, prompt, Kind::Code).unwrap() {
            assert_eq!(text.lines().count().max(1), lines);
            found.push(text);
        }
        (found, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn an_entry_has_the_lines_that_it_needs() {
        let (found, shown) = entries(b"1\r\n(list 1\n  2)\n\n(a \"\xc3\xa9\")\n(unfinished", None);
        assert_eq!(found, ["1", "(list 1\n  2)", "", "(a \"é\")", "(unfinished"]);
        assert_eq!(shown, "");
    }

    #[test]
    fn a_person_is_shown_the_prompt_and_ends_by_an_end_of_file() {
        assert_eq!(entries(b"1\n(unfinished", Some("> ")), (vec!["1".into()], "> > \n".into()));
    }

    #[test]
    fn a_line_of_input_is_one_line() {
        let mut text: &[u8] = b"(what\nelse";
        let line = |text: &mut &[u8]| entry(text, &mut Vec::new(), None, Kind::Line).unwrap().0;
        assert_eq!(line(&mut text), Entry::Text("(what".into()));
        assert_eq!(line(&mut text), Entry::Text("else".into()));
        assert_eq!(line(&mut text), Entry::End);
    }
}
