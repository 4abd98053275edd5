//! Fixes for an unknown name: a prefix, an import or an export that makes the name accessible.

use super::packages::{Clause, Definition, add};
use super::{Change, Fix};
use crate::image::api::find_name::{FindName, FoundName, Offer};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::line_break;
use crate::text::names::upcased;
use crate::text::{Span, scanner::Scanner, scanner::TokenKind};

/// The maximum number of packages that are offered.
const MAX_OFFERED: usize = 4;

/// Returns the kinds that a name may have, by the code of the finding. An empty list stands for any
/// kind.
fn accepted_kinds(code: &str) -> Option<&'static [&'static str]> {
    match code {
        "undefined-function" => Some(&["function", "macro", "special-operator"]),
        "undefined-variable" => Some(&["variable", "constant"]),
        "undefined-type" => Some(&["class"]),
        "unknown-symbol" | "unknown-package" => Some(&[]),
        _ => None,
    }
}

/// A symbol as written, with its package, if the text names one, and its name.
pub(super) struct Token {
    pub(super) written: String,
    pub(super) package: Option<String>,
    pub(super) name: String,
}

pub(super) fn token(document: &Document, item: &Diagnostic) -> Option<Token> {
    let text = document.text();
    // The text may differ from the one that was checked.
    let written = text.get_slice(item.span.start..item.span.end.min(text.len_chars()))?.to_string();
    let mut tokens = Scanner::inside(&written);
    let whole = tokens.next().is_some_and(|token| token.kind == TokenKind::Atom && token.end == written.len());
    // Names with escapes or `#` are not handled.
    if !whole || written.contains(['|', '\\', '#']) || written.starts_with(':') {
        return None;
    }
    let (package, name) = match written.split_once(':') {
        Some((package, name)) => (Some(package.to_owned()), name.trim_start_matches(':').to_owned()),
        None => (None, written.clone()),
    };
    (!name.is_empty() && !name.contains(':')).then_some(Token { written, package, name })
}

pub(super) fn question(document: &Document, item: &Diagnostic, first_package: &str) -> Option<FindName> {
    accepted_kinds(&item.code)?;
    let token = token(document, item)?;
    let package = package_at(document, item.span.start).unwrap_or_else(|| first_package.to_owned());
    Some(FindName { name: upcased(&token.name), package })
}

/// Returns the packages whose definitions the fixes may change, in upper case.
pub(super) fn packages(document: &Document, item: &Diagnostic, asked: &FindName) -> Vec<String> {
    let written = token(document, item).and_then(|token| token.package);
    written.map(|package| upcased(&package)).into_iter().chain([asked.package.clone()]).collect()
}

pub(super) fn fixes(
    document: &Document,
    item: &Diagnostic,
    asked: &FindName,
    found: &FoundName,
    others: &[(String, Document)],
) -> Vec<Fix> {
    let (Some(kinds), Some(token)) = (accepted_kinds(&item.code), token(document, item)) else { return Vec::new() };
    let fits = |offer: &&Offer| kinds.is_empty() || offer.kinds.iter().any(|kind| kinds.contains(&kind.as_str()));
    let offers: Vec<&Offer> = found.offers.iter().filter(fits).collect();
    let definition = |package: &str| {
        let here = Definition::find(document, package).map(|definition| (None, definition));
        here.or_else(|| {
            let mut all = others.iter();
            all.find_map(|(uri, other)| Some((Some(uri.clone()), Definition::find(other, package)?)))
        })
    };
    let lower = !token.written.chars().any(char::is_uppercase);
    let shown = |name: &str| if lower { name.to_lowercase() } else { name.to_owned() };
    let mut fixes = Vec::new();
    if let Some(package) = &token.package {
        let own = found.offers.iter().find(|offer| offer.package.eq_ignore_ascii_case(package) && !offer.external);
        if own.is_some() {
            fixes.push(replace(item, format!("{package}::{}", token.name)).with_preference());
            if let Some((uri, definition)) = definition(&upcased(package))
                && let Some(change) = add(&definition, &Clause::Export(&token.name))
            {
                let title = format!("Export {} from {}", token.name, shown(package));
                fixes.push(Fix { uri, ..Fix::new(title, vec![change]) });
            }
        }
        let elsewhere = offers.iter().filter(|offer| offer.external && !offer.package.eq_ignore_ascii_case(package));
        fixes.extend(
            elsewhere.take(MAX_OFFERED).map(|offer| replace(item, format!("{}:{}", shown(&offer.package), token.name))),
        );
        return fixes;
    }
    let elsewhere: Vec<&&Offer> =
        offers.iter().filter(|offer| offer.package != asked.package).take(MAX_OFFERED).collect();
    for offer in &elsewhere {
        let colons = if offer.external { ":" } else { "::" };
        fixes.push(replace(item, format!("{}{colons}{}", shown(&offer.package), token.name)));
    }
    if let Some((uri, definition)) = definition(&asked.package) {
        for offer in elsewhere.iter().filter(|offer| offer.external) {
            let package = shown(&offer.package);
            if let Some(change) = add(&definition, &Clause::ImportFrom(&package, &token.name)) {
                let title = format!("Import {} from {package}", token.name);
                fixes.push(Fix { uri: uri.clone(), ..Fix::new(title, vec![change]) });
            }
            if let Some(change) = add(&definition, &Clause::Use(&package)) {
                fixes.push(Fix { uri: uri.clone(), ..Fix::new(format!("Use the package {package}"), vec![change]) });
            }
        }
    }
    fixes.extend(in_package(document, item, &elsewhere, &shown));
    fixes
}

