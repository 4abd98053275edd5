//! Printed values that are not whole.

/// Returns true if the printer has left out elements (`...`) or nested objects (`#`). Both are
/// tokens that no object is printed as.
pub(super) fn is_abridged(printed: &str) -> bool {
    let mut quote = None;
    let mut token = String::new();
    let mut characters = printed.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            token.push(character);
            token.extend(characters.next());
        } else if quote.is_some() || matches!(character, '"' | '|') {
            token.push(character);
            quote = match quote {
                Some(open) if open == character => None,
                None => Some(character),
                within => within,
            };
        } else if character.is_whitespace() || matches!(character, '(' | ')') {
            if (token == "#" && character != '(') || token == "..." {
                return true;
            }
            token.clear();
        } else {
            token.push(character);
        }
    }
    token == "#"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_printer_left_out_is_told_from_what_looks_like_it() {
        for abridged in ["(0 1 2 ...)", "#(0 1 ...)", "(((#)))", "((# #) 1)", "#S(P :X #)", "(\"a\" ...)"] {
            assert!(is_abridged(abridged), "{abridged}");
        }
        for whole in [
            "(0 1 2)",
            "#(0 1)",
            "#()",
            "\"and so on ...\"",
            "\"a \\\" # b\"",
            "(|...| |a # b|)",
            "(#\\( #\\# :...a)",
            "42",
        ] {
            assert!(!is_abridged(whole), "{whole}");
        }
    }
}
