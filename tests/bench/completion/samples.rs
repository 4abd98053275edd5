//! The samples: names that somebody wrote, and some of them drawn by a seed.

use std::collections::HashSet;

use consort::text::Span;
use consort::text::datum::Form;
use consort::text::definitions;
use consort::text::document::Document;
use consort::text::scanner::{Scanner, TokenKind};
use consort::text::scopes::Scopes;

/// A name that somebody wrote.
pub(super) struct Sample {
    pub(super) file: usize,
    pub(super) span: Span,
    pub(super) name: String,
    pub(super) kind: &'static str,
}

/// The names of a text of at least five characters, but for those that it defines or binds.
pub(super) fn uses(file: usize, document: &Document) -> Vec<Sample> {
    let mut made: Vec<Span> = definitions::all(document).into_iter().map(|one| one.name).collect();
    let mut found = Vec::new();
    for top in document.scan().forms() {
        let form = Form::of(document, top.span);
        made.extend(Scopes::of(&form).bindings.into_iter().map(|one| one.span));
    }
    let made: HashSet<Span> = made.into_iter().collect();
    let text = document.text().to_string();
    let (mut byte, mut at, mut called) = (0, 0, false);
    for token in Scanner::new(&text) {
        let open =
            token.kind == TokenKind::Open || token.kind == TokenKind::Prefix && &text[token.start..token.end] == "#'";
        let operator = std::mem::replace(&mut called, open);
        if token.kind != TokenKind::Atom {
            continue;
        }
        at += text[byte..token.start].chars().count();
        byte = token.start;
        let name = &text[token.start..token.end];
        let span = Span { start: at, end: at + name.chars().count() };
        let first = name.chars().next().unwrap_or('#');
        if name.chars().count() < 5
            || first == '#'
            || first.is_ascii_digit()
            || name.contains('|')
            || made.contains(&span)
        {
            continue;
        }
        // Ironclad has numbers with another base than ten.
        let hexadecimal = name.contains(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_hexdigit());
        if hexadecimal || consort::text::names::symbol(name).is_none() {
            continue;
        }
        let kind = match name.find(':') {
            Some(0) => "keyword",
            Some(_) => "with a prefix",
            None if operator => "operator",
            None => "other",
        };
        found.push(Sample { file, span, name: name.to_owned(), kind });
    }
    found
}

/// Some of the samples, the same in each run with a seed, in the order of the files.
pub(super) fn drawn(all: Vec<Sample>, most: usize, seed: u64) -> Vec<Sample> {
    let mut numbered: Vec<(u64, usize)> = (0..all.len())
        .map(|index| {
            let mut x = (index as u64).wrapping_add(seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (x ^ (x >> 31), index)
        })
        .collect();
    numbered.sort_unstable();
    let chosen: HashSet<usize> = numbered.into_iter().take(most).map(|(_, index)| index).collect();
    all.into_iter().enumerate().filter(|(index, _)| chosen.contains(index)).map(|(_, sample)| sample).collect()
}

/// The end of the top-level form at a place.
pub(super) fn end_of_form(document: &Document, offset: usize) -> usize {
    document.scan().form_at(offset).map_or(offset, |form| form.span.end)
}
