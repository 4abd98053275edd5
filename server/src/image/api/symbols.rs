//! The operations that look up names in the image: `complete`, `symbol`, `apropos`. None of them
//! runs the user's code or interns a symbol.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;

/// `complete`: the completions of a partial name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complete {
    /// The name as typed so far, with its package prefix.
    pub text: String,
    /// The package in force at the name; CL-USER if that package does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The maximum number of completions, best first.
    pub limit: usize,
    /// True if the name is in operator position.
    pub operator: bool,
    /// True to complete the names of packages instead of symbols.
    pub packages: bool,
}

/// The answer to [`Complete`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Completions {
    /// The completions, best first.
    pub items: Vec<Completion>,
    /// True if there are more than the limit.
    pub incomplete: bool,
}

/// An element of [`Completions`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Completion {
    /// The text to insert, in the case and with the prefix of the partial name.
    pub label: String,
    /// The name of the symbol or package.
    pub name: String,
    /// The symbol's home package, or the package itself; empty when there is none.
    pub package: String,
    /// The kind: `function`, `macro`, `variable`, `class`, ..., `package`. `symbol` if the symbol
    /// has no meaning.
    pub kind: String,
}

impl Operation for Complete {
    const NAME: &'static str = "complete";
    type Answer = Completions;
}

/// A part of the answer to [`Symbol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SymbolPart {
    /// The kinds, the lambda list, the documentation and the value.
    Facts,
    /// The locations of the definitions, and the image's features, which affect the counting of
    /// forms.
    Definitions,
    /// The definitions, and among them those of the types of the value or of the function's
    /// results.
    Types,
    /// The definitions, and among them those of the systems of that name.
    Systems,
    /// The references to the name.
    References,
    /// The functions that the name's own code calls.
    Callees,
    /// The description of the class of that name.
    Class,
    /// The symbols of that name in other packages, if the symbol does not exist or has no meaning.
    /// If there is exactly one, the answer describes it.
    Elsewhere,
}

/// `symbol`: the known facts about a name.
#[derive(Debug, Clone, Serialize)]
pub struct Symbol {
    /// The name as written: `scan`, `cl-ppcre:scan`, `#:foo`, `(setf foo)`.
    pub name: String,
    /// The package in force at the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// True if a package that does not exist is an error (`package-not-found`). Otherwise CL-USER
    /// takes its place.
    pub strict: bool,
    /// The parts of the answer.
    pub want: Vec<SymbolPart>,
    /// The maximum number of methods of a generic function among the definitions, the user's first.
    /// `None` if all are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<usize>,
}

impl Symbol {
    /// Creates the query for a name as written in a text.
    pub fn at(name: String, package: Option<String>, want: &[SymbolPart]) -> Symbol {
        Symbol { name, package, strict: false, want: want.to_vec(), methods: None }
    }
}

impl Operation for Symbol {
    const NAME: &'static str = "symbol";
    type Answer = SymbolAnswer;
}

/// The answer to [`Symbol`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SymbolAnswer {
    /// True if the symbol exists. No symbol was interned.
    pub found: bool,
    /// The symbol as printed in the package of the query.
    pub printed: Option<String>,
    /// Symbols of that name in other packages, when the symbol does not exist.
    pub elsewhere: Vec<String>,
    /// The facts of the symbol.
    pub facts: Option<Facts>,
    /// The locations of the definitions of the symbol, and of the package or system of that name.
    pub definitions: Vec<Definition>,
    /// The number of methods that are not in `definitions` because of [`Symbol::methods`].
    pub more_methods: usize,
    /// The references to the name.
    pub references: Option<Vec<Reference>>,
    /// The functions that the name's own code calls, except SBCL's own.
    pub callees: Option<Vec<String>>,
    /// The class of that name.
    pub class: Option<ClassDetails>,
    /// The package of that name.
    pub package: Option<PackageFacts>,
    /// The image's `*features*`, upper-case.
    pub features: Option<Vec<String>>,
}

/// The facts of a symbol.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Facts {
    /// The symbol's name.
    pub name: String,
    /// The symbol's home package.
    pub package: Option<String>,
    /// True if the home package exports the symbol.
    pub external: bool,
    /// The symbol as printed in the package of the query.
    pub printed: String,
    /// The kinds: `function`, `macro`, `special operator`, `generic function`, `variable`,
    /// `constant`, `class`, ...
    pub kinds: Vec<String>,
    /// The parameters of the operator, each as written.
    pub lambda_list: Option<Vec<String>>,
    /// The function's type.
    #[serde(rename = "type")]
    pub function_type: Option<String>,
    /// The documentation strings, by kind.
    pub documentation: Vec<Documentation>,
    /// The value of a variable, abbreviated.
    pub value: Option<String>,
    /// The facts of the class of that name.
    pub class: Option<ClassFacts>,
}

