//! The syntax of the special operators (CLHS 3.1.2.1.2.1) and of declarations, for which there is
//! no lambda list.

const FORMS: [(&str, &str); 36] = [
    ("block", "(block name form*)"),
    ("catch", "(catch tag form*)"),
    ("eval-when", "(eval-when ({:compile-toplevel | :load-toplevel | :execute}*) form*)"),
    ("flet", "(flet ((name lambda-list declaration* form*)*) declaration* form*)"),
    ("function", "(function name) or #'name"),
    ("go", "(go tag)"),
    ("if", "(if test then [else])"),
    ("labels", "(labels ((name lambda-list declaration* form*)*) declaration* form*)"),
    ("let", "(let ({variable | (variable [init])}*) declaration* form*)"),
    ("let*", "(let* ({variable | (variable [init])}*) declaration* form*)"),
    ("load-time-value", "(load-time-value form [read-only-p])"),
    ("locally", "(locally declaration* form*)"),
    ("macrolet", "(macrolet ((name lambda-list declaration* form*)*) declaration* form*)"),
    ("multiple-value-call", "(multiple-value-call function form*)"),
    ("multiple-value-prog1", "(multiple-value-prog1 first form*)"),
    ("progn", "(progn form*)"),
    ("progv", "(progv symbols values form*)"),
    ("quote", "(quote object) or 'object"),
    ("return-from", "(return-from name [result])"),
    ("setq", "(setq {variable form}*)"),
    ("symbol-macrolet", "(symbol-macrolet ((symbol expansion)*) declaration* form*)"),
    ("tagbody", "(tagbody {tag | statement}*)"),
    ("the", "(the type form)"),
    ("throw", "(throw tag result)"),
    ("unwind-protect", "(unwind-protect protected cleanup*)"),
    ("declare", "(declare declaration-specifier*)"),
    ("declaration", "(declaration name*)"),
    ("dynamic-extent", "(dynamic-extent {variable | (function name)}*)"),
    ("ftype", "(ftype type function-name*)"),
    ("ignorable", "(ignorable {variable | (function name)}*)"),
    ("ignore", "(ignore {variable | (function name)}*)"),
    ("inline", "(inline function-name*)"),
    ("notinline", "(notinline function-name*)"),
    (
        "optimize",
        "(optimize {quality | (quality value)}*), of compilation-speed, debug, safety, space, speed from 0 to 3",
    ),
    ("special", "(special variable*)"),
    ("type", "(type type variable*)"),
];

/// Returns the syntax of a special operator or a declaration, by its name in any case.
pub fn of(written: &str) -> Option<&'static str> {
    let name = written.to_lowercase();
    let name = name.strip_prefix("common-lisp:").or_else(|| name.strip_prefix("cl:")).unwrap_or(&name);
    FORMS.iter().find(|(known, _)| *known == name).map(|(_, syntax)| *syntax)
}
