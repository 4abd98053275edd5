//! The column of a line in a list, determined by the innermost form around it whose operator has
//! rules for its arguments, as in SLIME's slime-cl-indent.el.

use super::Lines;
use super::rules::{Bodies, is_definer, takes_body};
use super::specs::{DEFUN, DO, Method, Rule, Spec, WITH};
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// The maximum number of lists around a line that are searched for an operator with rules.
const MAX_LEVELS: usize = 6;
/// The number of elements up to which feature expressions (`#+x`) are counted as elements. No
/// operator has separate rules for later arguments.
const MAX_COUNTED: usize = 8;
/// The number of elements up to which a list is searched for elements with feature expressions.
const MAX_GUARDED: usize = 64;
/// The maximum number of closing parentheses and blanks that are skipped at the start of a line.
const MAX_CLOSING: usize = 200;

/// Returns the column of a line that begins at `at` in a list.
pub(super) fn column(lines: &Lines, list: NodeId, at: usize, bodies: &Bodies) -> usize {
    let tree = lines.tree;
    let node = tree.node(list);
    let elements = tree.element_list(list);
    let before = &elements[..elements.partition_point(|id| tree.node(*id).start < at)];
    if before.is_empty() {
        return lines.column(node.start) + (node.inner - node.start);
    }
    let open = lines.column(node.inner - 1);
    let mut line = Line { lines, tree, at, list, before, open, default_column: 0 };
    line.default_column = line.below_last();
    let mut path: Vec<usize> = Vec::new();
    let mut tentative = None;
    let (mut current, mut inside) = (list, None);
    for level in 0..MAX_LEVELS {
        path.insert(0, line.position(current, inside));
        let head = tree.element_list(current).first().copied().filter(|head| tree.node(*head).kind == Kind::Atom);
        let name = head.and_then(|_| lines.roles.operator(current));
        let keyword = head.is_some_and(|head| tree.text_of(head).starts_with(':'));
        let mut method = name.and_then(|name| bodies.method(name, keyword));
        let mut definer = false;
        if let (Some(name), None, true) = (name, method, level == 0) {
            definer = is_definer(name);
            if takes_body(name) && !bodies.is_plain(name) {
                method = Some(Method::Arguments(WITH));
            }
        }
        if is_quoted(tree, current) {
            return open + 1;
        }
        let found = match method {
            Some(Method::Number(arguments)) => Some(line.by_number(arguments, &path)),
            Some(Method::Arguments(specs)) => Some(line.by_specs(specs, &path, current)),
            Some(Method::By(rule)) => Some(line.by_rule(rule, &path, current)),
            None if definer => {
                line.default_column = line.by_specs(DEFUN, &path, current);
                tentative = Some(line.default_column);
                line.behind_feature()
            }
            None if level == 0 && line.is_below_head() => None,
            None if level == 0 => line.as_keyword().or_else(|| line.behind_feature()),
            None => None,
        };
        if let Some(column) = found {
            return column;
        }
        let Some(around) = list_around(tree, current) else { break };
        inside = Some(tree.node(current).start);
        current = around;
    }
    tentative.or_else(|| line.as_call()).unwrap_or(line.default_column)
}

/// Returns the list around a node, through prefixes and guards.
fn list_around(tree: &Tree, id: NodeId) -> Option<NodeId> {
    let mut around = tree.node(id).parent;
    while around != ROOT && tree.node(around).kind != Kind::List {
        around = tree.node(around).parent;
    }
    (around != ROOT).then_some(around)
}

/// Returns true for `'(...)` and `#(...)`.
fn is_quoted(tree: &Tree, list: NodeId) -> bool {
    let open = tree.node(list).inner - 1;
    let before = &tree.text.as_bytes()[..open];
    match before {
        [.., b'#', b'\''] => false,
        [.., b'\'' | b'#'] => true,
        _ => false,
    }
}

/// A line that is being indented.
struct Line<'l, 'a> {
    lines: &'l Lines<'a>,
    tree: &'l Tree<'a>,
    /// The byte offset of the first character of the line that is not a space.
    at: usize,
    /// The list around the line.
    list: NodeId,
    /// The elements of the list before the line.
    before: &'l [NodeId],
    /// The column of the list's parenthesis.
    open: usize,
    /// The column of a line without a rule of its own ([`Line::below_last`]).
    default_column: usize,
}

impl Line<'_, '_> {
    fn start(&self, id: NodeId) -> usize {
        self.tree.node(id).start
    }

