//! Package definitions of real systems without the imports that nothing uses: the systems load with
//! the conditions that they had.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use consort::ide::context::{Backend, Context, Cursor};
use consort::ide::refactor::{apply, offers};
use consort::text::Span;
use consort::text::document::Document;
use consort_tests::registry::LIBRARIES;

use super::packages::{Files, conditions};
use super::{Later, Macros, applied};

/// The files without unused imports, and the number of definitions that have changed.
async fn cleaned(before: &Files) -> Result<(Files, usize)> {
    let mut files = before.clone();
    let index = Macros::default().index(before.0.clone()).await;
    let mut changed = 0;
    for file in &index.files {
        // The last first: what is before stays where it was.
        for one in file.definitions.iter().rev().filter(|one| one.operator == "defpackage") {
            let context = Context::new(Macros::default(), files.0.clone());
            let cursor = Cursor::new(context, &file.uri, |_| one.name.start).context("not open")?;
            let selection = Span { start: one.name.start, end: one.name.start };
            let offered = offers(&cursor, selection).await;
            if !offered.iter().any(|offer| offer.id == "clean-imports" && offer.refused.is_none()) {
                continue;
            }
            let done = apply(&cursor, selection, "clean-imports", &Later).await?;
            ensure!(done.files.len() == 1, "{} files", done.files.len());
            let changes: Vec<_> = done.files[0].changes.iter().map(|change| (change.span, change.by.clone())).collect();
            let text = applied(&done.files[0].document, &changes);
            let open = files.0.iter_mut().find(|open| open.uri == file.uri).context("another file")?;
            open.document = Document::new(&text, 1);
            println!("{}: {}", file.path.display(), one.written);
            changed += 1;
        }
    }
    Ok((files, changed))
}

#[tokio::test]
async fn systems_load_without_their_unused_imports() -> Result<()> {
    let mut systems = vec![("babel", "babel")];
    if std::env::var_os("REFACTORINGS").is_some() {
        systems.extend([("cl-cffi", "cffi"), ("hunchentoot", "hunchentoot")]);
    }
    for (directory, system) in systems {
        let from = Path::new(LIBRARIES).join(directory);
        let before = Files::of(&from)?;
        let (after, changed) = cleaned(&before).await?;
        println!("{system}: {changed} definitions without unused imports");
        if changed == 0 {
            continue;
        }
        let place = tempfile::tempdir()?;
        let (old, new) = (place.path().join("old"), place.path().join("new"));
        before.write(&from, &old)?;
        after.write(&from, &new)?;
        let (old, new) = (conditions(&old, system)?, conditions(&new, system)?);
        ensure!(old.last().is_some_and(|last| last == "loaded"), "{system} does not load: {old:?}");
        ensure!(old == new, "{system}:\nbefore {old:#?}\nafter {new:#?}");
    }
    Ok(())
}
