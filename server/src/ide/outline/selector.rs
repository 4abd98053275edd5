//! The names by which people and agents select the definitions of a text. This module parses such
//! names, and computes names that each select only one definition.

use std::collections::HashMap;

use super::{Definition, name, single_spaced_lowercase, specializer, specializers};
use crate::text::cancellation;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// A name as a person or an agent writes it to select definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionSelector {
    /// The name in lower case, with single spaces, without a package prefix.
    name: String,
    qualifiers: Option<Vec<String>>,
    specializers: Option<Vec<String>>,
    /// The index among the matches, 1-based.
    number: Option<usize>,
}

impl DefinitionSelector {
    /// Returns the name alone. It is empty if definitions of all names are selected.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses `area`, `(setf area)`, `area (square t)`, `area ((shape square) x)`,
    /// `area :after (square)`, `:after area (square)`, each with an optional `[2]` behind it for
    /// the second match.
    pub fn new(written: &str) -> DefinitionSelector {
        let trimmed = written.trim();
        let numbered = trimmed.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        let numbered = numbered.and_then(|(rest, number)| Some((rest, number.trim().parse::<usize>().ok()?)));
        let (text, number) = numbered.map_or((trimmed, None), |(rest, number)| (rest.trim(), Some(number)));
        let tree = Tree::parse(text);
        let mut elements: Vec<NodeId> = tree.elements(ROOT).collect();
        let specializers = match elements.last() {
            Some(last) if elements.len() > 1 && tree.node(*last).kind == Kind::List => {
                let found = written_specializers(&tree, *last);
                elements.pop();
                Some(found)
            }
            _ => None,
        };
        let whole =
            DefinitionSelector { name: single_spaced_lowercase(text), qualifiers: None, specializers: None, number };
        let is_qualifier = |id: &NodeId| tree.text_of(*id).starts_with(':');
        let keyword_alone = elements.len() == 1;
        let names: Vec<NodeId> = elements.iter().copied().filter(|id| keyword_alone || !is_qualifier(id)).collect();
        let qualifiers: Vec<String> = elements
            .iter()
            .filter(|id| !keyword_alone && is_qualifier(id))
            .map(|id| tree.text_of(*id).to_lowercase())
            .collect();
        let [id] = names.as_slice() else { return whole };
        let name = name(&tree, *id, tree.operator(*id).is_some_and(|head| head == "setf" || head == "cas"));
        let qualifiers = (!qualifiers.is_empty() || specializers.is_some()).then_some(qualifiers);
        DefinitionSelector { name, qualifiers, specializers, number }
    }
}

/// Returns the values of [`Definition::operator`] for which an operator as written may stand: the
/// whole text in lower case, and the text after its last colon. The first counts if a definition
/// has it. It may be the text of a form without an operator, in which a colon is no package marker.
pub fn operators_meant(written: &str) -> [String; 2] {
    let whole = single_spaced_lowercase(written);
    let bare = whole.rsplit(':').next().unwrap_or(&whole).to_owned();
    [whole, bare]
}

/// Returns the [`Definition::operator`] for which an operator as written stands.
pub fn operator_of(definitions: &[Definition], written: &str) -> String {
    let [whole, bare] = operators_meant(written);
    if definitions.iter().any(|definition| definition.operator == whole) { whole } else { bare }
}

/// Returns the specializers in a list such as `(square t)` or `((shape square) x)`.
fn written_specializers(tree: &Tree, list: NodeId) -> Vec<String> {
    let lambda_list = tree.elements(list).any(|id| {
        tree.node(id).kind == Kind::List && tree.operator(id).is_none_or(|head| head != "eql")
            || tree.text_of(id).starts_with('&')
    });
    if lambda_list { specializers(tree, list) } else { tree.elements(list).map(|id| specializer(tree, id)).collect() }
}

/// An operator, a name, qualifiers and specializers.
type Method<'a> = (&'a str, &'a str, &'a [String], &'a [String]);

