//! The comments between two parts of a form, which are kept if the code between them is removed.

use super::site::Site;

/// Returns the length of a text up to its first line break outside of a block comment.
pub(super) fn first_line(text: &str) -> usize {
    let mut comments = all(text).into_iter().peekable();
    let is_outside = |at: &usize| {
        while comments.next_if(|(_, end)| end <= at).is_some() {}
        comments.peek().is_none_or(|(start, _)| at <= start)
    };
    text.match_indices('\n').map(|(at, _)| at).find(is_outside).unwrap_or(text.len())
}

/// Returns the comments in a text that has no strings and characters, in bytes. A line comment is
/// without its line break.
pub(super) fn all(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find([';', '#']).map(|found| at + found) {
        let rest = &text[start..];
        let length = match rest.strip_prefix("#|") {
            _ if rest.starts_with(';') => rest.find('\n').unwrap_or(rest.len()),
            Some(_) => block(rest),
            None => {
                at = start + 1;
                continue;
            }
        };
        found.push((start, start + length));
        at = start + length;
    }
    found
}

/// Returns the length of the block comment at the start of a text.
fn block(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        let is_mark = matches!(pair, b"#|" | b"|#");
        at += if is_mark { 2 } else { 1 };
        match pair {
            b"#|" => depth += 1,
            b"|#" if depth <= 1 => return at,
            b"|#" => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the text that replaces the code between two bytes of the form. It consists of the
/// unchanged comments of that code, each on the line of the text before it or on a line of its own.
/// Without comments, it is `blank`. `next` is the byte of the text after the comments.
pub(super) fn kept_comments(site: &Site, from: usize, to: usize, next: usize, blank: &str) -> String {
    let text = site.between(from, to);
    let comments = all(text);
    let Some(last) = comments.last() else { return blank.to_owned() };
    let (mut out, mut at) = (String::new(), 0);
    for (start, end) in &comments {
        out.push_str(if text[at..*start].contains('\n') { site.newline } else { " " });
        out.push_str(text[*start..*end].trim_end());
        at = *end;
    }
    let line_follows =
        site.between(next, site.form.source.len()).trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    if !text[last.0..].starts_with(';') {
        out.push_str(blank);
    } else if !line_follows {
        out.push_str(site.newline);
    }
    out
}
