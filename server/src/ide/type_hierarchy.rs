//! The hierarchy of classes, conditions and structures: the direct supertypes, the direct subtypes,
//! and all subtypes.

use std::collections::HashMap;

use super::context::{Backend, Context, Cursor};
use super::definition_in_index::TextSymbol;
use super::hierarchy::{Item, Lookup, Named, add};
use super::index::Packages;
use super::references::home;
use crate::image::api::symbols::SymbolPart;
use crate::text::names;
use crate::text::scopes::Scopes;

/// The number of direct and indirect subtypes after which the search ends.
const MAX_SUBTYPES: usize = 1_000;

fn is_type(kind: &str) -> bool {
    matches!(kind, "class" | "structure" | "condition" | "type")
}

fn is_class(kind: &str) -> bool {
    matches!(kind, "class" | "structure" | "condition")
}

/// Returns the definitions of the class, condition, structure or type at the cursor.
pub async fn prepare<B: Backend>(cursor: &Cursor<B>) -> Vec<Item> {
    let Some(here) = cursor.symbol_here() else { return Vec::new() };
    let form = crate::text::datum::Form::at(&cursor.document, cursor.offset);
    if !here.designated && form.is_some_and(|form| Scopes::of(&form).resolve(cursor.offset).is_some()) {
        return Vec::new();
    }
    let index = cursor.context.texts_index().await;
    let mut lookup = Lookup::new(&cursor.context, &index).await;
    lookup.definitions(&Named { name: here.written, package: here.package }, is_type).await
}

/// Returns the direct superclasses that are defined in files.
pub async fn supertypes<B: Backend>(context: &Context<B>, named: &Named) -> Vec<Item> {
    let index = context.texts_index().await;
    let mut lookup = Lookup::new(context, &index).await;
    let mut names: Vec<Named> = Vec::new();
    for (_, one) in super::definition_in_index::indexed(&index, &TextSymbol::of(&index, named), is_class) {
        names.extend(one.supers.iter().map(|name| Named { name: name.clone(), package: one.package.clone() }));
    }
    let known = lookup.known(named, &[SymbolPart::Class]).await;
    let supers = known.class.map(|class| class.supers).unwrap_or_default();
    names.extend(supers.into_iter().map(|name| Named { name, package: named.package.clone() }));
    located(&mut lookup, &names).await
}

/// Returns the direct subclasses that are defined in files.
pub async fn subtypes<B: Backend>(context: &Context<B>, named: &Named) -> Vec<Item> {
    let index = context.texts_index().await;
    let mut lookup = Lookup::new(context, &index).await;
    let packages = index.packages();
    let below = Subclasses::of(&packages, &lookup);
    below.direct(&packages, &mut lookup, named).await
}

/// Returns the subclasses of all levels, those of nearer levels first.
pub async fn all_subtypes<B: Backend>(context: &Context<B>, named: &Named) -> Vec<Item> {
    let index = context.texts_index().await;
    let mut lookup = Lookup::new(context, &index).await;
    let packages = index.packages();
    let below = Subclasses::of(&packages, &lookup);
    let mut found: Vec<Item> = Vec::new();
    let mut waiting = vec![named.clone()];
    let mut next = 0;
    while next < waiting.len() && found.len() < MAX_SUBTYPES {
        for item in below.direct(&packages, &mut lookup, &waiting[next].clone()).await {
            let before = found.len();
            let symbol = item.symbol.clone();
            add(&mut found, [item]);
            waiting.extend(symbol.filter(|_| found.len() > before));
        }
        next += 1;
    }
    found
}

/// Returns the definitions of some classes.
async fn located<B: Backend>(lookup: &mut Lookup<'_, B>, names: &[Named]) -> Vec<Item> {
    let mut found = Vec::new();
    for named in names {
        let items = lookup.definitions(named, is_class).await;
        add(&mut found, items);
    }
    found
}

/// The direct subclasses in the texts, by the superclass's home package and name.
struct Subclasses(HashMap<(String, String), Vec<Named>>);

impl Subclasses {
    fn of<B>(packages: &Packages<'_>, lookup: &Lookup<'_, B>) -> Subclasses {
        let mut below: HashMap<_, Vec<Named>> = HashMap::new();
        for one in lookup.index.files.iter().flat_map(|file| &file.definitions) {
            for name in one.supers.iter().filter_map(|written| names::symbol(written).map(|symbol| (written, symbol))) {
                let of = (home(packages, name.0, one.package.as_deref()), name.1.name);
                below.entry(of).or_default().push(Named { name: one.written.clone(), package: one.package.clone() });
            }
        }
        Subclasses(below)
    }

