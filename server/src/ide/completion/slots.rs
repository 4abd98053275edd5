//! Completion of the slots of an instance.

use super::matching::Pattern;
use super::{Item, keywords};
use crate::ide::context::{Backend, Cursor};
use crate::ide::name_index::{NameIndex, Package};
use crate::text::datum::{Form, Kind, Node};

/// Returns the completions of the slots of an instance, as written. They are the slots of its class
/// if `(the class ...)` or a `defmethod` of the form shows the class. Otherwise, they are all slots
/// that the workspace's files define.
pub(super) fn slots<B: Backend>(
    cursor: &Cursor<B>,
    form: Option<&Form>,
    scope: (&NameIndex, Option<&Package>),
    instance: Option<&str>,
    pattern: &Pattern,
) -> Vec<(Item, f32)> {
    let class = form.zip(instance).and_then(|(form, instance)| class_of(form, instance));
    let item = |slot: &str, class: &str, more: f32| {
        let fit = pattern.score(&slot.to_lowercase())?;
        let detail = format!("slot of {class}");
        Some((Item { label: slot.to_owned(), kind: "argument".into(), detail, ..Item::default() }, fit + more))
    };
    if let Some(class) = class {
        let known = keywords::slots(cursor, scope, &class);
        if !known.is_empty() {
            return known.iter().filter_map(|slot| item(slot, &class, 90.0)).collect();
        }
    }
    let workspace = cursor.context.last_texts_index();
    let classes = workspace.files.iter().flat_map(|file| &file.definitions);
    let all = classes.flat_map(|class| class.slots.iter().map(move |slot| (slot, &class.written)));
    all.filter_map(|(slot, class)| item(slot, class, 90.0)).collect()
}

/// Returns the class of an instance, as written.
fn class_of(form: &Form, instance: &str) -> Option<String> {
    let mut words = instance.trim_start_matches('(').split_whitespace();
    if instance.starts_with('(') && words.next().is_some_and(|word| word.eq_ignore_ascii_case("the")) {
        return words.next().filter(|class| !class.starts_with('(')).map(str::to_owned);
    }
    let mut waiting: Vec<&Node> = form.nodes.iter().collect();
    let mut class = None;
    while let Some(node) = waiting.pop() {
        if form.operator(node).is_some_and(|operator| operator == "defmethod") {
            let parameters = node.children.iter().skip(2).find(|child| child.kind == Kind::List);
            let named = parameters
                .into_iter()
                .flat_map(|list| &list.children)
                .find(|one| one.children.len() == 2 && form.text(&one.children[0]).eq_ignore_ascii_case(instance));
            class = class.or(named.map(|one| form.text(&one.children[1]).to_owned()));
        }
        waiting.extend(node.children.iter().filter(|child| !child.children.is_empty()));
    }
    class
}
