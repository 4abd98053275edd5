//! The documentation of the exports of a package, or of each package of a system, as a page of
//! text.

use std::fmt::Write as _;

use super::context::Backend;
use crate::image::api::package_contents::{Manual, ManualPackage, SymbolFact};
use crate::model::image::ImageError;
use crate::shown;
use crate::text::names::as_written;

/// The indentation of a documentation string.
const INDENT: &str = "    ";

/// Returns the page about a package, or about the packages of a system.
///
/// # Errors
/// There is no such package or system (`not-found`), or see [`Backend::query`].
pub async fn page<B: Backend>(backend: &B, name: String) -> Result<String, ImageError> {
    let packages = backend.query(Manual { name }).await?.packages;
    Ok(packages.iter().map(text_of).collect::<Vec<_>>().join("\n\n"))
}

fn text_of(package: &ManualPackage) -> String {
    let mut text = format!("Package {}", written(&package.name));
    if !package.nicknames.is_empty() {
        let nicknames: Vec<String> = package.nicknames.iter().map(|name| written(name)).collect();
        let _ = write!(text, ", also {}", nicknames.join(", "));
    }
    let _ = write!(text, "\n{}\n", "=".repeat(text.chars().count()));
    if let Some(documentation) = &package.documentation {
        let _ = writeln!(text, "{}", indented(documentation));
    }
    for export in &package.exports {
        text.push('\n');
        entry(&mut text, export);
    }
    let more = package.count.saturating_sub(package.exports.len());
    if more > 0 {
        let _ = writeln!(text, "\n... and {more} more");
    }
    text
}

/// Returns a name as it is written, on one line.
fn written(name: &str) -> String {
    shown::line(&as_written(name))
}

/// Adds the entry of one symbol: a line for each kind of thing that it names, followed by the
/// documentation.
fn entry(text: &mut String, symbol: &SymbolFact) {
    let name = written(&symbol.name);
    if symbol.kinds.is_empty() {
        let _ = writeln!(text, "{name}");
    }
    for meaning in &symbol.kinds {
        let is_operator = ["function", "macro", "operator"].iter().any(|kind| meaning.kind.ends_with(kind));
        let called = match &symbol.lambda_list {
            Some(list) if is_operator => match list.strip_prefix('(').unwrap_or(list) {
                ")" => format!("({name})"),
                rest => format!("({name} {rest}"),
            },
            _ => name.clone(),
        };
        let _ = writeln!(text, "{called}  [{}]", meaning.kind);
        if let Some(documentation) = &meaning.documentation {
            let _ = writeln!(text, "{}", indented(documentation));
        }
    }
}

/// Returns a documentation string, indented. The white space with which all lines after the first
/// begin is removed.
fn indented(documentation: &str) -> String {
    let mut lines = documentation.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    let blanks = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let common = rest.iter().filter(|line| !line.trim().is_empty()).map(blanks).min().unwrap_or_default();
    let rest = rest.iter().map(|line| line.get(common..).unwrap_or_default());
    std::iter::once(first.trim_start())
        .chain(rest)
        .map(|line| if line.trim().is_empty() { String::new() } else { format!("{INDENT}{line}") })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_has_each_meaning_of_each_export() {
        let package: ManualPackage = serde_json::from_value(json!({
            "name": "SHOP", "nicknames": ["S", "s"], "documentation": "Things\n  that are sold.", "count": 6,
            "exports": [
                {"name": "PRICE", "package": "SHOP", "external": true, "lambda_list": "(item &key (vat 0))",
                 "kinds": [{"kind": "generic function", "documentation": "The price.\n\n   With VAT.\n     Twice."},
                           {"kind": "class", "documentation": null}]},
                {"name": "*RATE*", "package": "SHOP", "external": true, "lambda_list": null,
                 "kinds": [{"kind": "variable", "documentation": "A rate."}]},
                {"name": "now", "package": "SHOP", "external": true, "lambda_list": "()",
                 "kinds": [{"kind": "function", "documentation": null}]},
                {"name": "WITH IT", "package": "SHOP", "external": true, "lambda_list": "((it item) &body body)",
                 "kinds": [{"kind": "macro", "documentation": null}]},
                {"name": "TAG", "package": "SHOP", "external": true, "lambda_list": null, "kinds": []},
            ],
        }))
        .unwrap();
        let wanted = "Package shop, also s, |s|
=========================
    Things
    that are sold.

(price item &key (vat 0))  [generic function]
    The price.

    With VAT.
      Twice.
price  [class]

*rate*  [variable]
    A rate.

(|now|)  [function]

(|WITH IT| (it item) &body body)  [macro]

tag

... and 1 more
";
        assert_eq!(text_of(&package), wanted);
    }
}
