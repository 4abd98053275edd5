//! The names that are meant in place of unknown ones, for a front end that offers no fixes.

use std::path::Path;

use super::Session;
use super::documents::first_package;
use crate::ide::context::Backend as _;
use crate::ide::fixes::meant;
use crate::image::api::symbols::{Complete, Completions};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;

/// The maximum number of different names of a text that the image is asked for.
const MAX_QUERIES: usize = 20;

impl Session {
    /// Returns, for each diagnostic of a text, the texts that are meant in place of the unknown
    /// name that it is about.
    pub async fn meant(&self, text: &str, path: &Path, items: &[Diagnostic]) -> Vec<Vec<String>> {
        let document = Document::new(text, 0);
        let mut known: Vec<(Complete, Completions)> = Vec::new();
        let mut answers = true;
        let mut meant = Vec::with_capacity(items.len());
        for item in items {
            let Some(question) = meant::question(&document, item, first_package(Some(path))) else {
                meant.push(Vec::new());
                continue;
            };
            let at = match known.iter().position(|(asked, _)| *asked == question) {
                Some(at) => at,
                None if known.len() == MAX_QUERIES => {
                    meant.push(Vec::new());
                    continue;
                }
                None => {
                    // Without an image that answers, only the names of the text are known.
                    let found = if answers { self.query(question.clone()).await.ok() } else { None };
                    answers = found.is_some();
                    let found = found.unwrap_or_default();
                    known.push((question, found));
                    known.len() - 1
                }
            };
            meant.push(meant::names(&document, item, &known[at].1.items));
        }
        meant
    }
}
