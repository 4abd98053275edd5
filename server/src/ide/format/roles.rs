//! The role of every list of a text, computed in one pass. It consists of the list's operator,
//! whether a quote makes the list data, and the part that the list has in the list around it.

use std::collections::HashMap;

use super::rules::Bodies;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// The role of a list in the list around it, if that role decides how the list is indented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A list whose elements align in one column: bindings, lambda lists, data.
    Data,
    /// A list with a body behind its second element: a local function, a clause of `handler-case`.
    Function,
    /// A clause of `case`.
    Clause,
    /// A binding of `let` and the like: a variable and its value.
    Binding,
    /// A `:method` of a generic function, with a body behind its lambda list.
    Method,
    /// Code: a list without another role.
    Code,
}

/// The computed facts about a node.
#[derive(Debug, Clone, Copy)]
struct NodeFacts {
    /// For a list, the number of its operator's name, from 1. It is 0 for a list without an
    /// operator.
    operator: u32,
    /// True if a quote around the node makes it data.
    quoted: bool,
    role: Role,
}

/// The roles of the lists of a text.
#[derive(Debug)]
pub struct Roles<'a> {
    tree: &'a Tree<'a>,
    known: Vec<NodeFacts>,
    names: Vec<String>,
    /// The index of the lambda list of each `defmethod` and `:method`; [`usize::MAX`] without one.
    lambda_lists: HashMap<NodeId, usize>,
}

impl<'a> Roles<'a> {
    /// Computes the roles of all lists of a text, in linear time.
    pub fn of(tree: &'a Tree<'a>, bodies: &Bodies) -> Roles<'a> {
        let known = Vec::with_capacity(tree.len());
        let mut roles = Roles { tree, known, names: Vec::new(), lambda_lists: HashMap::new() };
        let mut numbers: HashMap<String, u32> = HashMap::new();
        for id in tree.ids() {
            let operator = match tree.operator(id) {
                None => 0,
                Some(name) => *numbers.entry(name).or_insert_with_key(|name| {
                    roles.names.push(name.clone());
                    u32::try_from(roles.names.len()).unwrap_or(0)
                }),
            };
            let quoted = roles.quoted_in(tree.node(id).parent);
            roles.known.push(NodeFacts { operator, quoted, role: Role::Code });
            if tree.node(id).kind == Kind::List && id != ROOT {
                let from = match roles.operator(id) {
                    Some("defmethod") => Some(2),
                    Some("method") => Some(1),
                    _ => None,
                };
                if let Some(from) = from {
                    let is_list = |id: &NodeId| tree.node(*id).kind == Kind::List;
                    let at = tree.elements(id).skip(from).position(|id| is_list(&id));
                    roles.lambda_lists.insert(id, at.map_or(usize::MAX, |at| at + from));
                }
                let role = roles.find(id, bodies);
                if let Some(known) = roles.known.last_mut() {
                    known.role = role;
                }
            }
        }
        roles
    }

    /// Returns true if a quote makes the direct children of a node data.
    fn quoted_in(&self, parent: NodeId) -> bool {
        let node = self.tree.node(parent);
        match (node.kind, &self.tree.text[node.start..node.inner]) {
            (Kind::Root, _) => false,
            (Kind::Prefixed, "'") => true,
            (Kind::Prefixed, "," | ",@" | ",." | "`") => false,
            _ => self.quoted(parent),
        }
    }

    /// Returns true if a quote around a node makes it data.
    pub fn quoted(&self, id: NodeId) -> bool {
        self.known.get(id as usize).is_some_and(|known| known.quoted)
    }

    /// Returns the role of a list.
    pub fn role(&self, list: NodeId) -> Role {
        self.known.get(list as usize).map_or(Role::Code, |known| known.role)
    }

    /// Returns the name of the symbol that heads a list, in lower case, without its package.
    pub fn operator(&self, list: NodeId) -> Option<&str> {
        let number = self.known.get(list as usize)?.operator as usize;
        self.names.get(number.checked_sub(1)?).map(String::as_str)
    }

    /// Returns the index of the first list behind the name of a `defmethod` or `:method`, or
    /// `usize::MAX` if there is none.
    pub fn lambda_list_at(&self, method: NodeId) -> usize {
        self.lambda_lists.get(&method).copied().unwrap_or(usize::MAX)
    }

    fn find(&self, list: NodeId, bodies: &Bodies) -> Role {
        let tree = self.tree;
        if self.quoted(list) || tree.text_of(list).starts_with('#') {
            return Role::Data;
        }
        let around = tree.node(list).parent;
        if tree.node(around).kind != Kind::List {
            return Role::Code;
        }
        let place = tree.place(list);
        if let Some(operator) = self.operator(around) {
            return match (operator, place) {
                (
                    "let" | "let*" | "flet" | "labels" | "macrolet" | "symbol-macrolet" | "do" | "do*" | "prog"
                    | "prog*",
                    1,
                )
                | ("do" | "do*", 2)
                | ("eval-when" | "lambda" | "destructuring-bind" | "multiple-value-bind", 1)
                | ("defclass" | "define-condition" | "named-lambda", 2)
                | ("defclass" | "define-condition", 3)
                | ("with-slots" | "with-accessors", 1) => Role::Data,
                ("case" | "ecase" | "ccase" | "typecase" | "etypecase" | "ctypecase", 2..) => Role::Clause,
                ("handler-case" | "restart-case", 2..) => Role::Function,
                ("defmethod", 2..) if self.lambda_list_at(around) == place => Role::Data,
                ("defgeneric", 3..) if self.operator(list) == Some("method") => Role::Method,
                (definer, 2) if definer.starts_with("def") && bodies.get(definer).is_some_and(|body| body >= 2) => {
                    Role::Data
                }
                _ => Role::Code,
            };
        }
        let local = tree.node(around).parent;
        let is_first = tree.place(around) == 1 && tree.node(around).kind == Kind::List;
        match self.operator(local) {
            Some("let" | "let*" | "compiler-let" | "symbol-macrolet" | "handler-bind" | "restart-bind") if is_first => {
                Role::Binding
            }
            Some("flet" | "labels" | "macrolet") if tree.place(around) == 1 && tree.node(around).parent == local => {
                Role::Function
            }
            _ => Role::Code,
        }
    }
}
