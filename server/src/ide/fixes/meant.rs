//! Fixes for an unknown name that is similar to a known one. They change it to the known name.

use super::names::{Token, token};
use super::{Change, Fix};
use crate::ide::partial_name::{self, PartialName};
use crate::image::api::symbols::{Complete, Completion};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::forms::package_at;

/// The maximum number of names that are offered.
const MAX_OFFERED: usize = 3;
/// The maximum number of names that the image returns for the comparison.
const MAX_COMPARED: usize = 2_000;

/// The kind of the name that is unknown according to a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Function,
    Variable,
    Type,
    /// A symbol that its package does not export or does not have.
    Symbol,
    /// The package of a prefix.
    Package,
}

impl Unknown {
    fn of(item: &Diagnostic) -> Option<Unknown> {
        Some(match item.code.as_str() {
            "undefined-function" => Unknown::Function,
            "undefined-variable" => Unknown::Variable,
            "undefined-type" | "unknown-class" => Unknown::Type,
            "unknown-symbol" => Unknown::Symbol,
            "unknown-package" => Unknown::Package,
            _ => return None,
        })
    }

    /// Returns true if a known name of the kind `kind` (in the image's terms) may be meant.
    fn fits(self, kind: &str) -> bool {
        match self {
            Unknown::Function => matches!(kind, "function" | "generic function" | "macro" | "special operator"),
            Unknown::Variable => matches!(kind, "variable" | "global variable" | "constant" | "symbol macro"),
            Unknown::Type => matches!(kind, "class" | "structure" | "condition" | "type"),
            Unknown::Symbol => kind != "package",
            Unknown::Package => kind == "package",
        }
    }
}

/// Returns true for a diagnostic about an unknown name.
pub fn is_about_name(item: &Diagnostic) -> bool {
    Unknown::of(item).is_some()
}

/// Returns the misspelt part of a token: the package prefix without its colon if the package is
/// unknown, and otherwise the name with its prefix.
fn misspelt(unknown: Unknown, token: &Token) -> Option<&str> {
    match unknown {
        Unknown::Package => token.package.as_deref().filter(|package| !package.is_empty()),
        _ => Some(&token.written),
    }
}

/// Returns the prefix by which similar names are found: the package prefix and the first character.
fn start(unknown: Unknown, token: &Token) -> Option<String> {
    let misspelt = misspelt(unknown, token)?;
    let prefix = if unknown == Unknown::Package { 0 } else { misspelt.len() - token.name.len() };
    let first = misspelt[prefix..].chars().next().map_or(0, char::len_utf8);
    Some(misspelt[..prefix + first].to_owned())
}

/// Returns the query to the image for names similar to an unknown one.
pub fn question(document: &Document, item: &Diagnostic, first_package: &str) -> Option<Complete> {
    let unknown = Unknown::of(item)?;
    let package = package_at(document, item.span.start).unwrap_or_else(|| first_package.to_owned());
    Some(Complete {
        text: start(unknown, &token(document, item)?)?,
        package: Some(package),
        limit: MAX_COMPARED,
        operator: unknown == Unknown::Function,
        packages: unknown == Unknown::Package,
    })
}

/// Returns the texts that may be meant in place of an unknown name, from the names of the image and
/// those of the text, best first.
pub fn names(document: &Document, item: &Diagnostic, image: &[Completion]) -> Vec<String> {
    near(document, item, image).into_iter().map(|(_, name)| name).collect()
}

/// Returns the fixes, from the names of the image and those of the text, best first.
pub fn fixes(document: &Document, item: &Diagnostic, image: &[Completion]) -> Vec<Fix> {
    let near = near(document, item, image);
    let nearest = near.first().map(|(distance, _)| *distance);
    let sure = near.iter().filter(|(distance, _)| Some(*distance) == nearest).count() == 1;
    let fix = |(index, (_, text)): (usize, (usize, String))| {
        let fix = Fix::new(format!("Change to {text}"), vec![Change { span: item.span, text }]);
        if sure && index == 0 { fix.with_preference() } else { fix }
    };
    near.into_iter().enumerate().map(fix).collect()
}