    async fn direct<B: Backend>(
        &self,
        packages: &Packages<'_>,
        lookup: &mut Lookup<'_, B>,
        named: &Named,
    ) -> Vec<Item> {
        let name = names::symbol(&named.name).map(|symbol| symbol.name).unwrap_or_default();
        let of = (home(packages, &named.name, named.package.as_deref()), name);
        let mut names = self.0.get(&of).cloned().unwrap_or_default();
        let known = lookup.known(named, &[SymbolPart::Class]).await;
        let subclasses = known.class.map(|class| class.subclasses).unwrap_or_default();
        names.extend(subclasses.into_iter().map(|name| Named { name, package: named.package.clone() }));
        located(lookup, &names).await
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, definition, run};
    use crate::ide::hierarchy::tests::shown;

    /// Compares the types at the cursor with `expected`, with their supertypes (`^`), subtypes
    /// (`v`) and all subtypes.
    fn check(image: FakeImage, files: &[(&str, &str)], expected: Expect) {
        let cursor = cursor(image, files);
        let mut out = String::new();
        for item in run(prepare(&cursor)) {
            out += &format!("{}\n", shown(&item));
            let named = item.symbol.clone().expect("a symbol");
            for one in run(supertypes(&cursor.context, &named)) {
                out += &format!("  ^ {}\n", shown(&one));
            }
            for one in run(subtypes(&cursor.context, &named)) {
                out += &format!("  v {}\n", shown(&one));
            }
            let all: Vec<String> =
                run(all_subtypes(&cursor.context, &named)).iter().map(|one| one.name.clone()).collect();
            out += &format!("  all: {}\n", all.join(" "));
        }
        expected.assert_eq(&out);
    }

    const SHAPES: [(&str, &str); 2] = [
        (
            "a.lisp",
            "(in-package :app)\n(defclass shape () ())\n(defclass rou‸nd (shape lib:thing) ())\n(defclass circle (round) ())\n(defclass dot (circle) ())",
        ),
        (
            "p.lisp",
            "(defpackage :lib (:export :thing))\n(defpackage :app (:use :cl))\n(defpackage :far (:use))\n(in-package :lib)\n(defclass thing () ())\n(in-package :far)\n(defclass other (round) ())\n(defclass ring (app::round) ())",
        ),
    ];

    #[test]
    fn without_an_image_the_texts_tell_of_classes() {
        check(
            FakeImage::absent(),
            &SHAPES,
            expect![[r#"
                class round a.lisp:3
                  ^ class shape a.lisp:2
                  ^ class thing p.lisp:5
                  v class circle a.lisp:4
                  v class ring p.lisp:8
                  all: circle ring dot
            "#]],
        );
        check(
            FakeImage::absent(),
            &[(
                "a.lisp",
                "(define-condition bad (error) ())\n(define-condition worse (ba‸d) ())\n(defstruct (s (:include worse)) x)",
            )],
            expect![[r#"
                condition bad a.lisp:1
                  v condition worse a.lisp:2
                  all: worse s
            "#]],
        );
    }

    #[test]
    fn the_image_knows_classes_of_other_files() {
        let class = json!({
            "metaclass": "standard-class", "supers": ["base", "standard-object"], "subclasses": ["leaf"], "slots": [],
            "initargs": [], "methods": [],
        });
        let at = |name: &str, form| json!({"found": true, "definitions": [definition("class", name, "b.lisp", form)]});
        let mut middle = at("middle", 0);
        middle["class"] = class;
        check(
            FakeImage::empty().symbol("middle", middle).symbol("base", at("base", 1)).symbol("leaf", at("leaf", 2)),
            &[
                ("a.lisp", "(make-instance 'mid‸dle)"),
                ("b.lisp", "(defclass middle (base) ())\n(define-class base)\n(defclass leaf (middle) ())"),
            ],
            expect![[r#"
                class middle b.lisp:1
                  ^ class base b.lisp:2
                  v class leaf b.lisp:3
                  all: leaf
            "#]],
        );
    }

    #[test]
    fn other_names_are_no_types() {
        for text in ["(defun f‸ () 1)", "(let ((c 1)) c‸)"] {
            check(FakeImage::absent(), &[("a.lisp", text), ("b.lisp", "(defclass c () ())")], expect![""]);
        }
    }
}