    fn column_of(&self, id: NodeId) -> usize {
        self.lines.column(self.start(id))
    }

    /// Returns true if a list is written `(...)`.
    fn is_list(&self, id: NodeId) -> bool {
        self.tree.node(id).kind == Kind::List && self.tree.text_of(id).starts_with('(')
    }

    fn rest(&self) -> &str {
        &self.tree.text[self.at..]
    }

    /// Returns the start of the last datum that begins before the line. For `#+x datum`, this is
    /// the start of `datum` if it begins before the line, and that of `#+x` otherwise.
    fn last(&self) -> usize {
        let Some(&last) = self.before.last() else { return self.at };
        let datum = self.tree.unguarded(last);
        if self.start(datum) < self.at { self.start(datum) } else { self.start(last) }
    }

    /// Returns the column of a line without a rule. If the last datum is on the line of the
    /// operator and of the parenthesis, it is the column of the first argument. Otherwise, it is
    /// the column at which the line of the last datum begins, after closing parentheses.
    fn below_last(&self) -> usize {
        let Some(&first) = self.before.first() else { return self.open + 1 };
        let last = self.last();
        if self.is_list(first) {
            return self.column_of(first);
        }
        let line = self.lines.line(last);
        let opened = self.lines.line(self.tree.node(self.list).inner - 1);
        if self.lines.line(self.start(first)) == line && opened == line {
            return match self.before.get(1) {
                Some(second) => self.column_of(*second),
                None if self.start(first) < last => self.lines.column(last),
                None => self.column_of(first),
            };
        }
        let (first, text) = (self.lines.first[line], self.tree.text.as_bytes());
        let closing = text[first..last].iter().take(MAX_CLOSING).take_while(|byte| matches!(byte, b')' | b' ' | b'\t'));
        self.lines.column(first + closing.count())
    }

    /// Returns the number of data before a place in a list. Feature expressions count as further
    /// data. `inside` is the start of the inner list at the place, or `None` if the place is the
    /// line.
    fn position(&self, list: NodeId, inside: Option<usize>) -> usize {
        let elements = self.tree.element_list(list);
        let at = inside.unwrap_or(self.at);
        let count =
            elements.partition_point(|id| if inside.is_some() { self.start(*id) <= at } else { self.start(*id) < at });
        let mut position = 0;
        for (index, id) in elements[..count].iter().enumerate().take(MAX_COUNTED) {
            let last = index + 1 == count;
            let node = self.tree.node(*id);
            let around = last && (inside.is_some() || node.kind == Kind::Guarded && at < node.end);
            position += match (node.kind, around) {
                (Kind::Guarded, false) => self.features(*id, usize::MAX) + 1,
                (Kind::Guarded, true) => self.features(*id, at),
                (_, true) => 0,
                (_, false) => 1,
            };
        }
        position + count.saturating_sub(MAX_COUNTED)
    }

    /// Returns the number of data as which the feature expressions before a guarded datum are
    /// counted. Only those that end before `to` are counted.
    fn features(&self, guarded: NodeId, to: usize) -> usize {
        let (mut id, mut count) = (guarded, 0);
        while self.tree.node(id).kind == Kind::Guarded {
            let elements = self.tree.element_list(id);
            let Some(&feature) = elements.first().filter(|feature| self.tree.node(**feature).end <= to) else { break };
            count += if self.tree.node(feature).kind == Kind::List { 2 } else { 1 };
            let Some(&datum) = elements.get(1) else { break };
            id = datum;
        }
        count
    }

    fn by_number(&self, arguments: usize, path: &[usize]) -> usize {
        match path {
            [position] if *position <= arguments => self.open + 4,
            [position] if *position == arguments + 1 => self.open + 2,
            _ => self.default_column,
        }
    }

    fn by_specs(&self, specs: &[Spec], path: &[usize], form: NodeId) -> usize {
        let [position, inner @ ..] = path else { return self.default_column };
        let Some(mut left) = position.checked_sub(1) else { return self.default_column };
        let (mut specs, mut inner, mut further) = (specs, inner, false);
        loop {
            let Some((spec, others)) = specs.split_first() else { return self.default_column };
            match *spec {
                Spec::Body => return if inner.is_empty() { self.open + 2 } else { self.default_column },
                Spec::Rest => {
                    further = left > 0;
                    left = 0;
                    specs = others;
                }
                _ if left > 0 => {
                    left -= 1;
                    specs = others;
                }
                Spec::Below => return self.default_column,
                Spec::Column(column) => return if inner.is_empty() { self.open + column } else { self.default_column },
                Spec::Lambda => return self.in_lambda_list(inner, form),
                Spec::By(rule) => return self.by_rule(rule, path, form),
                Spec::List(whole, elements) => {
                    let [place, deeper @ ..] = inner else {
                        let word = self.rest().starts_with(char::is_alphanumeric);
                        return match whole {
                            Some(column) if !further || word => self.open + column,
                            _ => self.default_column,
                        };
                    };
                    (specs, left, inner, further) = (elements, *place, deeper, false);
                }
            }
        }
    }