/// Returns the texts that may be meant, each with its distance from the written text, best first.
fn near(document: &Document, item: &Diagnostic, image: &[Completion]) -> Vec<(usize, String)> {
    let (Some(unknown), Some(token)) = (Unknown::of(item), token(document, item)) else { return Vec::new() };
    let (Some(misspelt), Some(typed)) = (misspelt(unknown, &token), start(unknown, &token)) else { return Vec::new() };
    let own = match unknown {
        Unknown::Function | Unknown::Variable => {
            let operator = unknown == Unknown::Function;
            let context = PartialName { typed, replace: item.span, package: None, operator, packages: false };
            let own = partial_name::locals(document, item.span.end, &context);
            own.into_iter().filter(|one| one.operator == operator).map(|one| one.label).collect()
        }
        _ => Vec::new(),
    };
    let names = own.into_iter().chain(image.iter().filter(|one| unknown.fits(&one.kind)).map(|one| one.label.clone()));
    let upper_case = !token.written.chars().any(char::is_lowercase);
    let written = misspelt.to_lowercase();
    let compared = if unknown == Unknown::Package { misspelt } else { &token.name };
    let most = if compared.chars().count() < 4 { 1 } else { 2 };
    let mut near: Vec<(usize, String)> = names
        .map(|name| (strsim::damerau_levenshtein(&written, &name.to_lowercase()), name))
        .filter(|(distance, _)| (1..=most).contains(distance))
        .map(|(distance, name)| (distance, if upper_case { name.to_uppercase() } else { name }))
        .collect();
    near.sort();
    near.dedup();
    near.truncate(MAX_OFFERED);
    near.into_iter().map(|(distance, name)| (distance, format!("{name}{}", &token.written[misspelt.len()..]))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    fn known(label: &str, kind: &str) -> Completion {
        Completion { label: label.into(), name: label.to_uppercase(), package: "COMMON-LISP".into(), kind: kind.into() }
    }

    #[test]
    fn a_misspelt_function_is_changed_to_the_one_that_was_meant() {
        let (document, item) = marked("(defun lengthy () 1)\n(«lenght» x)", "undefined-function");
        let question = question(&document, &item, "CL-USER").unwrap();
        assert_eq!((question.text.as_str(), question.operator), ("l", true));
        let image = [known("length", "function"), known("lenght-of", "function"), known("lenghs", "variable")];
        let fixes = fixes(&document, &item, &image);
        let titles: Vec<&str> = fixes.iter().map(|fix| fix.title.as_str()).collect();
        assert_eq!(titles, ["Change to length", "Change to lengthy"]);
        assert_eq!(fixes.iter().map(|fix| fix.preferred).collect::<Vec<_>>(), [true, false]);
        assert!(applied(&document, &fixes[0]).ends_with("(length x)"));
        assert_eq!(names(&document, &item, &image), ["length", "lengthy"]);
    }

    #[test]
    fn an_upper_case_name_stays_one_and_a_package_is_kept() {
        let (document, item) = marked("(«LENGHT» x)", "undefined-function");
        assert_eq!(fixes(&document, &item, &[known("length", "function")])[0].title, "Change to LENGTH");
        let (document, item) = marked("(«shop:prise» x)", "undefined-function");
        assert_eq!(question(&document, &item, "CL-USER").unwrap().text, "shop:p");
        assert_eq!(fixes(&document, &item, &[known("shop:price", "function")])[0].title, "Change to shop:price");
    }

    #[test]
    fn a_variable_is_looked_for_among_the_bindings_around_it() {
        let (document, item) = marked("(defun area (width height) (* width «heigth»))", "undefined-variable");
        assert_eq!(fixes(&document, &item, &[])[0].title, "Change to height");
        let (document, item) = marked("(list «zzz»)", "undefined-variable");
        assert!(fixes(&document, &item, &[known("zoo", "variable")]).is_empty());
    }

    #[test]
    fn a_symbol_a_type_and_a_package_are_looked_for_among_their_kind() {
        let change = |text: &str, code: &str, image: &[Completion]| {
            let (document, item) = marked(text, code);
            fixes(&document, &item, image).into_iter().map(|fix| fix.title).collect::<Vec<_>>()
        };
        let image = [known("shop:discount", "function"), known("shop:discounts", "package")];
        assert_eq!(change("(list «shop:dicsount»)", "unknown-symbol", &image), ["Change to shop:discount"]);
        let image = [known("fixnum", "class"), known("fixnums", "function")];
        assert_eq!(change("(the «fixnm» x)", "undefined-type", &image), ["Change to fixnum"]);
        assert_eq!(change("(defmethod f ((x «fixnm»)) x)", "unknown-class", &image), ["Change to fixnum"]);
        let image = [known("alexandria", "package"), known("alexandra", "variable")];
        assert_eq!(change("(«alexandra:flatten» x)", "unknown-package", &image), ["Change to alexandria:flatten"]);
        assert!(change("(«flatten» x)", "unknown-package", &image).is_empty());
    }
}
