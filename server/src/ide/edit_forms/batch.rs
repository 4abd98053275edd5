//! Edits of a text that do not depend on each other, made with a single parse of the text.

use std::collections::HashSet;
use std::ops::Range;

use super::{Edits, FormEdit, patched, refusal, repair};
use crate::ide::edit_form::{Change, Edit, Operation, Refusal, Source, one_form};
use crate::ide::outline::{Definition, DefinitionSelector, definitions, operators_meant};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::toplevel::Scan;
use crate::text::tree::{ROOT, Tree};

/// An edit whose place in the text is known.
struct Planned {
    change: Change,
    title: String,
    content: String,
    repair: Option<String>,
    operation: Operation,
    /// The range of the text on which the edit depends.
    touched: Range<usize>,
    /// The selected form with its guards.
    outer: Range<usize>,
    top_level: bool,
}

/// Edits that may be made in any order.
pub(super) struct Batch<'t> {
    text: &'t str,
    scan: Scan,
    planned: Vec<Planned>,
}

/// Returns the names by which definitions can be selected: titles, and names as written in lower
/// case. They are sorted.
fn names(of: &[Definition], tree: &Tree) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = of
        .iter()
        .map(|one| (one.title(), one.name_node.map(|id| tree.text_of(id).to_lowercase()).unwrap_or_default()))
        .collect();
    names.sort();
    names
}

