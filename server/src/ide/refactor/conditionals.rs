//! Conversions between `if`, `when`, `unless` and `cond`.

use super::comments::{self, first_line, kept_comments};
use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::text::datum::{Kind, Node};

pub(super) fn plan(site: &Site) -> Vec<Refactoring> {
    let Some(chain) = site.nearest(&["if", "when", "unless", "cond"]) else { return Vec::new() };
    let Some(&list) = chain.last() else { return Vec::new() };
    let operator = site.form.operator(list).unwrap_or_default();
    let form = Conditional { site, list };
    let mut all = Vec::new();
    let code = super::evaluated::check_code(site, &chain[..chain.len() - 1], list);
    let mut add = |id, title: &str, edits: Option<Result<Vec<Edit>, String>>| {
        let result = |edits| code.clone().and(edits).map(|edits| site.with_whole_list_indented(list, edits));
        all.extend(edits.map(|edits| Refactoring::new(id, Group::Rewrite, title, result(edits))));
    };
    match (operator.as_str(), list.elements().len()) {
        ("if", 3) => {
            add("if-to-when", "Write as when", form.if_to("when", false).map(Ok));
            add("if-to-unless", "Write as unless", form.if_to("unless", true).map(Ok));
        }
        ("if", 4) => {
            if form.is_nil(2) {
                add("if-to-unless", "Write as unless", form.if_nil_to("unless").map(Ok));
            } else if form.is_nil(3) {
                add("if-to-when", "Write as when", form.if_nil_to("when").map(Ok));
            }
            add("invert-if", "Invert the condition", Some(form.invert()));
            add("if-to-cond", "Write as cond", form.if_to_cond().map(Ok));
        }
        ("when", 3..) => {
            add("when-to-if", "Write as if", form.body_to_if(false).map(Ok));
            add("when-to-unless", "Write as unless", form.negated("unless").map(Ok));
        }
        ("unless", 3..) => {
            add("unless-to-if", "Write as if", form.body_to_if(true).map(Ok));
            add("unless-to-when", "Write as when", form.negated("when").map(Ok));
        }
        ("cond", 2..) => add("cond-to-if", "Write as if", form.cond_to_if().map(Ok)),
        _ => {}
    }
    all
}

struct Conditional<'a> {
    site: &'a Site<'a>,
    list: &'a Node,
}