/// A documentation string.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Documentation {
    /// The kind of the documented thing: function, variable, ...
    pub kind: String,
    /// The text.
    pub text: String,
}

/// The facts of a class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClassFacts {
    /// Direct superclasses.
    pub supers: Vec<String>,
    /// Slots.
    pub slots: Vec<String>,
}

/// The full description of a class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ClassDetails {
    /// The metaclass: `standard-class`, `structure-class`, ...
    pub metaclass: String,
    /// Direct superclasses.
    pub supers: Vec<String>,
    /// Direct subclasses.
    pub subclasses: Vec<String>,
    /// The slots, inherited ones included.
    pub slots: Vec<SlotDetails>,
    /// Initialization arguments, including those of methods.
    pub initargs: Vec<String>,
    /// Methods that specialize on the class, without accessors.
    pub methods: Vec<String>,
}

/// A slot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct SlotDetails {
    /// The slot's name.
    pub name: String,
    /// The class that defines the slot.
    pub from: String,
    /// The initialization arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub initargs: Vec<String>,
    /// The readers and writers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accessors: Vec<String>,
    /// The type, unless T.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The initialization form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initform: Option<String>,
}

/// The facts of a package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PackageFacts {
    /// The package's name.
    pub name: String,
    /// The nicknames.
    pub nicknames: Vec<String>,
    /// The packages it uses.
    pub uses: Vec<String>,
    /// The packages that use it.
    pub used_by: Vec<String>,
    /// The number of exported symbols.
    pub external: usize,
    /// The package's documentation.
    pub documentation: Option<String>,
}

/// The location of a definition according to the image. `text::definitions` finds the definition in
/// the file's text from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// The file; `None` for a definition typed at a REPL.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The offset of the first character of the top-level form, 0-based.
    #[serde(default)]
    pub offset: Option<usize>,
    /// The index of the top-level form, 0-based, among those that the reader returned.
    #[serde(default)]
    pub form: Option<usize>,
    /// The modification time of the compiled file, seconds since 1970.
    #[serde(default)]
    pub written: Option<i64>,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Definition {
    /// The kind: `function`, `method`, `macro`, `variable`, `class`, `structure`, `package`,
    /// `system`, ...
    pub kind: String,
    /// The name for the user: `scan`, `(setf width)`, `area :around (circle t)`.
    pub name: String,
    /// The specializers of a method.
    #[serde(default)]
    pub specializers: Vec<String>,
    /// The qualifiers of a method.
    #[serde(default)]
    pub qualifiers: Vec<String>,
    /// The location.
    #[serde(flatten)]
    pub place: Place,
}

/// A reference to a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reference {
    /// The kind: `calls`, `macroexpands`, `binds`, `sets`, `references` or `specializes`.
    pub kind: String,
    /// The function or method that contains the reference.
    pub by: String,
    /// The kind of that function or method: `function`, `method`, `macro`, ...
    pub by_kind: String,
    /// The location of that function's definition.
    #[serde(flatten)]
    pub place: Place,
}

/// `apropos`: symbols whose names contain a text.
#[derive(Debug, Clone, Serialize)]
pub struct Apropos {
    /// The text, in any case.
    pub pattern: String,
    /// The package to which the search is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// True to limit the search to exported symbols.
    pub external: bool,
    /// True to include SBCL's own packages. COMMON-LISP is always included.
    pub system: bool,
    /// The maximum number of symbols, best first.
    pub limit: usize,
    /// True to include the locations of the definitions.
    pub definitions: bool,
}

impl Operation for Apropos {
    const NAME: &'static str = "apropos";
    type Answer = AproposAnswer;
}

/// The answer to [`Apropos`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AproposAnswer {
    /// The number of matching symbols.
    pub total: usize,
    /// The symbols, best first.
    pub symbols: Vec<FoundSymbol>,
    /// The image's `*features*`, upper-case, if the query requested definitions.
    #[serde(default)]
    pub features: Option<Vec<String>>,
}

/// An element of the answer to [`Apropos`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FoundSymbol {
    /// The symbol as printed in CL-USER.
    pub name: String,
    /// The symbol's home package.
    pub package: String,
    /// The symbol's own name.
    pub symbol: String,
    /// The main kind of the symbol.
    pub kind: String,
    /// The parameters of an operator.
    pub lambda_list: Option<Vec<String>>,
    /// The first line of the symbol's documentation.
    pub summary: Option<String>,
    /// The location of the definition, when requested.
    #[serde(default)]
    pub definitions: Vec<Definition>,
}
