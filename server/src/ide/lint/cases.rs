//! Rules about the clauses of `case` and similar operators.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};

/// Returns the clauses of a form with one of these operators. Returns `None` for other forms, and
/// if a part of a clause has a reader conditional.
fn clauses<'a>(form: &Form, list: &'a Node, operators: &[&str]) -> Option<&'a [Node]> {
    let operator = form.operator(list)?;
    let clauses = list.children.get(2..)?;
    let whole = clauses.iter().all(|clause| clause.is_list() && clause.children.iter().all(|child| !child.guarded));
    (operators.contains(&operator.as_str()) && whole).then_some(clauses)
}

/// Finds `(case x ('a ...))`, whose keys are `quote` and `a`.
pub(super) fn quoted_key(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let clauses = clauses(form, list, &["case", "ccase", "ecase"]).unwrap_or_default();
    let keys = clauses.iter().filter_map(|clause| clause.children.first());
    let quoted = keys.filter(|key| key.prefix == Prefix::Quote && !form.text(key).is_empty());
    quoted
        .map(|key| {
            let span = form.span_of(key.start(), key.end());
            (span, "Keys are not evaluated: with the quote, QUOTE is a key too; leave the quote out.".into())
        })
        .collect()
}

/// Finds `(case x (nil ...))`, whose `nil` is the empty list of keys.
pub(super) fn nil_key(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let clauses = clauses(form, list, &["case", "ccase", "ecase"]).unwrap_or_default();
    let keys = clauses.iter().filter_map(|clause| clause.children.first());
    let empty = keys.filter(|key| key.is_plain() && form.text(key).eq_ignore_ascii_case("nil"));
    empty.map(|key| (key.span, "NIL is the list without keys, so this is never chosen; write (NIL).".into())).collect()
}

/// Finds `(case x (a ...))` without an `otherwise` clause.
pub(super) fn missing_otherwise(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let Some([.., last]) = clauses(form, list, &["case", "typecase"]) else { return Vec::new() };
    let Some(key) = last.children.first() else { return Vec::new() };
    let otherwise = key.kind == Kind::Atom && matches!(form.name(key).as_deref(), Some("t" | "otherwise"));
    match list.children.first() {
        Some(head) if !otherwise => {
            vec![(
                head.span,
                "Everything else comes to NIL: say so in OTHERWISE, or signal it by ECASE or ETYPECASE.".into(),
            )]
        }
        _ => Vec::new(),
    }
}
