//! The text of a page of a manual in a local directory.

use std::path::Path;

use crate::bounded_file;
use crate::text::decode;

/// The maximum size of a page, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a page as plain text. Returns `None` if it cannot be read. Blocks on the disk.
pub fn read(file: &Path) -> Option<String> {
    Some(plain(&decode(bounded_file::read(file, MAX_BYTES).ok()?)))
}

/// Converts HTML to plain text. Tags are removed, and line breaks inserted where a browser has
/// them.
fn plain(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        push(&mut out, &rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find('>') else { return tidy(&out) };
        let tag = rest[1..end].to_ascii_lowercase();
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split(|char: char| !char.is_ascii_alphanumeric()).next();
        match name.unwrap_or_default() {
            "title" | "script" | "style" if !tag.starts_with('/') => {
                rest = rest.find("</").map_or("", |end| &rest[end..]);
            }
            "p" | "br" | "div" | "table" | "tr" | "h1" | "h2" | "h3" | "h4" | "li" | "dt" | "dd" | "pre" | "hr" => {
                out.push('\n');
            }
            _ => {}
        }
    }
    push(&mut out, rest);
    tidy(&out)
}

fn push(out: &mut String, text: &str) {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&nbsp;", " ");
    out.push_str(&text.replace("&amp;", "&"));
}

/// Removes white space at the ends of lines, and reduces several empty lines to one.
fn tidy(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim_end) {
        if !(line.is_empty() && (out.is_empty() || out.ends_with("\n\n"))) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_its_words() {
        let html =
            "<HTML><HEAD><TITLE>CLHS: x</TITLE></HEAD><body><p><p><b>Function</b> CAR<p>&lt;a&gt; &amp;lt;<br>b  \n";
        assert_eq!(plain(html), "Function CAR\n<a> &lt;\nb");
        assert_eq!(plain("a < b"), "a");
        assert_eq!(plain("<script>x</script>y<"), "y");
    }
}
