//! The columns of the bytes of a line. They are cached at intervals, so that many queries on a very
//! long line are fast.

use std::cell::RefCell;
use std::collections::HashMap;

/// The interval in bytes at which the columns of a long line are cached.
const CACHE_INTERVAL_BYTES: usize = 256;

/// The columns of the lines of a text.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    text: &'a str,
    tab_size: usize,
    /// Cached columns of a long line, by the byte where counting begins. Each entry is a list of
    /// bytes with their columns, at intervals of [`CACHE_INTERVAL_BYTES`] bytes or slightly more.
    long: RefCell<HashMap<usize, Vec<(usize, usize)>>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(text: &'a str, tab_size: usize) -> Columns<'a> {
        Columns { text, tab_size, long: RefCell::default() }
    }

    /// Returns the column of byte `at`. Byte `from` on the same line has the column `column`. All
    /// calls with the same `from` must give the same `column`.
    pub(super) fn column(&self, from: usize, column: usize, at: usize) -> usize {
        if at <= from + CACHE_INTERVAL_BYTES {
            return self.width(from, at, column);
        }
        let mut long = self.long.borrow_mut();
        let known = long.entry(from).or_insert_with(|| vec![(from, column)]);
        while let Some((last, column)) = known.last().copied().filter(|(last, _)| last + CACHE_INTERVAL_BYTES <= at) {
            let mut next = last + CACHE_INTERVAL_BYTES;
            while !self.text.is_char_boundary(next) {
                next += 1;
            }
            known.push((next, self.width(last, next, column)));
        }
        let after = known.partition_point(|(byte, _)| *byte <= at);
        let (byte, column) = known[..after].last().copied().unwrap_or((from, column));
        self.width(byte, at, column)
    }

    /// Returns the column after the bytes `from..to`, which begin at `column`.
    pub(super) fn width(&self, from: usize, to: usize, column: usize) -> usize {
        let size = self.tab_size;
        self.text[from..to.max(from)]
            .chars()
            .fold(column, |column, char| if char == '\t' { column / size * size + size } else { column + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_has_the_columns_of_a_walk_along_it() {
        let text = "a\té𝄞(".repeat(400);
        let columns = Columns::new(&text, 8);
        for (at, _) in text.char_indices().rev().step_by(7) {
            assert_eq!(columns.column(0, 3, at), columns.width(0, at, 3), "{at}");
        }
    }
}
