//! What the image knows of names: `complete`, `symbol`, `apropos`. They run nothing of the user's and intern nothing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;

/// `complete`: what a name that was begun may become.
#[derive(Debug, Clone, Serialize)]
pub struct Complete {
    /// The name as typed so far, with its package prefix.
    pub text: String,
    /// The package in force where it stands; one that is not there is taken for CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// At most so many, best first.
    pub limit: usize,
    /// It stands where an operator is wanted.
    pub operator: bool,
    /// Packages are wanted, not symbols.
    pub packages: bool,
}

/// The answer to [`Complete`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Completions {
    /// Best first.
    pub items: Vec<Completion>,
    /// There are more than the limit.
    pub incomplete: bool,
}

/// One of [`Completions`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Completion {
    /// What to write, in the case and with the prefix that were begun with.
    pub label: String,
    /// The symbol's own name, or the package's.
    pub name: String,
    /// The symbol's home package, or the package that is meant; empty when it has none.
    pub package: String,
    /// `function`, `macro`, `variable`, `class`, ..., `package`; `symbol` when it means nothing.
    pub kind: String,
}

impl Operation for Complete {
    const NAME: &'static str = "complete";
    type Answer = Completions;
}

/// A part of the answer to [`Symbol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Want {
    /// Kinds, lambda list, documentation, value.
    Facts,
    /// Where it was defined, and the image's features, by which forms are counted.
    Definitions,
    /// Where the types it is of, or returns, were defined, among the definitions.
    Types,
    /// The initialization arguments of the class of that name.
    Initargs,
    /// Systems of that name too, among the definitions.
    Systems,
    /// Who refers to it.
    References,
    /// What its own code calls.
    Callees,
    /// What the class of that name is.
    Class,
    /// When it is not there, or means nothing: the symbols of that name in other packages; the one, if there is one, is then the answer.
    Elsewhere,
}

/// `symbol`: what is known of a name.
#[derive(Debug, Clone, Serialize)]
pub struct Symbol {
    /// As written: `scan`, `cl-ppcre:scan`, `#:foo`, `(setf foo)`.
    pub name: String,
    /// The package in force where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// A package that does not exist is an error (`package-not-found`), not CL-USER.
    pub strict: bool,
    /// What is asked.
    pub want: Vec<Want>,
}

impl Symbol {
    /// What is asked of the name as it stands in a text.
    pub fn at(name: String, package: Option<String>, want: &[Want]) -> Symbol {
        Symbol { name, package, strict: false, want: want.to_vec() }
    }
}

impl Operation for Symbol {
    const NAME: &'static str = "symbol";
    type Answer = Known;
}

/// The answer to [`Symbol`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Known {
    /// There is such a symbol. Nothing was interned.
    pub found: bool,
    /// How it is written in that package.
    pub printed: Option<String>,
    /// Symbols of that name in other packages, when it is not there.
    pub elsewhere: Vec<String>,
    /// What it is.
    pub facts: Option<Facts>,
    /// Where it, and the package or system of that name, were defined.
    pub definitions: Vec<Definition>,
    /// Who refers to it.
    pub references: Option<Vec<Reference>>,
    /// What its own code calls, of what is not SBCL's.
    pub callees: Option<Vec<String>>,
    /// The class's initialization arguments, as written in that package.
    pub initargs: Option<Vec<String>>,
    /// The class of that name.
    pub class: Option<ClassDetails>,
    /// The package of that name.
    pub package: Option<PackageFacts>,
    /// The image's `*features*`, upper-case.
    pub features: Option<Vec<String>>,
}

/// What a symbol is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Its home package.
    pub package: Option<String>,
    /// It is exported from there.
    pub external: bool,
    /// How it is written in the package that was asked from.
    pub printed: String,
    /// `function`, `macro`, `special operator`, `generic function`, `variable`, `constant`, `class`, ...
    pub kinds: Vec<String>,
    /// The parameters of the operator, each as written.
    pub lambda_list: Option<Vec<String>>,
    /// The function's type.
    #[serde(rename = "type")]
    pub function_type: Option<String>,
    /// By kind.
    pub documentation: Vec<Documentation>,
    /// A variable's value, briefly.
    pub value: Option<String>,
    /// Of a class.
    pub class: Option<ClassFacts>,
}

