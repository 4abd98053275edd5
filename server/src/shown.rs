//! Escaping of text from agents, workspaces, files and the image for display: nothing is hidden,
//! interpreted as markup or disguised as other text. There is one function for each kind of output,
//! and one that formats an amount of memory.

/// The limit of a one-line text, in characters.
const LINE: usize = 400;
/// The limit of a one-line message, in characters.
const LONG_LINE: usize = 2_000;
/// The longest run of blanks that is shown unchanged.
const BLANKS: usize = 60;
/// The longest run of empty lines that is shown unchanged.
const EMPTY: usize = 6;
/// The largest number of names in a list.
const NAMED: usize = 5;

/// Returns true if a character is invisible, changes the display of others, acts on a terminal, or
/// looks like a space or a bracket and is not read as such by Lisp.
fn is_unsafe(char: char) -> bool {
    is_hidden(char) || is_false_syntax(char) || (char.is_control() && !matches!(char, '\n' | '\t'))
}

/// Escapes as `\u{202e}` the characters that are invisible, that change the display of others, or
/// that look like a space or a bracket and are not read as such by Lisp.
pub fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_unsafe(char) {
            shown.push_str(&format!("\\u{{{:x}}}", char as u32));
        } else {
            shown.push(char);
        }
    }
    shown
}

/// Formats a number of bytes in megabytes (2^20 bytes), as the settings count them, or a small
/// number in kilobytes (2^10 bytes).
pub fn megabytes(bytes: u64) -> String {
    let megabytes = bytes as f64 / f64::from(1 << 20);
    if bytes > 0 && megabytes < 0.05 {
        format!("{:.1} kB", bytes as f64 / 1024.0)
    } else {
        format!("{megabytes:.1} MB")
    }
}

/// Returns one line for a message, a status or a terminal: a name, a path, a value. The
/// characters cut from a long text are counted.
pub fn line(text: &str) -> String {
    line_of(text, LINE)
}

/// Returns a path for a message or a list: complete, and in one line.
pub fn path(path: &std::path::Path) -> String {
    safe(&path.to_string_lossy()).replace('\n', "\\u{a}").replace('\t', "\\u{9}")
}

/// Returns a record of a log, with its line break: further lines are indented, so that no text in
/// it looks like a record of its own.
pub fn record(text: &str) -> String {
    let (body, end) = text.strip_suffix('\n').map_or((text, ""), |body| (body, "\n"));
    body.replace('\n', "\n    ") + end
}

/// Acts as [`line`], with the limit of a message.
pub fn long_line(text: &str) -> String {
    line_of(text, LONG_LINE)
}

fn line_of(text: &str, most: usize) -> String {
    let line = safe(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((cut, _)) => format!("{}... {} CHARACTERS MORE", &line[..cut], line[cut..].chars().count()),
        None => line,
    }
}

/// Returns a message for an editor's notification. VS Code makes links of `[text](command:...)`
/// in notifications.
pub fn notification(text: &str) -> String {
    safe(text).replace("](", "]\\u{28}")
}

/// Returns text for a terminal: no character moves the cursor, changes colours, copies or rings
/// the bell.
pub fn terminal(text: &str) -> String {
    safe(text)
}

/// Returns JSON in which the characters that [`safe`] escapes are written as JSON escapes. A
/// program that parses the result gets the original text, and a person who sees it in a terminal
/// sees every character.
pub fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_unsafe(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(char);
        }
    }
    shown
}

/// Returns a line of text inside Markdown, shown literally whatever Markdown or HTML it contains.
/// Escapes are kept to a minimum, since some editors show the Markdown source.
pub fn markdown(text: &str) -> String {
    let text = long_line(text);
    // CommonMark 0.31, 5.2: a number and one of these characters begin a list.
    let number = text.find(|char: char| !char.is_ascii_digit()).filter(|end| *end > 0);
    let mut shown = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        let inline = matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '!' | '#' | '$');
        let begins = (at == 0 && matches!(char, '-' | '+' | '=')) || (Some(at) == number && matches!(char, '.' | ')'));
        // 2.4: any ASCII punctuation character may be escaped.
        if inline || begins {
            shown.push('\\');
        }
        shown.push(char);
    }
    shown
}

/// Returns a fenced block of Markdown that nothing in `code` can close.
pub fn fenced(language: &str, code: &str) -> String {
    let code = safe(code);
    let longest = code.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", code.trim_end_matches('\n'))
}

/// Returns a code span of Markdown, in one line, that nothing in `code` can close.
pub fn code_span(code: &str) -> String {
    let code = line(code);
    let longest = code.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let blank = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    format!("{ticks}{blank}{code}{blank}{ticks}")
}

/// Returns a line of source for a terminal, with columns and bytes preserved: an invisible or
/// control character is replaced by a character of the same number of bytes.
pub fn source(text: &str) -> String {
    let stand_in = |char: char| match char {
        '\n' | '\t' | '\r' => char,
        _ if !char.is_control() && !is_hidden(char) => char,
        _ => match char.len_utf8() {
            1 => '?',
            2 => '\u{bf}',
            3 => '\u{fffd}',
            _ => '\u{1f7aa}',
        },
    };
    text.chars().map(stand_in).collect()
}