    fn by_rule(&self, rule: Rule, path: &[usize], form: NodeId) -> usize {
        match rule {
            Rule::Tagbody => self.in_tagbody(path, 3),
            Rule::Do if path.first().is_some_and(|position| *position >= 3) => self.in_tagbody(path, 2),
            Rule::Do => self.by_specs(DO, path, form),
            Rule::LambdaBody => match path {
                [position] if *position <= 3 => self.of_function(form).unwrap_or(self.open) + 2,
                _ => self.default_column,
            },
            Rule::Method => {
                let mut specs = vec![Spec::Column(4); self.qualifiers(form)];
                specs.extend([Spec::Lambda, Spec::Body]);
                self.by_specs(&specs, path, form)
            }
            Rule::Defsetf => self.in_defsetf(path, form),
            Rule::Loop | Rule::IfStar if path.len() > 1 => self.default_column,
            Rule::IfStar => super::if_star::column(self.lines, self.list, self.at, self.last()),
            Rule::Loop => super::loops::column(self.lines, self.list, self.at, self.last()),
        }
    }

    /// Returns the column of the parenthesis of `(function (lambda ...))`, to which the body of the
    /// `lambda` is relative.
    fn of_function(&self, lambda: NodeId) -> Option<usize> {
        let around = list_around(self.tree, lambda)?;
        let node = self.tree.node(around);
        // Emacs does not recognize `cl:function`.
        let head = self.tree.element_list(around).first()?;
        let is_function = self.tree.text_of(*head).eq_ignore_ascii_case("function");
        is_function.then(|| self.lines.column(node.inner - 1))
    }

    /// Returns the number of arguments before the lambda list of a method.
    fn qualifiers(&self, method: NodeId) -> usize {
        let name = usize::from(self.lines.roles.operator(method) == Some("defmethod"));
        let elements = self.tree.element_list(method).iter().skip(1 + name);
        name + elements.take_while(|id| self.tree.node(**id).kind == Kind::Atom).take(MAX_COUNTED).count()
    }

    fn in_tagbody(&self, path: &[usize], statement: usize) -> usize {
        if path.len() > 1 {
            return self.default_column;
        }
        let is_tag =
            !self.rest().starts_with(['(', ')', '"', '\'', '`', ',', ';', '#', '\n', '\r']) && !self.rest().is_empty();
        self.open + if is_tag { 1 } else { statement }
    }

    fn in_defsetf(&self, path: &[usize], form: NodeId) -> usize {
        if let [2, _, ..] = path {
            return self.lambda_list_column();
        }
        let third = self.tree.element_list(form).get(2).copied();
        let long = path.len() > 1 || third.is_some_and(|third| self.is_list(third));
        match path.first() {
            Some(1 | 2) => self.open + 4,
            Some(3) if long => self.open + 4,
            _ => self.open + 2,
        }
    }

    fn in_lambda_list(&self, inner: &[usize], form: NodeId) -> usize {
        // The element of the form that contains the line or begins with it.
        let elements = self.tree.element_list(form);
        let element = elements.get(elements.partition_point(|id| self.tree.node(*id).end <= self.at)).copied();
        let Some(element) = element.filter(|id| self.tree.text_of(*id).ends_with(')')) else {
            return if inner.is_empty() { self.open + 2 } else { self.default_column };
        };
        if self.is_initial_form(element) {
            self.default_column
        } else if inner.is_empty() {
            self.open + 4
        } else {
            self.lambda_list_column()
        }
    }

    /// Returns the column of a line in a lambda list: 2 more than that of the last lambda list
    /// keyword before the line, or that of the first parameter.
    fn lambda_list_column(&self) -> usize {
        if is_keyword(self.rest().split(|char: char| char.is_whitespace() || char == ')').next().unwrap_or_default()) {
            return self.open + 1;
        }
        match self.lines.lambda_keyword(self.list, self.before) {
            Some(keyword) => self.column_of(keyword) + 2,
            None => self.before.first().map_or(self.open + 1, |first| self.column_of(*first)),
        }
    }

