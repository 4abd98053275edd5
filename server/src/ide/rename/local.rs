//! Renaming of local names. The text gives possible sets of occurrences. The image expands the form
//! before and after the renaming of each set. This shows for which set nothing else changes its
//! meaning.

mod changes;
mod macros;
mod occurrences;

use std::ops::Range;

use super::skipped_forms::guard_of_skipped;
use super::symbols::is_standard_symbol;
use super::{Change, Expander, FileChanges, Named, Refusal, Renaming};
use crate::file_uri::path_of_uri;
use crate::ide::context::{Backend, Cursor};
use crate::ide::refactor::mentions::Hidden;
use crate::ide::refactor::names;
use crate::image::api::expand::{CompareExpansions, Compared};
use crate::image::api::symbols::SymbolPart;
use crate::model::image::ImageError;
use crate::text::datum::{Form, symbol_name};
use crate::text::scopes::{Binding, Namespace, Scopes};
use changes::{changed, changes};
pub(super) use changes::{keeps_meanings, keeps_meanings_without};
use macros::{may_bind, possible_macros};
use occurrences::{Spans, VARIANTS, binder, bound_by_macros, guesses, hidden_too, sites};

/// Renames the local name at the cursor. Returns `None` if the name there is not local.
///
/// # Errors
/// The reason why a local name is not renamed.
pub async fn rename<B: Backend>(
    cursor: &Cursor<B>,
    named: &Named,
    new: &str,
    expander: &impl Expander,
) -> Result<Option<Renaming>, Refusal> {
    let Some(form) = Form::at(&cursor.document, cursor.offset) else { return Ok(None) };
    let scopes = Scopes::of(&form);
    let bound = scopes.resolve(cursor.offset);
    let mut unknown = None;
    let Some(key) = symbol_name(&named.written) else { return Ok(None) };
    if let Some(index) = bound {
        let binding = &scopes.bindings[index];
        if is_special(cursor, &form, binding, &named.written).await? {
            return Ok(None);
        }
        match binding.kind.namespace() {
            Namespace::Variable => refuse_global_variable(cursor, new).await?,
            Namespace::Function => refuse_standard_function(cursor, new).await?,
            _ => {}
        }
        unknown = unknown_mention(&form, &scopes, index).map(|by| {
            Refusal(format!("{} is not renamed: {by} may mean it too, and the text does not tell.", named.name))
        });
    }
    // A macro can bind the name of a special variable only as that variable.
    let starred = key.len() > 2 && key.starts_with('*') && key.ends_with('*');
    if bound.is_none() && starred && is_global(cursor, &key, &named.written).await? {
        return Ok(None);
    }
    let around =
        possible_macros(cursor, &form, &key, bound.and_then(|index| binder(&form, &scopes.bindings[index]))).await;
    if bound.is_none() && around.is_empty() {
        return Ok(None);
    }
    let local = LocalName { form: &form, scopes: &scopes, named, key, new, bound, around, offset: cursor.offset };
    let Variants { all, narrow } = local.variants(unknown.is_some());
    if let Some(index) = bound {
        keeps_meanings(&form, &scopes, &local.changes(&all[0]))
            .map_err(|why| Refusal(format!("{} cannot be called {new} here: {why}.", scopes.bindings[index].name)))?;
    }
    let compared = expander.compare(local.comparison(&all, cursor.package())).await;
    let found = compared.as_ref().ok().and_then(|compared| pick(compared, narrow, unknown.is_none()));
    if let Some(refusal) = unknown.filter(|_| found.is_none()) {
        return Err(refusal);
    }
    let is_variable = bound.is_none_or(|index| scopes.bindings[index].kind.namespace() == Namespace::Variable);
    // A special variable has asterisks by convention. A name without them is renamed as a local one
    // although a file that is not indexed might define it.
    let may_be_special = is_variable && starred;
    let incomplete = if may_be_special { cursor.context.texts_index().await.incomplete } else { None };
    let incomplete = incomplete.map(|why| format!("It may be a special variable that is not found, because {why}."));
    let renaming = |spans: &Spans, unsure: Option<&str>| {
        let mut changes = local.changes(spans);
        let unsure = unsure.map(str::to_owned).or_else(|| incomplete.clone());
        changes.iter_mut().for_each(|change| change.unsure.clone_from(&unsure));
        let file = FileChanges {
            uri: cursor.uri.clone(),
            path: path_of_uri(&cursor.uri),
            document: cursor.document.clone(),
            open: true,
            changes,
        };
        let kind = bound.map_or("local name", |index| scopes.bindings[index].kind.words());
        Renaming { old: named.name.clone(), new: new.to_owned(), kind: kind.into(), files: vec![file] }
    };
    if let Some((index, uses_as_data)) = found {
        let unsure = uses_as_data.then_some("A macro around it also uses the name as data.");
        return Ok(Some(renaming(&all[index], unsure)));
    }
    // Without a macro around the name, the scopes of the text are enough.
    let by_text = local.settle_without(compared)?;
    Ok(by_text.then(|| renaming(&all[0], None)))
}

