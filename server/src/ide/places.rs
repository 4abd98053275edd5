//! Exact locations of definitions. Definitions that the image reports are found in the current
//! texts. If the image reports none, definitions are found in the texts alone.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use ropey::Rope;

use super::texts::{Text, Texts};
use crate::file_uri::uri_of_path;
use crate::image::api::symbols::{Definition, SymbolAnswer};
use crate::text::Span;
use crate::text::definitions::{self, Hint, Place};
use crate::text::position::{LineColumn, line_column};

/// A part of a file, to show or to go to.
#[derive(Debug, Clone)]
pub struct Target {
    /// The URI of the file.
    pub uri: String,
    /// The text of the file; `None` if the file cannot be read.
    pub text: Option<Rope>,
    /// The span in the text.
    pub span: Span,
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        self.uri == other.uri && self.span == other.span
    }
}

/// Removes repeated targets, and keeps the order.
pub fn distinct(targets: impl IntoIterator<Item = Target>) -> Vec<Target> {
    let mut seen: HashSet<(String, Span)> = HashSet::new();
    targets.into_iter().filter(|target| seen.insert((target.uri.clone(), target.span))).collect()
}

/// A definition and its location.
#[derive(Debug, Clone)]
pub struct Defined {
    /// `function`, `method`, `macro`, `variable`, ...
    pub kind: String,
    /// The display name.
    pub name: String,
    /// The text of the definition's file; `None` if the file cannot be read.
    pub text: Option<Arc<Text>>,
    /// The file of the definition.
    pub file: PathBuf,
    /// The place in the text.
    pub place: Option<Place>,
}

impl Defined {
    /// Returns the line and the column of the defining form, 1-based.
    pub fn start(&self) -> Option<LineColumn> {
        let (text, place) = (self.text.as_ref()?, self.place?);
        Some(line_column(text.document.text(), place.form.start))
    }

    /// Returns true if the text certainly has no such definition any more. The place is then
    /// that of another definition.
    pub fn is_gone(&self) -> bool {
        let (Some(text), Some(place)) = (&self.text, self.place) else { return false };
        definitions::is_other(&text.document, place, &definitions::key(bare_name(&self.kind, &self.name)))
    }

    /// Returns the place of the definition's name, or the start of the file if that place is not
    /// known.
    pub fn target(&self) -> Target {
        match &self.text {
            Some(text) => {
                let span = self.place.map_or(Span { start: 0, end: 0 }, |place| place.name);
                Target { uri: text.uri.clone(), text: Some(text.document.text().clone()), span }
            }
            None => Target { uri: uri_of_path(&self.file), text: None, span: Span { start: 0, end: 0 } },
        }
    }

    /// Returns the first lines of the form: at most `lines`, and 2,000 characters.
    pub fn snippet(&self, lines: usize) -> Option<String> {
        const MAX_CHARS: usize = 2_000;
        let (text, place) = (self.text.as_ref()?, self.place?);
        let form = text.document.text().slice(place.form.start..place.form.end);
        let shown: String = form.chars().take(MAX_CHARS).collect();
        let mut out: Vec<&str> = shown.lines().take(lines).collect();
        if form.len_lines() > out.len() || form.len_chars() > MAX_CHARS {
            out.push("...");
        }
        Some(out.join("\n"))
    }
}

/// Returns all definitions that the image knows, each in its text.
pub async fn defined(known: &SymbolAnswer, texts: &mut Texts) -> Vec<Defined> {
    let features = known.features.as_deref().unwrap_or_default();
    let mut all: Vec<Defined> = Vec::new();
    for definition in &known.definitions {
        if let Some(one) = locate(definition, features, texts).await {
            let same = |other: &Defined| other.file == one.file && other.place == one.place && other.kind == one.kind;
            if !all.iter().any(same) {
                all.push(one);
            }
        }
    }
    // The image also reports declarations of a name. They are left out if there is a definition.
    if all.iter().any(|one| one.kind != "declaration") {
        all.retain(|one| one.kind != "declaration");
    }
    all
}

/// Returns the location of one definition in its text.
pub async fn locate(definition: &Definition, features: &[String], texts: &mut Texts) -> Option<Defined> {
    let file = definition.place.file.clone()?;
    let text = texts.get(&file).await;
    let place = text.as_ref().and_then(|text| definitions::locate(&text.document, &hint(definition, features)));
    Some(Defined { kind: definition.kind.clone(), name: definition.name.clone(), text, file, place })
}

/// Returns the name of a definition. The image names a method with its qualifiers and specializers.
fn bare_name<'a>(kind: &str, name: &'a str) -> &'a str {
    match kind {
        "method" if name.starts_with('(') => name.split_inclusive(')').next().unwrap_or_default(),
        "method" => name.split(' ').next().unwrap_or_default(),
        _ => name,
    }
}

fn hint<'a>(definition: &'a Definition, features: &'a [String]) -> Hint<'a> {
    Hint {
        kind: &definition.kind,
        key: definitions::key(bare_name(&definition.kind, &definition.name)),
        specializers: definition.specializers.iter().map(|one| definitions::key(one)).collect(),
        qualifiers: definition.qualifiers.iter().map(|one| one.to_lowercase()).collect(),
        offset: definition.place.offset,
        form: definition.place.form,
        features,
    }
}

/// Returns the definitions of a name as written that the image knows. If there are none, or there
/// is no image, returns those in the texts.
pub async fn defined_anywhere(
    known: Option<&SymbolAnswer>,
    written: &str,
    package: Option<&str>,
    texts: &mut Texts,
) -> Vec<Defined> {
    defined_where(known, written, package, texts, |_| true).await
}

/// Returns the definitions as [`defined_anywhere`] does, restricted to those that `meant` accepts.
/// If the image knows none of these, the texts are searched.
pub async fn defined_where(
    known: Option<&SymbolAnswer>,
    written: &str,
    package: Option<&str>,
    texts: &mut Texts,
    meant: impl Fn(&Defined) -> bool,
) -> Vec<Defined> {
    let mut found = match known {
        Some(known) => defined(known, texts).await,
        None => Vec::new(),
    };
    found.retain(&meant);
    if found.is_empty() {
        found = defined_in_texts(written, package, texts).await;
        found.retain(&meant);
    }
    found
}

/// Returns the definitions of a name as written in the texts known so far: those in `package` or,
/// if there are none, all.
pub async fn defined_in_texts(written: &str, package: Option<&str>, texts: &mut Texts) -> Vec<Defined> {
    let key = definitions::key(written);
    let mut found: Vec<(bool, Defined)> = Vec::new();
    for text in texts.known().await {
        for one in definitions::named(&text.document, &key) {
            let elsewhere = definitions::package(&text.document, &one).as_deref() != package;
            let defined = Defined {
                kind: definitions::kind_of(&one.operator).to_owned(),
                name: one.written.clone(),
                text: Some(text.clone()),
                file: text.path.clone(),
                place: Some(Place { form: one.span, name: one.name }),
            };
            found.push((elsewhere, defined));
        }
    }
    found.sort_by_key(|(elsewhere, one)| (*elsewhere, one.file.clone(), one.place.map(|place| place.form.start)));
    // Definitions in other packages are left out if `package` has one.
    let here = found.iter().any(|(elsewhere, _)| !elsewhere);
    found.into_iter().filter(|(elsewhere, _)| !here || !elsewhere).map(|(_, one)| one).collect()
}
