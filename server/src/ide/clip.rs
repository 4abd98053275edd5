//! Clipping of a text to its head and its tail, with a line about the part left out.

use crate::model::evaluation::Clipped;

/// The maximum number of characters of output that an answer keeps (docs/agents.md).
pub const LIMIT: usize = 100_000;

/// Returns at most about `limit` characters of `text`. A longer text is cut in the middle, with a
/// line that gives the number of characters left out.
pub fn clip(text: &str, limit: usize) -> Clipped {
    // A text has at least as many bytes as characters.
    if text.len() <= limit {
        return Clipped { text: text.to_owned(), omitted: 0 };
    }
    let count = text.chars().count();
    if count <= limit {
        return Clipped { text: text.to_owned(), omitted: 0 };
    }
    let head = limit / 2;
    let tail = limit - head;
    let omitted = count - limit;
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(byte, _)| byte);
    let (head_end, tail_start) = (at(head), at(count - tail));
    let text = format!("{}\n[... {omitted} characters left out ...]\n{}", &text[..head_end], &text[tail_start..]);
    Clipped { text, omitted }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::clip;

    #[test]
    fn short_text_is_whole_and_long_text_keeps_both_ends() {
        assert_eq!((clip("äöü", 3).text.as_str(), clip("äöü", 3).omitted), ("äöü", 0));
        let clipped = clip("aaabbbbcccc", 6);
        assert_eq!(clipped.text, "aaa\n[... 5 characters left out ...]\nccc");
        assert_eq!(clipped.omitted, 5);
        assert_eq!(clip("ααβγδδ", 4).text, "αα\n[... 2 characters left out ...]\nδδ");
    }
}