/// One documentation string.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, schemars::JsonSchema)]
pub struct Documentation {
    /// Of the function, variable, ...
    pub kind: String,
    /// The text.
    pub text: String,
}

/// What a class is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClassFacts {
    /// Direct superclasses.
    pub supers: Vec<String>,
    /// Slots.
    pub slots: Vec<String>,
}

/// All that is known of a class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ClassDetails {
    /// `standard-class`, `structure-class`, ...
    pub metaclass: String,
    /// Direct superclasses.
    pub supers: Vec<String>,
    /// Direct subclasses.
    pub subclasses: Vec<String>,
    /// Its slots and those of the classes above.
    pub slots: Vec<SlotDetails>,
    /// Initialization arguments, those of methods too.
    pub initargs: Vec<String>,
    /// Methods that specialize on it, but for accessors.
    pub methods: Vec<String>,
}

/// A slot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct SlotDetails {
    /// Its name.
    pub name: String,
    /// The class that defines it.
    pub from: String,
    /// Its initialization arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub initargs: Vec<String>,
    /// Its readers and writers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accessors: Vec<String>,
    /// Unless it is T.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The form of its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initform: Option<String>,
}

/// What a package is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PackageFacts {
    /// Its name.
    pub name: String,
    /// Its nicknames.
    pub nicknames: Vec<String>,
    /// The packages it uses.
    pub uses: Vec<String>,
    /// The packages that use it.
    pub used_by: Vec<String>,
    /// How many symbols it exports.
    pub external: usize,
    /// Its documentation.
    pub documentation: Option<String>,
}

/// Where the image says that something stands. `text::definitions` finds it in the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// The file; none for what was typed at a REPL.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The first character of the top-level form, 0-based.
    #[serde(default)]
    pub offset: Option<usize>,
    /// The number of the top-level form, 0-based, of those the reader gave.
    #[serde(default)]
    pub form: Option<usize>,
    /// When the file was written that was compiled, seconds since 1970.
    #[serde(default)]
    pub written: Option<i64>,
}

/// One definition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Definition {
    /// `function`, `method`, `macro`, `variable`, `class`, `structure`, `package`, `system`, ...
    pub kind: String,
    /// How people name it: `scan`, `(setf width)`, `area :around (circle t)`.
    pub name: String,
    /// Of a method.
    #[serde(default)]
    pub specializers: Vec<String>,
    /// Of a method.
    #[serde(default)]
    pub qualifiers: Vec<String>,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
}

/// One who refers to a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reference {
    /// `calls`, `macroexpands`, `binds`, `sets`, `references`, `specializes`.
    pub kind: String,
    /// The function or method that does.
    pub by: String,
    /// `function`, `method`, `macro`, ...
    pub by_kind: String,
    /// Where that is defined.
    #[serde(flatten)]
    pub place: Place,
}

/// `apropos`: symbols whose names contain a text.
#[derive(Debug, Clone, Serialize)]
pub struct Apropos {
    /// The text, in any case.
    pub pattern: String,
    /// Only symbols at home there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Only exported ones.
    pub external: bool,
    /// SBCL's own packages too (COMMON-LISP is always looked in).
    pub system: bool,
    /// At most so many, best first.
    pub limit: usize,
    /// Where each is defined too.
    pub definitions: bool,
}

impl Operation for Apropos {
    const NAME: &'static str = "apropos";
    type Answer = Found;
}

/// The answer to [`Apropos`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Found {
    /// How many there are.
    pub total: usize,
    /// Best first.
    pub symbols: Vec<FoundSymbol>,
    /// The image's `*features*`, upper-case, with definitions.
    #[serde(default)]
    pub features: Option<Vec<String>>,
}

/// One of [`Found`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FoundSymbol {
    /// How it is written in CL-USER.
    pub name: String,
    /// Its home package.
    pub package: String,
    /// Its own name.
    pub symbol: String,
    /// What it is, mainly.
    pub kind: String,
    /// An operator's parameters.
    pub lambda_list: Option<Vec<String>>,
    /// The first line of its documentation.
    pub summary: Option<String>,
    /// Where it is defined, when that was asked.
    #[serde(default)]
    pub definitions: Vec<Definition>,
}