/// Returns true for format characters, fillers and variation selectors, which are invisible or
/// change the direction of other text.
fn is_hidden(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(char, '\u{e0000}'..='\u{e0fff}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{13430}'..='\u{1343f}' | '\u{16fe4}' | '\u{1d159}' | '\u{fe00}'..='\u{fe0f}' | '\u{61c}' | '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}')
        || matches!(
            char,
            '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{1d173}'
                ..='\u{1d17a}'
        )
}

/// Returns true for characters that look like a space, a bracket, a quote or a comment, and are
/// constituents to Lisp's reader.
fn is_false_syntax(char: char) -> bool {
    matches!(char, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
        || matches!(
            char,
            '\u{37e}'
                | '\u{ff1b}'
                | '\u{fe54}'
                | '\u{204f}'
                | '\u{ff02}'
                | '\u{ff03}'
                | '\u{ff07}'
                | '\u{ff5c}'
                | '\u{ff1a}'
        )
        || matches!(
            char,
            '\u{ff08}' | '\u{ff09}' | '\u{fe59}' | '\u{fe5a}' | '\u{2768}'
                ..='\u{276b}' | '\u{207d}' | '\u{207e}' | '\u{208d}' | '\u{208e}'
        )
}

/// Replaces long runs of blanks by their length, so that code behind them stays visible.
pub fn without_gaps(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(char::is_whitespace) {
        let end = rest[start..].find(|char: char| !char.is_whitespace()).map_or(rest.len(), |length| start + length);
        let gap = &rest[start..end];
        let breaks = gap.matches('\n').count();
        let indent = gap.rsplit('\n').next().unwrap_or_default();
        shown.push_str(&rest[..start]);
        if end == rest.len() {
            // Nothing follows the blanks.
        } else if breaks > EMPTY {
            shown.push_str(&format!("\n[{} EMPTY LINES]\n", breaks - 1));
        } else if breaks > 0 && indent.chars().count() <= BLANKS {
            shown.push_str(gap);
        } else if indent.chars().count() > BLANKS {
            shown.push_str(&format!("{}[{} BLANKS] ", if breaks > 0 { "\n" } else { " " }, indent.chars().count()));
        } else {
            shown.push_str(gap);
        }
        rest = &rest[end..];
    }
    shown + rest
}

/// Returns a line that lists the names with letters that resemble ASCII's; `None` when there are
/// none.
pub fn lookalikes(text: &str) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|char: char| !char.is_alphanumeric() && !matches!(char, '-' | '*' | '+' | '%')) {
        let false_letters = word.chars().filter(|char| is_lookalike(*char)).count();
        let letters = word.chars().filter(|char| char.is_alphabetic()).count();
        let ascii = word.chars().any(|char| char.is_ascii_alphabetic());
        if false_letters > 0 && (ascii || false_letters == letters) {
            let spelled = word
                .chars()
                .take(80)
                .map(|char| if char.is_ascii() { char.to_string() } else { format!("\\u{{{:x}}}", char as u32) });
            let spelled: String = spelled.collect();
            if !found.contains(&spelled) {
                found.push(spelled);
            }
        }
    }
    if found.is_empty() {
        return None;
    }
    Some(format!("NOT WHAT THEY LOOK LIKE: {}", first_names(&found, NAMED)))
}