/// A name that may be local, in its top-level form.
struct LocalName<'a> {
    form: &'a Form,
    scopes: &'a Scopes,
    named: &'a Named,
    /// The name as the reader reads it.
    key: String,
    new: &'a str,
    /// The index of the name's binding, if the scopes have one.
    bound: Option<usize>,
    /// The macros around the name that may bind it.
    around: Vec<String>,
    /// The cursor.
    offset: usize,
}

/// The sets of occurrences that are compared.
struct Variants {
    /// The sets. If the scopes have a binding of the name, the first is the set of its occurrences.
    all: Vec<Spans>,
    /// The range of the sets without occurrences of other bindings.
    narrow: Range<usize>,
}

impl LocalName<'_> {
    /// Returns the sets of occurrences that the name may have. `hidden` is true if the text has
    /// mentions of the name whose meaning it does not show.
    fn variants(&self, hidden: bool) -> Variants {
        let (form, scopes) = (self.form, self.scopes);
        let sites = sites(form, &self.key);
        let mut all: Vec<Spans> = self.bound.map(|index| scopes.occurrences(index)).into_iter().collect();
        let other = hidden_too(scopes, all.first().filter(|_| hidden), &sites);
        let by_macros = bound_by_macros(form, &self.around, &sites, all.first(), self.offset);
        all.extend(other);
        let narrow = all.len()..all.len() + by_macros.len();
        all.extend(by_macros);
        for guess in guesses(form, scopes, self.bound, &sites, self.offset) {
            if all.len() < VARIANTS && !all.contains(&guess) {
                all.push(guess);
            }
        }
        Variants { all, narrow }
    }

    fn changes(&self, spans: &Spans) -> Vec<Change> {
        changes(self.form, self.scopes, spans, &self.named.name, self.new)
    }

    fn comparison(&self, variants: &[Spans], package: Option<String>) -> CompareExpansions {
        CompareExpansions {
            session: String::new(),
            code: self.form.source.clone(),
            package,
            old: self.named.name.clone(),
            new: self.new.to_owned(),
            variants: variants.iter().map(|spans| changed(self.form, &self.changes(spans))).collect(),
            timeout: 0.0,
        }
    }

    /// Decides for a name if no set keeps the meaning of the form, or the form cannot be expanded.
    /// Returns true if the occurrences that the scopes have are renamed all the same, and false if
    /// the name is not local.
    ///
    /// # Errors
    /// The reason why the name is not renamed.
    fn settle_without(&self, compared: Result<Compared, ImageError>) -> Result<bool, Refusal> {
        // The reason why the image could not compare the sets.
        let why = match &compared {
            Ok(compared) => compared.why_not().map(str::to_owned),
            Err(error) => Some(error.to_string()),
        };
        match (why, compared) {
            (Some(why), _) => match (self.bound, self.around.as_slice()) {
                (Some(_), []) => Ok(true),
                (None, _) if !may_bind(self.form, self.scopes, &self.key, &self.around, self.offset) => Ok(false),
                _ => Refusal::of(self.not_expanded(&why)),
            },
            (None, Ok(compared)) if self.bound.is_some() => {
                let why =
                    compared.variants.first().and_then(|one| one.why.as_deref()).unwrap_or("its expansion differs");
                Refusal::of(format!("{} cannot be called {} here: {why}.", self.named.name, self.new))
            }
            (None, _) => Ok(false),
        }
    }

    fn not_expanded(&self, why: &str) -> String {
        let name = &self.named.name;
        if let Some(guard) = guard_of_skipped(self.form, why) {
            return format!("{name} is not read here ({guard}), so no image can expand the form around it");
        }
        format!(
            "{name} stands in {}, whose expansion is needed to rename it, and the image could not expand the form: {}",
            self.around.join(", "),
            why.trim_end()
        )
    }
}