/// An index of definitions by the parts of their names.
pub struct DefinitionsByKey<'a> {
    definitions: &'a [Definition],
    /// The indices of the definitions, by operator.
    all: HashMap<&'a str, Vec<usize>>,
    /// The indices by operator and name. A name that is written differently has a second entry.
    named: HashMap<(&'a str, String), Vec<usize>>,
    /// The indices by operator, name and qualifiers.
    qualified: HashMap<(&'a str, &'a str, &'a [String]), Vec<usize>>,
    /// The indices by operator, name, qualifiers and specializers.
    specialized: HashMap<Method<'a>, Vec<usize>>,
}

impl<'a> DefinitionsByKey<'a> {
    /// Creates the index of the definitions of a tree.
    pub fn new(definitions: &'a [Definition], tree: &Tree) -> DefinitionsByKey<'a> {
        let (mut all, mut named): (HashMap<_, Vec<usize>>, HashMap<_, Vec<usize>>) = Default::default();
        let (mut qualified, mut specialized): (HashMap<_, Vec<usize>>, HashMap<_, Vec<usize>>) = Default::default();
        for (index, one) in definitions.iter().enumerate() {
            let (operator, name, qualifiers) = (one.operator.as_str(), one.name.as_str(), one.qualifiers.as_slice());
            all.entry(operator).or_default().push(index);
            named.entry((operator, one.name.clone())).or_default().push(index);
            if let Some(written) =
                one.name_node.map(|id| single_spaced_lowercase(tree.text_of(id))).filter(|written| written != name)
            {
                named.entry((operator, written)).or_default().push(index);
            }
            qualified.entry((operator, name, qualifiers)).or_default().push(index);
            if let Some(specializers) = &one.specializers {
                let key = (operator, name, qualifiers, specializers.as_slice());
                specialized.entry(key).or_default().push(index);
            }
        }
        DefinitionsByKey { definitions, all, named, qualified, specialized }
    }

    /// Returns the indices of the definitions of an operator that a name selects. The operator is
    /// in any case, with or without package.
    pub fn selected(&self, wanted: &DefinitionSelector, operator: &str) -> Vec<usize> {
        let [whole, bare] = operators_meant(operator);
        let operator = if self.all.contains_key(whole.as_str()) { whole } else { bare };
        let found = self.selected_ignoring_number(wanted, &operator);
        match wanted.number {
            None => found.to_vec(),
            Some(number) => found.get(number.wrapping_sub(1)).copied().into_iter().collect(),
        }
    }

    /// Returns the indices of the definitions of an operator that a name selects if its number is
    /// ignored.
    fn selected_ignoring_number<'s>(&'s self, wanted: &'s DefinitionSelector, operator: &'s str) -> &'s [usize] {
        let found = match (&wanted.qualifiers, &wanted.specializers) {
            _ if wanted.name.is_empty() => self.all.get(operator),
            (None, None) => self.named.get(&(operator, wanted.name.clone())),
            (Some(qualifiers), None) => self.qualified.get(&(operator, wanted.name.as_str(), qualifiers.as_slice())),
            (qualifiers, Some(specializers)) => {
                let qualifiers = qualifiers.as_deref().unwrap_or_default();
                self.specialized.get(&(operator, wanted.name.as_str(), qualifiers, specializers.as_slice()))
            }
        };
        found.map_or(&[], Vec::as_slice)
    }

    /// Returns the name that selects only the definition with this index.
    fn selector(&self, index: usize) -> String {
        let Some(definition) = self.definitions.get(index) else { return String::new() };
        let operator = definition.operator.as_str();
        let full = definition.full_name();
        for name in [&definition.name, &full] {
            if is_plain(name) && *name == definition.name {
                if self.named.get(&(operator, name.clone())).map(Vec::as_slice) == Some(&[index]) {
                    return name.clone();
                }
                continue;
            }
            let wanted = DefinitionSelector::new(name);
            let found = self.selected_ignoring_number(&wanted, operator);
            let alone = match wanted.number {
                None => found == [index],
                Some(number) => found.get(number.wrapping_sub(1)) == Some(&index),
            };
            if alone {
                return name.clone();
            }
        }
        for name in [full.as_str(), ""] {
            // The name is parsed with a number after it, as in the result.
            let wanted = DefinitionSelector::new(&format!("{name}[1]"));
            if let Ok(at) = self.selected_ignoring_number(&wanted, operator).binary_search(&index) {
                return format!("{name}[{}]", at + 1);
            }
        }
        full
    }
}

/// Returns true if [`DefinitionSelector::new`] returns a selector with this name and nothing else.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['(', '[', '"', '|', ' ', ':', '\\', '#', ';', '\''])
}

/// Returns a name for each definition that, together with the operator, selects only this
/// definition. It is the definition's name, the name with specializers, or a name followed by a
/// number.
pub fn selectors(definitions: &[Definition], tree: &Tree) -> Vec<String> {
    let found = DefinitionsByKey::new(definitions, tree);
    (0..definitions.len())
        .map(|index| if cancellation::should_stop() { String::new() } else { found.selector(index) })
        .collect()
}
