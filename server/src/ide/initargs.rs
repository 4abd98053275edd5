//! Initialization arguments: the class to which a call passes them, and those of a class that a
//! text defines.

use super::signature::CallSite;
use crate::text::datum::{Form, symbol_name};
use crate::text::definitions::{self, ClassParts, class_parts};
use crate::text::document::Document;

/// Returns the class, as written, to which a call such as `(make-instance 'class ...)` or `(error
/// 'condition ...)` passes initialization arguments, and the names of those already given. Returns
/// `None` if the current argument cannot be such a name.
pub fn class(site: &CallSite) -> Option<(String, Vec<String>)> {
    let operator = symbol_name(&site.operator)?;
    let at = match operator.as_str() {
        "make-instance" | "make-condition" | "error" | "signal" | "warn" => 0,
        "change-class" | "cerror" => 1,
        _ => return None,
    };
    let (_, before) = site.arguments.split_last()?;
    let (class, given) = before.get(at..)?.split_first()?;
    // A name is expected only after complete pairs of name and value.
    if given.len() % 2 != 0 {
        return None;
    }
    let class = class.strip_prefix('\'').filter(|name| symbol_name(name).is_some())?;
    Some((class.to_owned(), given.iter().step_by(2).cloned().collect()))
}

/// Returns the parts of the definition of a class in a text.
fn definition(class: &str, document: &Document) -> Option<ClassParts> {
    let classes = definitions::named(document, &definitions::key(class));
    let one = classes.into_iter().find(|one| matches!(one.operator.as_str(), "defclass" | "define-condition"))?;
    Some(class_parts(&Form::of(document, one.span), one.span, &one.operator))
}

/// The names of initialization arguments or slots in a class definition, and the names of the
/// superclasses.
pub type ClassNames = (Vec<String>, Vec<String>);

/// Returns the initialization arguments of the slots of a class that the text defines, and its
/// superclasses as written, or `None` if the text does not define the class.
pub fn in_document(class: &str, document: &Document) -> Option<ClassNames> {
    let parts = definition(class, document)?;
    Some((parts.slots.into_iter().flat_map(|slot| slot.initargs).collect(), parts.supers))
}

/// Returns the slots of a class that the text defines, and its superclasses, as written, or `None`
/// if the text does not define the class.
pub fn slots_in_document(class: &str, document: &Document) -> Option<ClassNames> {
    let parts = definition(class, document)?;
    Some((parts.slots.into_iter().map(|slot| slot.name).collect(), parts.supers))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::signature::call_sites;
    use super::*;

    #[test]
    fn the_class_of_a_call() {
        for (source, expected) in [
            ("(make-instance 'zoo:animal ‸)", Some("zoo:animal")),
            ("(make-instance 'animal :na‸)", Some("animal []")),
            ("(make-instance 'animal :name 1 :a‸)", Some("animal [:name]")),
            ("(cerror \"go on\" 'oops :a‸)", Some("oops []")),
            ("(make-instance 'animal :name ‸)", None),
            ("(make-instance animal ‸)", None),
            ("(make-instance 'an‸)", None),
            ("(make-thing 'animal ‸)", None),
        ] {
            let at = source.chars().position(|char| char == '‸').unwrap();
            let sites = call_sites(&Document::new(&source.replace('‸', ""), 0), at);
            let found = class(&sites[0]).map(|(class, given)| match source.contains(" :") {
                true => format!("{class} [{}]", given.join(" ")),
                false => class,
            });
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn what_a_text_defines() {
        let text = "(defclass a (b) ((x :initarg :x :initarg :ex :initform 1) y))\n(defclass b () ())\n(defun c () 1)";
        let document = Document::new(text, 0);
        assert_eq!(in_document("a", &document), Some((vec![":x".into(), ":ex".into()], vec!["b".into()])));
        assert_eq!(in_document("p::b", &document), Some((vec![], vec![])));
        assert_eq!(in_document("c", &document), None);
        assert_eq!(slots_in_document("a", &document), Some((vec!["x".into(), "y".into()], vec!["b".into()])));
        assert_eq!(slots_in_document("c", &document), None);
    }
}