impl Conditional<'_> {
    fn element(&self, index: usize) -> &Node {
        &self.list.elements()[index]
    }

    fn written(&self, index: usize) -> &str {
        self.site.form.written(self.element(index))
    }

    fn is_nil(&self, index: usize) -> bool {
        let node = self.element(index);
        node.is_plain() && (self.written(index).eq_ignore_ascii_case("nil") || self.written(index) == "()")
    }

    fn is_true(&self, node: &Node) -> bool {
        node.is_plain() && self.site.form.written(node).eq_ignore_ascii_case("t")
    }

    /// Returns the edit that writes another operator.
    fn head(&self, operator: &str) -> Edit {
        let head = self.element(0);
        self.site.edit(head.start(), head.end(), self.site.cased(operator))
    }

    /// Returns the edit that negates the condition.
    fn opposite(&self) -> Edit {
        let condition = self.element(1);
        let operator = self.site.form.operator(condition).unwrap_or_default();
        let is_not = condition.is_list()
            && matches!(operator.as_str(), "not" | "null")
            && condition.elements().len() == 2
            && !condition.elements()[1].guarded;
        let by = match condition.elements().get(1).filter(|_| is_not) {
            Some(inner) => self.site.form.written(inner).to_owned(),
            None => format!("({} {})", self.site.cased("not"), self.written(1)),
        };
        self.site.edit(condition.start(), condition.end(), by)
    }

    /// Returns the edits that replace a `progn` by its statements, or none if the node is not a
    /// `progn`.
    fn spliced(&self, node: &Node) -> Vec<Edit> {
        let all = node.elements();
        if !(node.is_list() && self.site.form.operator(node).as_deref() == Some("progn") && all.len() > 1) {
            return Vec::new();
        }
        // If the reader skips all statements, none is left in their place.
        if all[1..].iter().all(|one| one.guarded) {
            return Vec::new();
        }
        let (head, last) = (&all[0], &all[all.len() - 1]);
        // Comments after the operator and at the end are kept.
        let behind = self.site.between(head.end(), all[1].start());
        let start = head.end() + behind.len() - behind.trim_start().len();
        let blank = self.site.between(last.end(), node.end() - 1).trim().is_empty();
        let end = if blank { last.end() } else { node.end() - 1 };
        vec![self.site.edit(node.start(), start, ""), self.site.edit(end, node.end(), "")]
    }

    /// Converts `(if c a)` to `(when c a)` or `(unless c' a)`.
    fn if_to(&self, operator: &str, negate: bool) -> Option<Vec<Edit>> {
        let mut edits = vec![self.head(operator)];
        if negate {
            edits.push(self.opposite());
        }
        edits.extend(self.spliced(self.element(2)));
        Some(edits)
    }

    /// Converts `(if c nil a)` to `(unless c a)`, or `(if c a nil)` to `(when c a)`.
    fn if_nil_to(&self, operator: &str) -> Option<Vec<Edit>> {
        let mut edits = vec![self.head(operator)];
        if operator == "unless" {
            let (from, to) = (self.element(1).end(), self.element(3).start());
            let gap = self.site.between(from, self.element(2).start());
            // The comments of the gap are among those that are kept.
            let blank = Some(&gap[gap.trim_end().len()..]).filter(|blank| !blank.is_empty()).unwrap_or(" ");
            edits.push(self.site.edit(from, to, kept_comments(self.site, from, to, to, blank)));
            edits.extend(self.spliced(self.element(3)));
        } else {
            edits.push(self.without(self.element(2).end(), self.element(3).end()));
            edits.extend(self.spliced(self.element(2)));
        }
        Some(edits)
    }

    /// Returns the edit that removes code up to the end of a list, and keeps the comments before
    /// it.
    fn without(&self, from: usize, to: usize) -> Edit {
        self.site.edit(from, to, kept_comments(self.site, from, to, to, ""))
    }

    fn invert(&self) -> Result<Vec<Edit>, String> {
        let mut edits = vec![self.opposite()];
        edits.extend(super::branches::exchanged(self.site, self.list)?);
        Ok(edits)
    }

    /// Returns the edit that begins a `progn` around statements after a condition. The statements
    /// follow on the same line if they are on one line. A comment above the first statement becomes
    /// a part of the `progn`.
    fn progn(&self, condition: &Node, first: &Node, last: &Node) -> Edit {
        let gap = self.site.between(condition.end(), first.start());
        let line = first_line(gap);
        let above = comments::all(gap).into_iter().map(|(start, _)| start).find(|start| *start > line);
        let at = above.map_or(first.start(), |start| condition.end() + start);
        let one_line = !self.site.between(at, last.end()).contains('\n');
        let opening = format!("({}{}", self.site.cased("progn"), if one_line { " " } else { self.site.newline });
        self.site.edit(at, at, opening)
    }

    /// Converts `(when c a b)` to `(if c (progn a b))`, and `unless` likewise with the opposite
    /// condition.
    fn body_to_if(&self, negate: bool) -> Option<Vec<Edit>> {
        let mut edits = vec![self.head("if")];
        if negate {
            edits.push(self.opposite());
        }
        if self.list.elements().len() > 3 {
            let (first, last) = (self.element(2), self.list.elements().last()?);
            edits.push(self.progn(self.element(1), first, last));
            edits.push(self.site.edit(last.end(), last.end(), ")"));
        }
        Some(edits)
    }

    fn negated(&self, operator: &str) -> Option<Vec<Edit>> {
        Some(vec![self.head(operator), self.opposite()])
    }

    /// Converts `(if a b (if c d e))` to `(cond (a b) (c d) (t e))`.
    fn if_to_cond(&self) -> Option<Vec<Edit>> {
        let site = self.site;
        let mut edits = vec![self.head("cond")];
        let mut list = self.list;
        loop {
            let [_, condition, yes, rest @ ..] = list.elements() else { return None };
            if list.elements().iter().any(|node| node.guarded) {
                return None;
            }
            edits.push(site.edit(condition.start(), condition.start(), "("));
            edits.extend(self.spliced(yes));
            edits.push(site.edit(yes.end(), yes.end(), ")"));
            match rest {
                [] => break,
                [no] => {
                    let nested = no.is_list()
                        && site.form.operator(no).as_deref() == Some("if")
                        && matches!(no.elements().len(), 3 | 4);
                    if nested {
                        let condition = no.elements()[1].start();
                        edits.push(site.edit(
                            no.start(),
                            condition,
                            kept_comments(site, no.start(), condition, condition, ""),
                        ));
                        let last = no.elements().last()?;
                        edits.push(self.without(last.end(), no.end()));
                        list = no;
                        continue;
                    }
                    let inline = !site.between(no.start(), no.end()).contains('\n');
                    let blank = if inline { " " } else { site.newline };
                    edits.push(site.edit(no.start(), no.start(), format!("({}{blank}", site.cased("t"))));
                    edits.extend(self.spliced(no));
                    edits.push(site.edit(no.end(), no.end(), ")"));
                    break;
                }
                _ => return None,
            }
        }
        Some(edits)
    }

    /// Converts `(cond (a b) (t c))` to `(if a b c)`.
    fn cond_to_if(&self) -> Option<Vec<Edit>> {
        let site = self.site;
        let clauses = &self.list.elements()[1..];
        let mut edits = vec![self.head("if")];
        let mut closing = String::new();
        for (index, clause) in clauses.iter().enumerate() {
            let last = index + 1 == clauses.len();
            let all = clause.elements();
            if !clause.is_list() || all.len() < 2 || all.iter().any(|node| node.guarded) {
                return None;
            }
            let (first, end) = (&all[1], &all[all.len() - 1]);
            let otherwise = last && index > 0 && self.is_true(&all[0]);
            if index == 0 && self.is_true(&all[0]) || !last && self.is_true(&all[0]) {
                return None;
            }
            let mut ending = String::new();
            if all.len() > 2 {
                ending.push(')');
            }
            if otherwise {
                let comments = kept_comments(site, clause.start(), first.start(), first.start(), "");
                let opening = if all.len() > 2 { self.progn(first, first, end).text } else { String::new() };
                edits.push(site.edit(clause.start(), first.start(), comments + &opening));
            } else {
                // The first `if` takes the place of `cond`.
                let (from, head) = match index {
                    0 => (self.element(0).end(), " ".to_owned()),
                    _ => (clause.start(), format!("({} ", site.cased("if"))),
                };
                edits.push(site.edit(from, all[0].start(), head));
                edits.extend(self.comments_after_condition(from, &all[0], first));
                if all.len() > 2 {
                    edits.push(self.progn(&all[0], first, end));
                }
                if index > 0 {
                    closing.push(')');
                }
            }
            if last {
                ending.push_str(&closing);
            }
            let comments = kept_comments(site, end.end(), clause.end(), clause.end(), "");
            edits.push(site.edit(end.end(), clause.end(), ending + &comments));
        }
        let kinds = clauses.iter().all(|clause| clause.kind == Kind::List);
        kinds.then_some(edits)
    }

    /// Returns the edit that moves the comments between `from` and a condition to the end of the
    /// condition's line.
    fn comments_after_condition(&self, from: usize, condition: &Node, next: &Node) -> Option<Edit> {
        let site = self.site;
        let gap = site.between(condition.end(), next.start());
        let line = first_line(gap);
        let own = if line < gap.len() { gap[..line].trim_end() } else { "" };
        let at = condition.end() + own.len();
        let comments = kept_comments(site, from, condition.start(), at, "");
        if comments.is_empty() {
            return None;
        }
        let separate = !own.is_empty() && !comments.starts_with(site.newline);
        let break_line = if separate { site.newline } else { "" };
        Some(site.edit(at, at, format!("{break_line}{comments}")))
    }
}