fn replace(item: &Diagnostic, text: String) -> Fix {
    Fix::new(format!("Write {text}"), vec![Change { span: item.span, text }])
}

/// Returns fixes for a file without `in-package`. Each inserts one, for a package that has the
/// name.
fn in_package(document: &Document, item: &Diagnostic, offers: &[&&Offer], shown: &dyn Fn(&str) -> String) -> Vec<Fix> {
    if package_at(document, item.span.start).is_some() {
        return Vec::new();
    }
    let Some(first) = document.scan().forms().first() else { return Vec::new() };
    let at = Span { start: first.span.start, end: first.span.start };
    let own = |offer: &&&&Offer| !offer.package.starts_with("SB-") && offer.package != "COMMON-LISP";
    let newline = line_break::of_document(document);
    let insert = |offer: &&&Offer| {
        let form = format!("(in-package #:{})", shown(&offer.package));
        Fix::new(format!("Insert {form}"), vec![Change { span: at, text: format!("{form}{newline}{newline}") }])
    };
    offers.iter().filter(own).map(insert).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    fn offer(package: &str, external: bool, kind: &str) -> Offer {
        Offer { package: package.into(), external, kinds: vec![kind.into()] }
    }

    /// Returns each fix's title, and the text after the fix.
    fn after(source: &str, code: &str, offers: &[Offer]) -> Vec<(String, String)> {
        let (document, item) = marked(source, code);
        let asked = question(&document, &item, "COMMON-LISP-USER").unwrap();
        let found = FoundName { offers: offers.to_vec(), ..FoundName::default() };
        fixes(&document, &item, &asked, &found, &[])
            .iter()
            .map(|fix| (fix.title.clone(), applied(&document, fix)))
            .collect()
    }

    fn expect(source: &str, code: &str, offers: &[Offer], expected: &[(&str, &str)]) {
        let got = after(source, code, offers);
        let got: Vec<(&str, &str)> = got.iter().map(|(title, text)| (title.as_str(), text.as_str())).collect();
        assert_eq!(got, expected, "{source}");
    }

    #[test]
    fn a_function_is_taken_from_a_package_that_has_it() {
        expect(
            "(in-package :my)\n(«scan» 1)",
            "undefined-function",
            &[
                offer("CL-PPCRE", true, "function"),
                offer("OTHER", false, "macro"),
                offer("V", true, "variable"),
                offer("MY", false, "function"),
            ],
            &[
                ("Write cl-ppcre:scan", "(in-package :my)\n(cl-ppcre:scan 1)"),
                ("Write other::scan", "(in-package :my)\n(other::scan 1)"),
            ],
        );
        expect(
            "(defpackage :my (:use :cl)) ; mine\n(in-package :my)\n«*X*»",
            "undefined-variable",
            &[offer("ENV", true, "variable")],
            &[
                ("Write ENV:*X*", "(defpackage :my (:use :cl)) ; mine\n(in-package :my)\nENV:*X*"),
                (
                    "Import *X* from ENV",
                    "(defpackage :my (:use :cl)\n  (:import-from :ENV :*X*)) ; mine\n(in-package :my)\n*X*",
                ),
                ("Use the package ENV", "(defpackage :my (:use :cl :ENV)) ; mine\n(in-package :my)\n*X*"),
            ],
        );
    }

    #[test]
    fn an_inserted_form_has_the_line_breaks_of_its_file() {
        expect(
            ";;; Title\r\n(«play»)",
            "undefined-function",
            &[offer("TOY", false, "function")],
            &[
                ("Write toy::play", ";;; Title\r\n(toy::play)"),
                ("Insert (in-package #:toy)", ";;; Title\r\n(in-package #:toy)\r\n\r\n(play)"),
            ],
        );
    }

    #[test]
    fn a_file_without_a_package_is_offered_one() {
        expect(
            ";;; Title\n\n(«play»)",
            "undefined-function",
            &[offer("TOY", false, "function"), offer("SB-IMPL", true, "function")],
            &[
                ("Write toy::play", ";;; Title\n\n(toy::play)"),
                ("Write sb-impl:play", ";;; Title\n\n(sb-impl:play)"),
                ("Insert (in-package #:toy)", ";;; Title\n\n(in-package #:toy)\n\n(play)"),
            ],
        );
    }

    #[test]
    fn what_a_package_keeps_to_itself_is_reached_or_exported() {
        expect(
            "(defpackage #:toy\n  (:export #:other))\n(«toy:play»)",
            "unknown-symbol",
            &[offer("TOY", false, "function"), offer("GAME", true, "function")],
            &[
                ("Write toy::play", "(defpackage #:toy\n  (:export #:other))\n(toy::play)"),
                ("Export play from toy", "(defpackage #:toy\n  (:export #:other #:play))\n(toy:play)"),
                ("Write game:play", "(defpackage #:toy\n  (:export #:other))\n(game:play)"),
            ],
        );
        expect(
            "(«toi:play»)",
            "unknown-package",
            &[offer("TOY", true, "function")],
            &[("Write toy:play", "(toy:play)")],
        );
    }

    #[test]
    fn escaped_names_and_lists_are_not_guessed_at() {
        for source in ["(«|a b|»)", "«(setf x)»", "(«a\\b»)", "«:key»", "«#'f»", "(«a:b:c»)"] {
            let (document, item) = marked(source, "undefined-function");
            assert!(question(&document, &item, "COMMON-LISP-USER").is_none(), "{source}");
        }
        let (document, item) = marked("(«f»)", "unused-variable");
        assert!(question(&document, &item, "COMMON-LISP-USER").is_none());
    }
}