    /// Returns true if the line is in the initial form of an optional parameter.
    fn is_initial_form(&self, lambda_list: NodeId) -> bool {
        #[derive(Clone, Copy, PartialEq)]
        enum In {
            Required,
            Optional,
            Parameter,
            Form,
        }
        let (mut state, mut current) = (In::Required, self.tree.datum(lambda_list));
        loop {
            let elements = self.tree.element_list(current);
            let before = &elements[..elements.partition_point(|id| self.start(*id) < self.at)];
            if let Some(keyword) = self.lines.lambda_keyword(current, before) {
                let name = self.tree.text_of(keyword).to_ascii_lowercase();
                state =
                    if matches!(name.as_str(), "&key" | "&optional" | "&aux") { In::Optional } else { In::Required };
            }
            let last = before.last().map(|last| self.tree.datum(*last));
            let around =
                last.filter(|last| self.at < self.tree.node(*last).end && self.tree.node(*last).kind == Kind::List);
            let passed = before.len() - usize::from(around.is_some());
            if state == In::Parameter && passed > 0 {
                state = In::Form;
            }
            let Some(around) = around else { return state == In::Form };
            state = match state {
                In::Parameter => In::Required,
                In::Optional => In::Parameter,
                other => other,
            };
            current = around;
        }
    }

    /// Returns true if the head of the list is alone on its line, and an argument is below it. All
    /// further arguments are below that one, keywords and those after `#+x` too.
    fn is_below_head(&self) -> bool {
        let [first, second, ..] = self.before else { return false };
        !self.lines.same_line(*first, *second)
            && self.lines.line(self.start(*first)) == self.lines.line(self.tree.node(self.list).inner - 1)
            && self.lines.comment_behind(self.list, *first).is_none()
    }

    /// Returns the column of a keyword: that of the first keyword of the pairs before it. Several
    /// values for different features (`#+x a #-x b`) count as one value.
    fn as_keyword(&self) -> Option<usize> {
        let elements = self.tree.element_list(self.list);
        let next = elements.get(self.before.len()).filter(|next| self.start(**next) == self.at);
        let written = next.map_or(self.rest(), |next| self.tree.text_of(self.tree.unguarded(*next)));
        if !written.starts_with(':') {
            return None;
        }
        let guarded = self.before.iter().take(MAX_GUARDED).any(|id| self.tree.node(*id).kind == Kind::Guarded);
        if guarded && self.before.len() <= MAX_GUARDED {
            return super::guarded_pairs::first_keyword(self.tree, self.before).map(|at| self.lines.column(at));
        }
        self.lines.first_keyword(self.list, self.before).map(|first| self.column_of(first))
    }

    /// Returns the column of a line after `#+x` and its datum: that of the first such pair on the
    /// same line.
    fn behind_feature(&self) -> Option<usize> {
        let has_name = |id: &&NodeId| {
            let feature = self.tree.element_list(**id).first().map(|feature| self.tree.node(*feature).kind);
            self.tree.node(**id).kind == Kind::Guarded && feature == Some(Kind::Atom)
        };
        let (last, others) = self.before.split_last()?;
        let last = Some(last).filter(has_name)?;
        let line = self.lines.line(self.start(*last));
        let same =
            others.iter().rev().take_while(|id| has_name(id) && self.lines.line(self.start(**id)) == line).last();
        Some(self.column_of(*same.unwrap_or(last)))
    }

    /// Returns the column of an argument of a function call: that of the first argument.
    fn as_call(&self) -> Option<usize> {
        let first = *self.before.first()?;
        let children = self.tree.children(self.list);
        let line = self.lines.line(self.start(self.list));
        let commented = children.first().is_some_and(|child| self.tree.node(*child).kind == Kind::LineComment);
        if commented || self.lines.line(self.start(first)) != line {
            return Some(self.open + 1);
        }
        if let Some(second) = self.before.get(1) {
            return Some(self.column_of(*second));
        }
        let end = self.tree.node(first).end;
        let comment = self.lines.comment_behind(self.list, first);
        comment.map(|_| self.lines.column(end) + 1)
    }
}

/// Returns true for a lambda list keyword.
pub(super) fn is_keyword(written: &str) -> bool {
    const KEYWORDS: [&str; 9] =
        ["&optional", "&rest", "&key", "&allow-other-keys", "&aux", "&whole", "&body", "&environment", "&more"];
    written.starts_with('&') && KEYWORDS.iter().any(|keyword| written.eq_ignore_ascii_case(keyword))
}