/// Returns a mention of a binding's name whose meaning only an expansion in the image can tell.
fn unknown_mention(form: &Form, scopes: &Scopes, index: usize) -> Option<String> {
    let known = scopes.occurrences(index);
    let name = &scopes.bindings[index].name;
    let hidden = Hidden { form, name, known: &known, unknown: &|_: &str| false };
    form.nodes.iter().find_map(|node| hidden.first(node))
}

/// Returns the index of the first set whose renaming changes the meaning of nothing else, and true
/// if a macro uses the name as data there. A set with such a use is returned only if `with_data` is
/// true.
fn pick(compared: &Compared, narrow: Range<usize>, with_data: bool) -> Option<(usize, bool)> {
    if compared.why_not().is_some() {
        return None;
    }
    let first = |data: bool| {
        let fits = |index: &usize| compared.variants.get(*index).is_some_and(|one| one.same && one.data == data);
        // The sets without occurrences of other bindings come first.
        narrow.clone().chain(0..compared.variants.len()).find(fits).map(|index| (index, data))
    };
    first(false).or_else(|| if with_data { first(true) } else { None })
}

/// Returns true if a binding binds a special variable, as far as the texts and the image show.
async fn is_special<B: Backend>(
    cursor: &Cursor<B>,
    form: &Form,
    binding: &Binding,
    written: &str,
) -> Result<bool, Refusal> {
    Ok(binding.kind.namespace() == Namespace::Variable
        && (names::is_declared_special(form, &binding.name) || is_global(cursor, &binding.name, written).await?))
}

/// Refuses a new name of a local variable that names a special variable or a constant.
async fn refuse_global_variable<B: Backend>(cursor: &Cursor<B>, new: &str) -> Result<(), Refusal> {
    if is_global(cursor, &symbol_name(new).unwrap_or_default(), new).await? {
        return Refusal::of(format!("{new} is a special variable or a constant. Choose another name."));
    }
    Ok(())
}

/// Refuses a new name of a local function that is a symbol of COMMON-LISP, because the package lock
/// forbids such bindings.
async fn refuse_standard_function<B: Backend>(cursor: &Cursor<B>, new: &str) -> Result<(), Refusal> {
    let index = cursor.context.texts_index().await;
    let name = crate::text::names::symbol(new).map(|symbol| symbol.name).unwrap_or_default();
    let package = cursor.package().unwrap_or_else(|| "COMMON-LISP-USER".into());
    if is_standard_symbol(&index.packages(), &package, &name) {
        return Refusal::of(format!("{new} is a symbol of COMMON-LISP, which is locked. Choose another name."));
    }
    Ok(())
}

/// Returns true if the standard, a text of the workspace, or the image has a variable of the name.
///
/// # Errors
/// The image does not answer.
async fn is_global<B: Backend>(cursor: &Cursor<B>, name: &str, written: &str) -> Result<bool, Refusal> {
    Ok(names::is_standard_variable(name)
        || names::defines_variable(&cursor.context.texts_index().await, name)
        || is_variable_in_image(cursor, written).await?)
}

/// Returns true if the image has a variable of the name. An image that is being started has none,
/// since the text answers for local names as it does without an image.
///
/// # Errors
/// The image does not answer.
async fn is_variable_in_image<B: Backend>(cursor: &Cursor<B>, written: &str) -> Result<bool, Refusal> {
    let package = cursor.package();
    let known = match cursor.context.symbol_if_any(written, package.as_deref(), &[SymbolPart::Facts]).await {
        Err(ImageError::Starting(_)) => return Ok(false),
        answer => answer?,
    };
    let kinds = known.facts.map(|facts| facts.kinds).unwrap_or_default();
    Ok(kinds.iter().any(|kind| matches!(kind.as_str(), "variable" | "constant" | "symbol macro")))
}
