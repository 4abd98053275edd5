//! The keywords of `loop` (CLHS 6.1), grouped by the text that may follow them. A group is a string
//! with one space between its words.

macro_rules! accumulations {
    () => {
        "collect collecting append appending nconc nconcing count counting sum summing maximize maximizing minimize minimizing"
    };
}
macro_rules! conditionals {
    () => {
        "if when unless"
    };
}
macro_rules! tests {
    () => {
        "while until repeat always never thereis"
    };
}
macro_rules! limits {
    () => {
        "to downto upto below above by"
    };
}
macro_rules! arithmetic {
    () => {
        concat!("from downfrom upfrom ", limits!())
    };
}
macro_rules! clauses {
    () => {
        concat!(
            "for as with do doing ",
            accumulations!(),
            " ",
            conditionals!(),
            " ",
            tests!(),
            " return initially finally"
        )
    };
}
macro_rules! hash_tables {
    () => {
        "hash-keys hash-values hash-key hash-value"
    };
}
macro_rules! packages {
    () => {
        "symbols symbol present-symbols present-symbol external-symbols external-symbol"
    };
}

/// Keywords before a form whose values are collected.
pub const ACCUMULATIONS: &str = accumulations!();

/// Keywords before the condition of a clause.
pub const CONDITIONALS: &str = conditionals!();

/// Keywords before a form that decides whether the loop goes on.
pub const TESTS: &str = tests!();

/// Keywords before forms that are statements.
pub const STATEMENTS: &str = "do doing initially finally";

/// Keywords of a range of numbers.
pub const ARITHMETIC: &str = arithmetic!();

/// Keywords after `for VARIABLE`, before a form.
pub const SEQUENCES: &str = concat!("in on across ", arithmetic!());

/// Keywords after `being the` that iterate over a hash table.
pub const HASH_TABLES: &str = hash_tables!();

/// Keywords after `being the` that iterate over a package.
pub const PACKAGES: &str = packages!();

/// Keywords after the variable of `for`.
pub const AFTER_VARIABLE: &str = concat!("in on across ", arithmetic!(), " = being of-type and");

/// Keywords after a value of a range.
pub const AFTER_RANGE: &str = concat!(limits!(), " and");

/// Keywords after `being the`.
pub const AFTER_THE: &str = concat!(hash_tables!(), " ", packages!());

/// Keywords that begin a clause.
pub const CLAUSES: &str = clauses!();

/// Keywords of the clauses that may follow a condition.
pub const SELECTABLE: &str = concat!("do doing ", accumulations!(), " ", conditionals!(), " return");

/// All keywords but `=`.
pub const ALL: &str = concat!(
    clauses!(),
    " in on across ",
    arithmetic!(),
    " being each the ",
    hash_tables!(),
    " ",
    packages!(),
    " of using then and into else end named it of-type"
);

/// Returns true if a group contains a word, given in lower case.
pub fn is_in(word: &str, group: &str) -> bool {
    group.split(' ').any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_among_all_words_once() {
        let mut all: Vec<&str> = ALL.split(' ').collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        for group in [ACCUMULATIONS, CONDITIONALS, TESTS, STATEMENTS, SEQUENCES, HASH_TABLES, PACKAGES, SELECTABLE] {
            assert!(group.split(' ').all(|word| is_in(word, ALL)), "{group}");
        }
        assert!(!is_in("", ALL) && !is_in("collect collecting", ALL));
    }
}