impl<'t> Batch<'t> {
    /// Plans the first edits, at most `most` of them. Stops before an edit that depends on the
    /// planned ones.
    ///
    /// # Errors
    /// The first edit cannot be made.
    pub(super) fn plan(text: &'t str, edits: &[FormEdit], most: usize) -> Result<Batch<'t>, Refusal> {
        let scan = Scan::of(text);
        let tree = Tree::of(text, &scan);
        let all = definitions(&tree);
        let source = Source::new(&scan, &tree, &all);
        let mut planned: Vec<Planned> = Vec::new();
        let mut touched = Ranges::default();
        // The names of definitions that the planned edits change, and the operators of these
        // definitions.
        let mut changed: HashSet<String> = HashSet::new();
        let mut operators: HashSet<String> = HashSet::new();
        for wanted in edits.iter().take(most) {
            let selector = DefinitionSelector::new(&wanted.form_name);
            // Without a name, a number selects one of all forms of the operator.
            let depends = match selector.name() {
                "" => operators_meant(&wanted.form_type).iter().any(|operator| operators.contains(operator)),
                name => changed.contains(name),
            };
            if depends {
                break;
            }
            let (one, index) = match plan_one(&source, wanted, &selector) {
                Ok(one) => one,
                Err(refusal) if planned.is_empty() => return Err(refusal),
                // After the planned edits, the selector may select another form.
                Err(_) => break,
            };
            if !touched.insert(&one.touched) {
                break;
            }
            let content = Tree::parse(&one.content);
            let new = definitions(&content);
            let inner = all[index + 1..].iter().take_while(|inner| inner.depth > all[index].depth).count();
            let old = if one.operation == Operation::Replace { &all[index..=index + inner] } else { &[] };
            let is_package = |one: &Definition| one.operator == "in-package";
            let ends = new.iter().chain(old).any(is_package);
            let differs = names(&new, &content) != names(old, &tree);
            if differs {
                for (of, tree) in [(new.as_slice(), &content), (old, &tree)] {
                    operators.extend(of.iter().map(|one| one.operator.clone()));
                    changed.extend(of.iter().map(|one| one.name.clone()));
                    changed.extend(of.iter().filter_map(|one| Some(tree.text_of(one.name_node?).to_lowercase())));
                }
            }
            planned.push(one);
            if differs && ends {
                break;
            }
        }
        Ok(Batch { text, scan, planned })
    }

    /// Returns the number of planned edits.
    pub(super) fn len(&self) -> usize {
        self.planned.len()
    }

    /// Makes the edits.
    ///
    /// # Errors
    /// The rest of the text would be read differently.
    pub(super) fn apply(&self) -> Result<Edits, Refusal> {
        let text = self.text;
        let mut order: Vec<usize> = (0..self.planned.len()).collect();
        order.sort_by_key(|index| self.planned[*index].change.range.start);
        let mut edited = String::with_capacity(text.len());
        let mut copied = 0;
        for index in &order {
            let change = &self.planned[*index].change;
            edited += &text[copied..change.range.start];
            edited += &change.by;
            copied = change.range.end;
        }
        edited += &text[copied..];
        self.check_rest_unchanged(&edited)?;
        let document = Document::new(text, 0);
        let mut shifts = Shifts::new(order.len(), &order);
        let mut edits = Edits { each: Vec::new(), text: edited, contents: Vec::new(), repairs: Vec::new() };
        let walk = Lines::new(text, order.iter().map(|index| self.planned[*index].change.range.start));
        for (index, one) in self.planned.iter().enumerate() {
            let Change { range, by, padding } = &one.change;
            let old = &text[range.clone()];
            let (bytes, lines) = shifts.before(index);
            let start = range.start.saturating_add_signed(bytes);
            let first_line = (walk.line_of(range.start) + breaks(&by[..padding.0])).saturating_add_signed(lines);
            let last = by.len().saturating_sub(padding.1).max(padding.0);
            let last_line = first_line + breaks(&by[padding.0..last]);
            shifts.add(index, by.len() as isize - old.len() as isize, breaks(by) as isize - breaks(old) as isize);
            if let Some(words) = &one.repair {
                edits.repairs.push(format!("{}: {words}", one.title));
            }
            let at = document.text().byte_to_char(range.start);
            edits.each.push(Edit {
                start,
                old: old.to_owned(),
                by: by.clone(),
                title: one.title.clone(),
                lines: (first_line + 1, last_line + 1),
                package: package_at(&document, at).unwrap_or_else(|| "COMMON-LISP-USER".into()),
            });
            edits.contents.push(one.content.clone());
        }
        Ok(edits)
    }

    /// Checks that in the new text every other form is unchanged, and that as many forms are broken
    /// as before.
    fn check_rest_unchanged(&self, edited: &str) -> Result<(), Refusal> {
        let after = Scan::of(edited);
        let mut places: Vec<(usize, &Planned)> = self.planned.iter().map(|one| (one.outer.start, one)).collect();
        places.sort_by_key(|(start, _)| *start);
        let mut places = places.into_iter().peekable();
        let mut new = after.forms().iter().map(|form| &edited[form.bytes.start..form.bytes.end]);
        let mut same = true;
        for form in self.scan.forms() {
            let (mut before, mut behind, mut replaced) = (0, 0, false);
            while let Some((_, one)) = places.next_if(|(start, _)| *start < form.bytes.end) {
                match (one.operation, one.top_level) {
                    (Operation::InsertBefore, true) => before += 1,
                    (Operation::InsertAfter, true) => behind += 1,
                    _ => replaced = true,
                }
            }
            new.by_ref().take(before).for_each(drop);
            let now = new.next();
            same &= now.is_some_and(|now| replaced || now == &self.text[form.bytes.start..form.bytes.end]);
            new.by_ref().take(behind).for_each(drop);
        }
        if same && new.next().is_none() && after.broken().count() == self.scan.broken().count() {
            return Ok(());
        }
        refusal(
            "content-unreadable",
            "With this content in its place the rest of the file would be read differently. Nothing was changed. Check the content's strings, `|` and comments.".into(),
        )
    }
}

/// Plans an edit. If the edit cannot be made with the content as it is, repairs the parentheses of
/// the content. Also returns the index of the selected definition.
fn plan_one(source: &Source, wanted: &FormEdit, selector: &DefinitionSelector) -> Result<(Planned, usize), Refusal> {
    let (kind, name) = (wanted.form_type.as_str(), wanted.form_name.as_str());
    let (content, of, operation) = match (&wanted.content, &wanted.old, &wanted.new) {
        (Some(content), None, None) => (content.clone(), "content", wanted.operation.unwrap_or(Operation::Replace)),
        (None, Some(_), Some(_)) if !matches!(wanted.operation, None | Some(Operation::Replace)) => {
            return refusal(
                "bad-arguments",
                "`old` and `new` replace text within the form; leave `operation` out.".into(),
            );
        }
        (None, Some(old), Some(new)) => {
            let target = source.target(kind, selector, name)?;
            let form = source.tree.text_of(source.all[target].node);
            (patched(form, old, &source.with_line_breaks(new))?, "form", Operation::Replace)
        }
        _ => {
            return refusal(
                "bad-arguments",
                "Give either `content`, the new form, or `old` and `new`, a piece of the form's text and what takes its place.".into(),
            );
        }
    };
    let is_patch = of == "form";
    // A patched form keeps its line breaks.
    let written = |content: &str| -> Result<String, Refusal> {
        let form = one_form(content)?;
        Ok(if is_patch { content.to_owned() } else { source.with_line_breaks(form) })
    };
    let (content, by, repair) = match written(&content) {
        Ok(by) => (content, by, None),
        Err(mut refused) => {
            match repair(&content, of).and_then(|(mended, words)| Some((written(&mended).ok()?, mended, words))) {
                Some((by, mended, words)) => (mended, by, Some(words)),
                None => {
                    if is_patch {
                        refused.message = refused.message.replace(
                            "`content` must be exactly one form, and",
                            "With `new` in the place of `old` the form would not be exactly one form:",
                        );
                    }
                    return Err(refused);
                }
            }
        }
    };
    let index = source.target(kind, selector, name)?;
    let target = &source.all[index];
    source.check_whole(target)?;
    let outer = source.tree.node(target.outer);
    let planned = Planned {
        change: source.change(operation, target, by),
        title: target.title(),
        content,
        repair,
        operation,
        touched: source.touched(operation, target.outer),
        outer: outer.start..outer.end,
        top_level: outer.parent == ROOT,
    };
    Ok((planned, index))
}

/// Disjoint ranges.
#[derive(Default)]
struct Ranges(std::collections::BTreeMap<usize, usize>);

impl Ranges {
    /// Adds a range, unless it overlaps one that is there.
    fn insert(&mut self, range: &Range<usize>) -> bool {
        let before = self.0.range(..range.end).next_back();
        if before.is_some_and(|(_, end)| *end > range.start) {
            return false;
        }
        self.0.insert(range.start, range.end);
        true
    }
}

/// Returns the number of line breaks in a text.
fn breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The lines of some places of a text.
struct Lines(std::collections::HashMap<usize, usize>);

impl Lines {
    /// Finds the 0-based lines of `places`, which are in order.
    fn new(text: &str, places: impl Iterator<Item = usize>) -> Lines {
        let (mut at, mut line) = (0, 0);
        let found = places.map(|place| {
            line += breaks(&text[at..place]);
            at = place;
            (place, line)
        });
        Lines(found.collect())
    }

