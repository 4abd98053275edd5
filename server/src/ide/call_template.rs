//! A template for a REPL: a call of the function at a place, with the names of its required
//! parameters as arguments.

use super::context::{Backend, Cursor};
use super::enclosing;
use super::signature::{CallSite, parameters, parts};
use crate::image::api::symbols::{Facts, SymbolPart};
use crate::text::forms::symbol_at;
use crate::text::{Span, definitions, names};

/// The maximum number of arguments.
const MAX_ARGUMENTS: usize = 20;

/// A template of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The function's name, as it is to be read in the package of the REPL.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<String>,
}

impl Template {
    /// Returns the call as text: `(name argument ...)`.
    pub fn text(&self) -> String {
        let words: Vec<&str> = std::iter::once(&self.name).chain(&self.arguments).map(String::as_str).collect();
        format!("({})", words.join(" "))
    }
}

/// Returns the call of the function or macro at the cursor, or of the one whose definition contains
/// the cursor. `repl` is the package in which the call will be read.
///
/// # Errors
/// There is no such function or macro.
pub async fn at<B: Backend>(cursor: &Cursor<B>, repl: Option<&str>) -> Result<Template, String> {
    let package = cursor.package();
    let around = enclosing::at(&cursor.document, cursor.offset).and_then(|around| around.defined);
    let written = symbol_at(&cursor.document, cursor.offset);
    let place = written.as_ref().map_or(Span { start: cursor.offset, end: cursor.offset }, |(span, _)| *span);
    let candidates = written.map(|(_, name)| name).into_iter().chain(around);
    for operator in candidates.filter(|name| names::symbol(name).is_some() && !name.starts_with([':', '#'])) {
        let site = CallSite { operator, span: place, arguments: Vec::new(), inner: Vec::new() };
        if let Some(known) = parameters(cursor, &site, package.as_deref()).await {
            let name = printed(cursor, &site.operator, package.as_deref(), repl).await;
            let method = is_method(cursor, &site.operator);
            return Ok(Template { name, arguments: required(&known.names, method) });
        }
    }
    Err("There is no function here whose parameters are known.".into())
}

/// Returns true if, among the definitions of a name in the open texts, the first one that has a
/// lambda list is a method.
fn is_method<B: Backend>(cursor: &Cursor<B>, name: &str) -> bool {
    let key = definitions::key(name);
    let mut all = cursor.context.open().flat_map(|document| definitions::named(document, &key));
    all.find(|one| one.lambda_list.is_some()).is_some_and(|one| one.operator == "defmethod")
}

/// Returns the names of the required parameters. For a method, specializers are left out.
fn required(names: &[String], method: bool) -> Vec<String> {
    let required = names.iter().take_while(|name| !name.starts_with('&')).take(MAX_ARGUMENTS);
    let name = |written: &String| match written.starts_with('(') {
        true if method => parts(written).into_iter().next().unwrap_or_default(),
        true => written.split_whitespace().collect::<Vec<&str>>().join(" "),
        false => written.clone(),
    };
    required.map(|written| name(written).to_lowercase()).collect()
}

/// Converts a name that is written in `package` to the form in which it is written in `repl`. For
/// both, `None` stands for CL-USER.
async fn printed<B: Backend>(cursor: &Cursor<B>, name: &str, package: Option<&str>, repl: Option<&str>) -> String {
    let here = package.unwrap_or("COMMON-LISP-USER");
    let repl = repl.unwrap_or("COMMON-LISP-USER");
    if let Some(Facts { name, package: Some(home), .. }) = facts(cursor, name, here).await {
        let bare = |name: &str| name.replace(['\\', '|'], "");
        let whole = format!("|{}|::|{}|", bare(&home), bare(&name));
        if let Some(Facts { printed, .. }) = facts(cursor, &whole, repl).await {
            return if printed.contains(['|', '\\']) { printed } else { printed.to_lowercase() };
        }
    }
    let same = here.eq_ignore_ascii_case(repl) || name.contains(':');
    if same { name.to_owned() } else { format!("{}::{name}", here.to_lowercase()) }
}

async fn facts<B: Backend>(cursor: &Cursor<B>, name: &str, package: &str) -> Option<Facts> {
    cursor.context.symbol(name, Some(package), &[SymbolPart::Facts]).await.ok()?.facts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, run};

    fn template(image: FakeImage, text: &str, repl: &str) -> String {
        let cursor = cursor(image, &[("a.lisp", text)]);
        run(at(&cursor, Some(repl))).map_or_else(|why| why, |template| template.text())
    }

    #[test]
    fn the_function_at_the_cursor_or_around_it_is_called() {
        let text = "(in-package :app)\n(defun far (x y &key z) (list x y z))\n";
        for (more, expected) in [
            ("(fa‸r 1)", "(far x y)"),
            ("(defun g () (unknown‸))", "(g)"),
            ("(defmethod m ((x shape) y) ‸ x)", "(m x y)"),
            ("(defmacro with ((a b) &body body) ‸)", "(with (a b))"),
            ("(defvar ‸*v*)", "There is no function here whose parameters are known."),
            ("‸", "There is no function here whose parameters are known."),
        ] {
            assert_eq!(template(FakeImage::absent(), &format!("{text}{more}"), "APP"), expected, "{more}");
        }
        assert_eq!(template(FakeImage::absent(), &format!("{text}(fa‸r)"), "CL-USER"), "(app::far x y)");
        assert_eq!(template(FakeImage::absent(), &format!("{text}(app:fa‸r)"), "CL-USER"), "(app:far x y)");
    }

    #[test]
    fn the_image_knows_how_it_is_written_there() {
        let facts = |printed: &str| {
            json!({
                "name": "FAR", "package": "APP", "external": true, "printed": printed, "kinds": ["function"],
                "lambda_list": ["X", "&optional", "Y"], "type": null, "value": null, "class": null, "documentation": [],
            })
        };
        let image = FakeImage::empty()
            .symbol("far", json!({"found": true, "printed": "FAR", "facts": facts("FAR")}))
            .symbol("|app|::|far|", json!({"found": true, "printed": "APP:FAR", "facts": facts("APP:FAR")}));
        assert_eq!(template(image, "(in-package :app)\n(fa‸r)", "CL-USER"), "(app:far x)");
    }
}
