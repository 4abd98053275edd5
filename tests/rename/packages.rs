//! Packages of real systems, each renamed in all files and back: the same bytes then, and the
//! renamed system compiles and loads with the conditions that it had.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use consort::ide::context::{Backend, Context, Cursor};
use consort::ide::rename::{Expander, Options, rename};
use consort::ide::texts::OpenText;
use consort::image::api::expand::{CompareExpansions, Compared};
use consort::model::image::ImageError;
use consort::text::decode;
use consort::text::document::Document;
use consort_tests::real_files;
use consort_tests::registry::{LIBRARIES, libraries};

use super::{Macros, applied, string};

/// Nothing is expanded for a package.
struct Nothing;

impl Expander for Nothing {
    async fn compare(&self, _: CompareExpansions) -> Result<Compared, ImageError> {
        Err(ImageError::Unavailable("not asked".into()))
    }
}

/// The files of a system, as an editor that has them all open.
#[derive(Clone)]
pub(super) struct Files(pub(super) Vec<OpenText>);

impl Files {
    pub(super) fn of(directory: &Path) -> Result<Files> {
        let mut open = Vec::new();
        for path in real_files::below(directory, &["lisp", "asd", "sexp"]) {
            let uri = consort::file_uri::uri_of_path(&path);
            open.push(OpenText {
                uri,
                own: true,
                document: Document::new(&decode(std::fs::read(&path)?), 1),
                path: Some(path),
            });
        }
        Ok(Files(open))
    }

    /// The files after a renaming of the package, as far as that is sure.
    async fn renamed(&self, package: &str, new: &str) -> Result<Files> {
        let context = Context::new(Macros::default(), self.0.clone());
        let index = context.index(self.0.clone()).await;
        let is_it = |one: &&consort::ide::index::Indexed| {
            matches!(one.operator.as_str(), "defpackage" | "define-package") && one.key == package.to_lowercase()
        };
        let place = index.files.iter().find_map(|file| Some((&file.uri, file.definitions.iter().find(is_it)?.name)));
        let (uri, span) = place.with_context(|| format!("no definition of {package}"))?;
        let cursor = Cursor::new(context, uri, |_| span.end).context("not open")?;
        let renaming = rename(&cursor, new, &Nothing, Options::default()).await?;
        ensure!(renaming.kind == "package", "{package} is a {}", renaming.kind);
        let mut files = self.clone();
        for file in renaming.files {
            let sure = file.changes.iter().filter(|change| change.unsure.is_none());
            let changes: Vec<_> = sure.map(|change| (change.span, change.by.clone())).collect();
            let text = applied(&file.document, &changes);
            let open = files.0.iter_mut().find(|open| open.path == file.path).context("another file")?;
            open.document = Document::new(&text, 1);
        }
        Ok(files)
    }

    fn texts(&self) -> Vec<String> {
        self.0.iter().map(|open| open.document.text().to_string()).collect()
    }

    pub(super) fn write(&self, from: &Path, to: &Path) -> Result<()> {
        for open in &self.0 {
            let path: &PathBuf = open.path.as_ref().context("no path")?;
            let path = to.join(path.strip_prefix(from)?);
            std::fs::create_dir_all(path.parent().context("no directory")?)?;
            std::fs::write(path, open.document.text().to_string())?;
        }
        Ok(())
    }
}

/// The conditions of loading a system from a directory.
pub(super) fn conditions(directory: &Path, system: &str) -> Result<Vec<String>> {
    let all = std::iter::once(directory.to_owned()).chain(libraries());
    let directories: Vec<String> = all.map(|path| string(&format!("{}/", path.display()))).collect();
    real_files::ask_sbcl("load-conditions.lisp", format!("({}) {}", directories.join(" "), string(system)))
}

#[tokio::test]
async fn packages_of_real_systems_load_under_another_name() -> Result<()> {
    let mut systems = vec![("alexandria", "alexandria"), ("cl-ppcre", "cl-ppcre")];
    if std::env::var_os("REFACTORINGS").is_some() {
        systems.extend([
            ("chunga", "chunga"),
            ("cl-flexi-streams", "flexi-streams"),
            ("hunchentoot", "hunchentoot"),
            ("fiveam", "fiveam"),
        ]);
    }
    for (directory, system) in systems {
        let from = Path::new(LIBRARIES).join(directory);
        let before = Files::of(&from)?;
        let index = Macros::default().index(before.0.clone()).await;
        let mut packages: Vec<String> =
            index.files.iter().flat_map(|file| &file.packages).map(|package| package.name.clone()).collect();
        packages.sort();
        packages.dedup();
        ensure!(!packages.is_empty(), "no packages in {}", from.display());
        let mut after = before.clone();
        for package in &packages {
            let new = format!("{}-renamed", package.to_lowercase());
            let there = after.renamed(package, &new).await.with_context(|| format!("{system}: {package}"))?;
            let back = there.renamed(&new.to_uppercase(), &package.to_lowercase()).await?;
            for (one, other) in after.texts().iter().zip(back.texts()) {
                ensure!(*one == other, "{system}: {package} is not renamed back to the same text");
            }
            after = there;
        }
        let place = tempfile::tempdir()?;
        let (old, new) = (place.path().join("old"), place.path().join("new"));
        before.write(&from, &old)?;
        after.write(&from, &new)?;
        let (old, new) = (conditions(&old, system)?, conditions(&new, system)?);
        let new: Vec<String> = new.iter().map(|line| line.to_lowercase().replace("-renamed", "")).collect();
        let old: Vec<String> = old.iter().map(|line| line.to_lowercase()).collect();
        println!("{system}: {} packages renamed, {} conditions", packages.len(), old.len());
        ensure!(old.last().is_some_and(|last| last == "loaded"), "{system} does not load: {old:?}");
        ensure!(old == new, "{system}:\nbefore {old:#?}\nafter {new:#?}");
    }
    Ok(())
}