    fn line_of(&self, place: usize) -> usize {
        self.0.get(&place).copied().unwrap_or_default()
    }
}

/// The numbers of bytes and lines by which the edits that were made move the text behind them. They
/// are kept in a Fenwick tree over the places of the edits.
struct Shifts {
    /// The rank of each edit by its place in the text.
    rank: Vec<usize>,
    sums: Vec<(isize, isize)>,
}

impl Shifts {
    fn new(count: usize, order: &[usize]) -> Shifts {
        let mut rank = vec![0; count];
        for (place, index) in order.iter().enumerate() {
            rank[*index] = place;
        }
        Shifts { rank, sums: vec![(0, 0); count + 1] }
    }

    /// Returns the numbers of bytes and lines by which the edits added so far move an edit. Only
    /// edits before it in the text move it.
    fn before(&self, index: usize) -> (isize, isize) {
        let (mut at, mut sum) = (self.rank[index], (0, 0));
        while at > 0 {
            sum = (sum.0 + self.sums[at].0, sum.1 + self.sums[at].1);
            at &= at - 1;
        }
        sum
    }

    fn add(&mut self, index: usize, bytes: isize, lines: isize) {
        let mut at = self.rank[index] + 1;
        while at < self.sums.len() {
            self.sums[at] = (self.sums[at].0 + bytes, self.sums[at].1 + lines);
            at += at & at.wrapping_neg();
        }
    }
}
