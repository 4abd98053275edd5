//! The classes of names that completion finds late or not at all.

use std::collections::{BTreeMap, HashMap};

use consort::text::datum::{Form, Prefix};
use consort::text::document::Document;
use consort::text::scanner::{Scanner, TokenKind};
use consort::text::scopes::Scopes;

use super::samples::Sample;

/// The counts of a class: all samples; those not first, not among the first five, not among the
/// first twenty, not listed at all; and of the last, those that are written nowhere else.
type Counts = [usize; 6];

/// Counts of samples by class, and the texts by which the class is found.
pub(super) struct Misses<'a> {
    texts: &'a [Document],
    /// The uses of each name in each text.
    uses: Vec<HashMap<String, usize>>,
    /// The uses of each name in all texts.
    all: HashMap<String, usize>,
    counts: BTreeMap<String, Counts>,
}

impl<'a> Misses<'a> {
    pub(super) fn of(texts: &'a [Document]) -> Misses<'a> {
        let mut all: HashMap<String, usize> = HashMap::new();
        let mut uses = Vec::new();
        for document in texts {
            let text = document.text().to_string();
            let mut here: HashMap<String, usize> = HashMap::new();
            for token in Scanner::new(&text).filter(|token| token.kind == TokenKind::Atom) {
                *here.entry(text[token.start..token.end].to_lowercase()).or_default() += 1;
            }
            here.iter().for_each(|(name, count)| *all.entry(name.clone()).or_default() += count);
            uses.push(here);
        }
        Misses { texts, uses, all, counts: BTreeMap::new() }
    }

    /// Counts a sample and the place at which its name was.
    pub(super) fn add(&mut self, sample: &Sample, place: Option<usize>) {
        let name = sample.name.to_lowercase();
        let nowhere = self.all.get(&name).copied().unwrap_or_default() < 2;
        let late = |most: usize| place.is_none_or(|place| place >= most);
        let counts = self.counts.entry(self.class(sample)).or_default();
        let more = [true, late(1), late(5), late(20), place.is_none(), place.is_none() && nowhere];
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += usize::from(more));
    }

    /// The class of a sample: what kind of name it is, and how near it is written again.
    pub(super) fn class(&self, sample: &Sample) -> String {
        let document = &self.texts[sample.file];
        let name = sample.name.to_lowercase();
        let top = document.scan().form_at(sample.span.start);
        let form = top.map(|top| Form::of(document, top.span));
        let local = form.as_ref().is_some_and(|form| Scopes::of(form).resolve(sample.span.start).is_some());
        let quoted = form
            .as_ref()
            .is_some_and(|form| form.path(sample.span.start).iter().any(|node| node.prefix == Prefix::Quote));
        let kind = match sample.kind {
            "other" if local => "local variable",
            "operator" if local => "local function",
            "other" if quoted => "quoted",
            "other" => "variable, type or else",
            kind => kind,
        };
        let here = self.uses[sample.file].get(&name).copied().unwrap_or_default();
        let near = match (here, self.all.get(&name).copied().unwrap_or_default()) {
            (2.., _) => "again in the file",
            (_, 2..) => "in other files",
            _ => "nowhere else",
        };
        format!("{kind}, {near}")
    }

    /// Prints the classes, those with the most late names first.
    pub(super) fn print(&self) {
        println!("\n| class | samples | not first | not in 5 | not in 20 | not there | of these nowhere else |");
        println!("|---|---|---|---|---|---|---|");
        let mut classes: Vec<(&String, &Counts)> = self.counts.iter().collect();
        classes.sort_by_key(|(_, counts)| std::cmp::Reverse((counts[3], counts[2], counts[1])));
        for (class, counts) in classes {
            println!("| {class} | {} |", counts.map(|count| count.to_string()).join(" | "));
        }
    }
}
