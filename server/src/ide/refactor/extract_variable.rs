//! Extraction of a variable. The value of a form is bound before the statement that contains the
//! form.

use super::effects::{changing, has_one_value, may_swap};
use super::place::{Place, steps, takes_all_values};
use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::text::datum::{Kind, Node, Prefix};

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let selected = site.selected()?;
    let [node] = selected.nodes else { return None };
    // Without a selection only a list is extracted. A whole top-level form has no body around it
    // that could bind the variable.
    if selected.parents.is_empty() || node.kind != Kind::List && !site.has_selection() {
        return None;
    }
    let result = extract(site, &selected.parents, node);
    Some(Refactoring::new("extract-variable", Group::Extract, "Extract variable", result))
}

fn extract(site: &Site, parents: &[&Node], node: &Node) -> Result<Vec<Edit>, String> {
    let steps = steps(site, parents, node)?;
    if let Some(operator) = super::evaluated::context_dependent_operator(site, node) {
        return Err(format!("{operator} means something only where it is"));
    }
    let changing = changing(site);
    let name = site.fresh(&name_of(site, node), true);
    let value = site.form.written(node);
    let mut inside = node;
    for (climbed, step) in steps.iter().rev().enumerate() {
        let is_all = climbed == 0;
        if is_all && takes_all_values(site, step) && !has_one_value(site, node) {
            return Err("all of its values may be used there, of which a variable has the first".into());
        }
        match step.place {
            Place::Assigned if is_all => return Err("it is the place of an assignment, and not a value".into()),
            Place::Argument => {
                if let Some(other) = step.before.iter().find(|other| !may_swap(site, node, other, &changing)) {
                    let other = crate::ide::clip::clip(site.form.written(other), 60).text;
                    return Err(format!("{other} is evaluated before it, and may have an effect: extract that first"));
                }
            }
            Place::First | Place::Assigned => {}
            Place::Body | Place::Branch | Place::Serial if is_all => {
                return Err(match step.place {
                    Place::Serial => "it is the value of a variable".into(),
                    _ => "nothing is around it that a variable could be bound before".into(),
                });
            }
            Place::Serial => {
                let at = step.holder.start();
                let binding = format!("({name} {value}){}", site.newline);
                return Ok(vec![site.edit(at, at, binding), site.edit(node.start(), node.end(), name)]);
            }
            Place::Body | Place::Branch => {
                let (start, end) = (inside.start(), inside.end());
                let (bind, newline) = (site.cased("let"), site.newline);
                return Ok(vec![
                    site.edit(start, start, format!("({bind} (({name} {value})){newline}")),
                    site.edit(node.start(), node.end(), name),
                    site.edit(end, end, ")"),
                ]);
            }
        }
        inside = step.list;
    }
    Err("nothing is around it that a variable could be bound before".into())
}

/// Returns a name for the value of a form, by its operator.
pub(super) fn name_of(site: &Site, node: &Node) -> String {
    const PREFIXES: [&str; 8] = ["make-", "get-", "find-", "compute-", "read-", "parse-", "create-", "copy-"];
    let operator = match node.prefix {
        Prefix::None => site.form.operator(node).unwrap_or_default(),
        _ => String::new(),
    };
    let bare = PREFIXES.iter().find_map(|prefix| operator.strip_prefix(prefix)).unwrap_or(&operator);
    let plain = bare.len() > 2 && bare.chars().all(|char| char.is_ascii_lowercase() || char == '-');
    // A name of the standard may not be bound, or would be read as the function of that name.
    let standard =
        ["list", "let", "let*", "progn", "lambda", "cond", "not", "the", "case", "when", "unless", "function"];
    if plain && !bare.starts_with('-') && !standard.contains(&bare) && bare != "pi" {
        bare.to_owned()
    } else {
        "value".into()
    }
}