/// Returns the first `most` names as a list, with the number of the others: `a, b and 3 more`.
pub fn first_names(names: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns true for letters that resemble ASCII letters.
fn is_lookalike(char: char) -> bool {
    const CYRILLIC_AND_GREEK: &str = "асеорхуѕіјһԁԛԝүӏАВЕІЈКМНОРСТХЅԌԚԜαικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";
    CYRILLIC_AND_GREEK.contains(char)
        || matches!(char, 'Ａ'..='Ｚ' | 'ａ'..='ｚ' | '０'..='９' | '\u{1d400}'..='\u{1d7ff}' | 'ı' | 'ɑ' | 'ɡ' | 'ℯ' | 'ℊ' | 'ℴ')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_are_those_of_the_settings() {
        assert_eq!(megabytes(512 << 20), "512.0 MB");
        assert_eq!((megabytes(0).as_str(), megabytes(2048).as_str()), ("0.0 MB", "2.0 kB"));
    }

    /// Returns hostile names of agents, files and images.
    fn nasty() -> Vec<String> {
        serde_json::from_str(include_str!("../../tests/fixtures/nasty.json")).unwrap()
    }

    fn harmless(text: &str) -> bool {
        text.chars().all(|char| !is_hidden(char) && (char == '\n' || char == '\t' || !char.is_control()))
    }

    #[test]
    fn nothing_nasty_is_more_than_text_in_any_place() {
        for nasty in &nasty() {
            for shown in [
                line(nasty),
                notification(nasty),
                terminal(nasty),
                markdown(nasty),
                fenced("lisp", nasty),
                code_span(nasty),
            ] {
                assert!(harmless(&shown), "{shown:?}");
            }
            assert!(!line(nasty).contains('\n'));
            assert!(!notification(nasty).contains("]("), "{nasty:?}");
            // Every character that Markdown interprets has a backslash before it, which itself is
            // not escaped.
            let written = markdown(nasty);
            assert!(!written.contains('\n'));
            let mut chars = written.chars();
            while let Some(char) = chars.next() {
                match char {
                    '\\' => assert!(chars.next().is_some_and(|next| next.is_ascii_punctuation()), "{written}"),
                    other => assert!(!"`*_[]<>&~|!#$".contains(other), "{written}"),
                }
            }
            let block = fenced("lisp", nasty);
            let lines: Vec<&str> = block.lines().collect();
            let fence = lines[lines.len() - 1];
            assert!(lines[0] == format!("{fence}lisp") && fence.chars().all(|char| char == '`'));
            assert!(lines[1..lines.len() - 1].iter().all(|line| !line.contains(fence)), "{block}");
            let span = code_span(nasty);
            let ticks = span.chars().take_while(|char| *char == '`').count();
            let inside = span[ticks..span.len() - ticks].split(|char| char != '`').map(str::len);
            assert!(inside.max().unwrap_or(0) < ticks && !span.contains('\n'), "{span}");
            let code = source(nasty);
            assert_eq!(code.len(), nasty.len());
            assert!(
                code.chars().all(|char| !is_hidden(char) && (char.is_whitespace() || !char.is_control())),
                "{code:?}"
            );
        }
        assert_eq!(line(&"x".repeat(LINE + 3)), format!("{}... 3 CHARACTERS MORE", "x".repeat(LINE)));
        assert_eq!(notification("[Deny](command:x)"), "[Deny]\\u{28}command:x)");
        assert_eq!(
            (markdown("animals.lisp:9"), markdown("1. a"), markdown("- a")),
            ("animals.lisp:9".into(), "1\\. a".into(), "\\- a".into())
        );
        assert_eq!(fenced("text", "a\n```\n"), "````text\na\n```\n````");
        assert_eq!((code_span("CL-USER"), code_span("`")), ("`CL-USER`".into(), "`` ` ``".into()));
    }

    #[test]
    fn json_means_the_same_and_hides_nothing() {
        for nasty in &nasty() {
            let value = serde_json::json!({"name": nasty, nasty: [nasty, "\u{e0101}", "\u{7f}\u{9b}31m"]});
            let text = json(&value.to_string());
            assert!(harmless(&text) && !text.contains('\u{9b}'), "{text:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
        assert_eq!(json(r#"{"a":"λ"}"#), r#"{"a":"λ"}"#);
    }

    #[test]
    fn what_reads_differently_to_lisp_is_spelled_out() {
        for (text, shown) in [
            ("(f\u{a0}x)", "(f\\u{a0}x)"),
            ("\u{ff1b} (delete-file x)", "\\u{ff1b} (delete-file x)"),
            ("\u{37e} not a comment", "\\u{37e} not a comment"),
            ("a\u{3164}b\u{e0101}", "a\\u{3164}b\\u{e0101}"),
            ("a\u{e0fff}\u{1bca0}b\u{fff0}", "a\\u{e0fff}\\u{1bca0}b\\u{fff0}"),
            ("(é 𝄞)\n\tλ", "(é 𝄞)\n\tλ"),
        ] {
            assert_eq!(safe(text), shown);
        }
    }

    #[test]
    fn code_behind_much_space_stays_in_sight() {
        assert_eq!(
            without_gaps(&format!("(a){}(b)\n{}", " ".repeat(5_000), "\n".repeat(100))),
            "(a) [5000 BLANKS] (b)"
        );
        assert_eq!(without_gaps(&format!("(a){}  (b)", "\n".repeat(41))), "(a)\n[40 EMPTY LINES]\n(b)");
        let plain = "(defun f (x)\n\n\n  (* x\n     2))";
        assert_eq!(without_gaps(plain), plain);
        let margin = format!("(a)\n{}(b)", " ".repeat(100));
        assert_eq!(without_gaps(&margin), "(a)\n[100 BLANKS] (b)");
    }

    #[test]
    fn names_of_other_letters_are_named() {
        assert_eq!(
            lookalikes("(list 1) (d\u{435}lete-file x)").as_deref(),
            Some("NOT WHAT THEY LOOK LIKE: d\\u{435}lete-file")
        );
        assert!(lookalikes("(\u{441}\u{430}r x)").is_some_and(|line| line.contains("\\u{441}\\u{430}r")));
        assert!(lookalikes("(\u{441}\u{43e}\u{440}\u{443} x)").is_some(), "all of it");
        for honest in ["(defun λ (x) x)", "\"Привет, мир\"", "(größe x)", "(list 1 'Δ)", "(setf 長さ 3)"]
        {
            assert_eq!(lookalikes(honest), None, "{honest}");
        }
    }
}
