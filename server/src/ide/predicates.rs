//! The standard's predicates that return T or NIL and nothing else.

use crate::text::datum::{Form, Node};

/// Standard functions that return only T or NIL in SBCL.
const PREDICATES: [&str; 45] = [
    "/=",
    "<",
    "<=",
    "=",
    ">",
    ">=",
    "atom",
    "boundp",
    "char/=",
    "char<",
    "char=",
    "char>",
    "characterp",
    "complexp",
    "consp",
    "constantp",
    "endp",
    "eq",
    "eql",
    "equal",
    "equalp",
    "evenp",
    "fboundp",
    "floatp",
    "functionp",
    "hash-table-p",
    "integerp",
    "keywordp",
    "listp",
    "minusp",
    "not",
    "null",
    "numberp",
    "oddp",
    "packagep",
    "pathnamep",
    "plusp",
    "rationalp",
    "realp",
    "streamp",
    "string=",
    "stringp",
    "symbolp",
    "vectorp",
    "zerop",
];

/// Returns true if a form is a call of a function that returns only T or NIL.
pub(super) fn is_predicate(form: &Form, node: &Node) -> bool {
    node.is_list() && form.operator(node).is_some_and(|name| PREDICATES.contains(&name.as_str()))
}
