//! The occurrences of a name in all texts of the workspace, open or not.

use super::site::Site;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::names;

/// Returns all texts of the workspace that may mention one of the names on whose uses in other
/// texts the refactorings at a site depend, and other texts.
///
/// # Errors
/// There are too many texts, or one cannot be read.
pub(super) fn texts<'a>(site: &Site<'a>) -> Result<impl Iterator<Item = &'a Document> + use<'a>, String> {
    if let Some(why) = &site.index.incomplete {
        return Err(why.clone());
    }
    let files = super::unused_imports::FILES;
    let users =
        site.users.ok_or_else(|| format!("more than {files} files, or one that cannot be read, may mention it"))?;
    Ok(std::iter::once(site.document).chain(site.others.iter().map(|(_, other)| other)).chain(users))
}

/// Returns the top-level forms of all texts that may mention the symbol name `name`, which is one
/// of those of [`texts`].
///
/// # Errors
/// There are too many texts, or one cannot be read.
pub(super) fn forms<'a>(site: &Site<'a>, name: &str) -> Result<Vec<(&'a Document, Span)>, String> {
    let name = name.to_lowercase();
    let mut found = Vec::new();
    for document in texts(site)? {
        let mentions = |span: &Span| {
            let written = document.text().slice(span.start..span.end);
            written.to_string().to_lowercase().contains(&name)
        };
        found.extend(document.scan().forms().iter().map(|top| top.span).filter(mentions).map(|span| (document, span)));
    }
    Ok(found)
}

/// Returns the symbols with the symbol name `name` in a top-level form, as written, each with its
/// package prefix.
pub(super) fn symbols(document: &Document, top: Span, name: &str) -> Vec<(String, Option<String>)> {
    fn visit(form: &Form, node: &Node, name: &str, found: &mut Vec<(String, Option<String>)>) {
        if node.kind == Kind::Atom
            && let Some(symbol) = names::symbol(form.text(node)).filter(|symbol| symbol.name == name)
        {
            found.push((form.text(node).to_owned(), symbol.package));
        }
        node.children.iter().for_each(|child| visit(form, child, name, found));
    }
    let form = Form::of(document, top);
    let mut found = Vec::new();
    form.nodes.iter().for_each(|node| visit(&form, node, name, &mut found));
    found
}
