//! Fixes for an unknown name that is similar to a known one: a change to that name.

use super::names::{Token, token};
use super::{Change, Fix};
use crate::ide::partial_name::{self, PartialName};
use crate::image::api::symbols::{Complete, Completion};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::forms::package_at;

/// The maximum number of names that are offered.
const OFFERED: usize = 3;
/// The maximum number of names that the image is asked for.
const MAX_COMPARED: usize = 2_000;

/// Returns true if a function is unknown, false if a variable is; `None` for other diagnostics.
fn operator(item: &Diagnostic) -> Option<bool> {
    match item.code.as_str() {
        "undefined-function" => Some(true),
        "undefined-variable" => Some(false),
        _ => None,
    }
}

/// The prefix by which similar names are found: the package prefix and the first character.
fn start(token: &Token) -> String {
    let prefix = token.written.len() - token.name.len();
    let first = token.name.chars().next().map_or(0, char::len_utf8);
    token.written[..prefix + first].to_owned()
}

/// The query to the image for names similar to an unknown one.
pub fn question(document: &Document, item: &Diagnostic, first_package: &str) -> Option<Complete> {
    let operator = operator(item)?;
    let package = package_at(document, item.span.start).unwrap_or_else(|| first_package.to_owned());
    let text = start(&token(document, item)?);
    Some(Complete { text, package: Some(package), limit: MAX_COMPARED, operator, packages: false })
}

/// The fixes, from the names of the image and those of the text, best first.
pub fn fixes(document: &Document, item: &Diagnostic, image: &[Completion]) -> Vec<Fix> {
    let (Some(operator), Some(token)) = (operator(item), token(document, item)) else { return Vec::new() };
    let context = PartialName { typed: start(&token), replace: item.span, package: None, operator, packages: false };
    let own = partial_name::locals(document, item.span.end, &context);
    let own = own.into_iter().filter(|one| one.operator == operator).map(|one| one.label);
    let function = |kind: &str| matches!(kind, "function" | "generic function" | "macro" | "special operator");
    let variable = |kind: &str| matches!(kind, "variable" | "global variable" | "constant" | "symbol macro");
    let fits = |one: &&Completion| if operator { function(&one.kind) } else { variable(&one.kind) };
    let names = own.chain(image.iter().filter(fits).map(|one| one.label.clone()));
    let upper_case = !token.written.chars().any(char::is_lowercase);
    let written = token.written.to_lowercase();
    let most = if token.name.chars().count() < 4 { 1 } else { 2 };
    let mut near: Vec<(usize, String)> = names
        .map(|name| (strsim::damerau_levenshtein(&written, &name.to_lowercase()), name))
        .filter(|(distance, _)| (1..=most).contains(distance))
        .map(|(distance, name)| (distance, if upper_case { name.to_uppercase() } else { name }))
        .collect();
    near.sort();
    near.dedup();
    near.truncate(OFFERED);
    let nearest = near.first().map(|(distance, _)| *distance);
    let sure = near.iter().filter(|(distance, _)| Some(*distance) == nearest).count() == 1;
    let fix = |(index, (_, name)): (usize, (usize, String))| {
        let fix = Fix::new(format!("Change to {name}"), vec![Change { span: item.span, text: name }]);
        if sure && index == 0 { fix.preferred() } else { fix }
    };
    near.into_iter().enumerate().map(fix).collect()
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
}
