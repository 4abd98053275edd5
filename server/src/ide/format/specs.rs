//! The indentation of the standard's operators, following slime-cl-indent.el of SLIME.

/// The indentation of one or several arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spec {
    /// Below the previous argument.
    Below,
    /// At this number of columns after the opening parenthesis of the surrounding list.
    Column(usize),
    /// A lambda list. An element that is no list is indented like a body.
    Lambda,
    /// All further arguments are a body.
    Body,
    /// The next [`Spec`] applies to all further arguments.
    Rest,
    /// A list, with a column for the list itself and the indentation of its elements.
    List(Option<usize>, &'static [Spec]),
    /// According to a special rule.
    By(Rule),
}

/// Rules that a list of [`Spec`] cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// `do`: bindings, an end, and a `tagbody`.
    Do,
    /// Tags and statements.
    Tagbody,
    /// The body of a `lambda`.
    LambdaBody,
    /// A method: qualifiers, a lambda list, a body.
    Method,
    /// The two forms of `defsetf`.
    Defsetf,
    /// The clauses of `loop`.
    Loop,
    /// The words and forms of Franz's `if*`.
    IfStar,
}

/// The indentation of an operator's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// An operator with this number of arguments before a body.
    Number(usize),
    /// An operator with an indentation for each argument.
    Arguments(&'static [Spec]),
    /// An operator with a special rule.
    By(Rule),
}

use Spec::{Below, Body, By, Column, Lambda, List, Rest};

/// The arguments of a definition with a lambda list.
pub(super) const DEFUN: &[Spec] = &[Column(4), Lambda, Body];
/// The arguments of an operator whose name begins with `with-` or a similar prefix.
pub(super) const WITH: &[Spec] = &[Lambda, Body];
/// The arguments of `do` before its body.
pub(super) const DO: &[Spec] = &[List(None, &[Rest]), List(None, &[Rest, Column(1)])];

const CASE: &[Spec] = &[Column(4), Rest, List(Some(2), &[Rest, Column(1)])];
const CLAUSES: &[Spec] = &[Column(4), Rest, List(Some(2), &[Lambda, Body])];
const CLASS: &[Spec] = &[
    Column(6),
    List(Some(4), &[Rest, Column(1)]),
    List(Some(2), &[Rest, Column(1)]),
    List(Some(2), &[Rest, Column(1)]),
];
const DOLIST: &[Spec] = &[List(Some(4), &[Column(2), Column(1)]), Body];
const LET: &[Spec] = &[List(Some(4), &[Rest, List(Some(1), &[Column(1), Column(2)])]), Body];
const LOCAL: &[Spec] = &[List(Some(4), &[Rest, List(Some(1), &[Column(4), Lambda, Body])]), Body];
const VALUES: &[Spec] = &[List(Some(6), &[Rest, Column(1)]), Column(4), Body];
const VARIABLE: &[Spec] = &[Column(4), Column(2), Column(2)];
const STRUCTURE: &[Spec] =
    &[List(Some(4), &[Rest, List(Some(2), &[Rest, Column(1)])]), Rest, List(Some(2), &[Rest, Column(1)])];

/// Returns the indentation of an operator. The name is in lower case, without package. `keyword` is
/// true if the name is written as a keyword.
pub(super) fn of(name: &str, keyword: bool) -> Option<Method> {
    use Method::{Arguments, Number};
    Some(match name {
        "method" if keyword => Method::By(Rule::Method),
        "constructor" if keyword => Arguments(&[Column(4), Lambda]),
        "block"
        | "catch"
        | "eval-when"
        | "locally"
        | "multiple-value-prog1"
        | "prog1"
        | "throw"
        | "unless"
        | "when" => Number(1),
        "prog2" => Number(2),
        "progn" | "return" => Number(0),
        "case" | "ccase" | "ecase" | "typecase" | "etypecase" | "ctypecase" => Arguments(CASE),
        "cond" => Arguments(&[Rest, List(Some(2), &[Rest, Below])]),
        "if" => Arguments(&[Rest, Below]),
        "if*" => Method::By(Rule::IfStar),
        "let" | "let*" | "compiler-let" | "handler-bind" | "restart-bind" | "symbol-macrolet" => Arguments(LET),
        "flet" | "labels" | "macrolet" | "generic-flet" | "generic-labels" => Arguments(LOCAL),
        "lambda" => Arguments(&[Lambda, Rest, By(Rule::LambdaBody)]),
        "named-lambda" => Arguments(&[Column(4), Lambda, Rest, By(Rule::LambdaBody)]),
        "defun"
        | "defgeneric"
        | "defmacro"
        | "defsubst"
        | "deftype"
        | "define-modify-macro"
        | "define-setf-method"
        | "define-setf-expander" => Arguments(DEFUN),
        "defmethod" => Method::By(Rule::Method),
        "defsetf" => Method::By(Rule::Defsetf),
        "defvar" | "defparameter" | "defconstant" => Arguments(VARIABLE),
        "defconst" | "defcustom" => Arguments(&[Column(4), Column(2), Column(2), Column(2)]),
        "defclass" | "define-condition" => Arguments(CLASS),
        "defstruct" => Arguments(STRUCTURE),
        "defpackage"
        | "multiple-value-setq"
        | "multiple-value-setf"
        | "pprint-logical-block"
        | "with-output-to-string" => Arguments(&[Column(4), Column(2)]),
        "destructuring-bind" => Arguments(&[Lambda, Column(4), Body]),
        "do" | "do*" => Method::By(Rule::Do),
        "dolist" | "dotimes" => Arguments(DOLIST),
        "handler-case" | "restart-case" => Arguments(CLAUSES),
        "loop" => Method::By(Rule::Loop),
        "multiple-value-bind" | "with-accessors" | "with-slots" | "with-condition-restarts" => Arguments(VALUES),
        "multiple-value-call" => Arguments(&[Column(4), Body]),
        "print-unreadable-object" => Arguments(&[List(Some(4), &[Column(1), Rest, Column(1)]), Body]),
        "with-compilation-unit" => Arguments(&[List(Some(4), &[Rest, Column(1)]), Body]),
        "prog" | "prog*" => Arguments(&[Lambda, Rest, By(Rule::Tagbody)]),
        "progv" => Arguments(&[Column(4), Column(4), Body]),
        "return-from" => Arguments(&[Below, Body]),
        "tagbody" => Method::By(Rule::Tagbody),
        "unwind-protect" => Arguments(&[Column(5), Body]),
        "with-standard-io-syntax" => Arguments(&[Column(2)]),
        _ => return None,
    })
}
