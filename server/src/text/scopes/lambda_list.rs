//! Lambda lists: ordinary and specialized ones, and those of macros and of `destructuring-bind`.

use super::super::Span;
use super::super::datum::{Kind, Node, Prefix};
use super::{BindingKind, Shorthand, Walk};

/// Binds the parameters of `list`, and walks their default values. Each parameter is in scope from
/// its place to `end`. With `typed`, `(name class)` is a required parameter of a method.
pub(super) fn bind(walk: &mut Walk<'_>, list: &Node, typed: bool, by: &str, end: usize) {
    parameters(walk, list, typed, by, &|behind| vec![Span { start: behind, end }], BindingKind::Parameter);
}

/// Binds the variables of a destructuring list. Each is in scope from `from` to `end`, and within
/// the list after the variable.
pub(super) fn bind_from(walk: &mut Walk<'_>, list: &Node, by: &str, from: usize, end: usize) {
    let inside = list.span.end;
    let scopes = |behind| vec![Span { start: behind, end: inside }, Span { start: from, end }];
    parameters(walk, list, false, by, &scopes, BindingKind::Variable);
}

fn parameters(
    walk: &mut Walk<'_>,
    list: &Node,
    typed: bool,
    by: &str,
    scopes: &dyn Fn(usize) -> Vec<Span>,
    kind: BindingKind,
) {
    let mut required = true;
    let mut keys = false;
    // After `&rest` and `&body`, a list is destructured and has no default.
    let mut rest = false;
    for node in &list.children {
        if node.kind == Kind::Atom {
            match walk.form.name(node) {
                Some(name) if name.starts_with('&') => {
                    required = matches!(name.as_str(), "&whole" | "&environment") && required;
                    keys = name == "&key" || keys && name == "&allow-other-keys";
                    rest = matches!(name.as_str(), "&rest" | "&body");
                }
                _ if node.prefix == Prefix::None => {
                    let shorthand = if keys { Shorthand::Key } else { Shorthand::None };
                    walk.bind_shorthand(node, kind, by, scopes(node.span.end), shorthand);
                }
                _ => {}
            }
            continue;
        }
        if node.kind != Kind::List {
            continue;
        }
        let Some((name, more)) = node.children.split_first() else { continue };
        if (required || rest) && !typed {
            parameters(walk, node, false, by, scopes, kind); // destructuring
            continue;
        }
        // `(name default supplied-p)`, `((:key name) default supplied-p)`, `((a b) default)`.
        if !required {
            more.first().into_iter().for_each(|default| walk.expression(default));
        }
        match name.kind {
            Kind::List => {
                let keyword =
                    name.children.first().and_then(|first| walk.form.name(first)).is_some_and(|n| n.starts_with(':'));
                match name.children.get(1).filter(|_| keyword || keys) {
                    Some(variable) => {
                        let written = name.children.first().map(|first| walk.form.text(first).to_owned());
                        let (alone, keyword) = (more.is_empty(), written.unwrap_or_default());
                        let around = if alone { node.span } else { name.span };
                        let shorthand = Shorthand::KeyPair { keyword, around, alone };
                        walk.bind_shorthand(variable, kind, by, scopes(node.span.end), shorthand);
                    }
                    None => parameters(walk, name, false, by, scopes, kind),
                }
            }
            _ => {
                let shorthand = if keys { Shorthand::KeyInList } else { Shorthand::None };
                walk.bind_shorthand(name, kind, by, scopes(node.span.end), shorthand);
            }
        }
        if let Some(supplied) = more.get(1).filter(|_| !required) {
            walk.bind(supplied, kind, by, scopes(node.span.end));
        }
    }
}
