//! The names that are meant in place of unknown ones, for a front end without fixes.

use std::path::Path;

use super::Session;
use super::documents::first_package;
use super::requests::compute_all;
use crate::ide::context::Backend as _;
use crate::ide::fixes::meant;
use crate::image::api::symbols::{Complete, Completions};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;

/// The maximum number of different names of a text for which the image is queried.
const MAX_QUERIES: usize = 20;

impl Session {
    /// Returns, for each diagnostic of a text, the texts that are meant in place of the unknown
    /// name that it is about.
    pub async fn meant(&self, text: String, path: &Path, items: Vec<Diagnostic>) -> Vec<Vec<String>> {
        let first = first_package(Some(path));
        let (document, questions, asked) = compute_all(move || {
            let document = Document::new(&text, 0);
            // The index of each diagnostic's question.
            let (mut questions, mut asked): (Vec<Complete>, Vec<_>) = Default::default();
            for item in items {
                let question = meant::question(&document, &item, first);
                let index = question.and_then(|question| {
                    let known = questions.iter().position(|other| *other == question);
                    known.or_else(|| {
                        (questions.len() < MAX_QUERIES).then(|| {
                            questions.push(question);
                            questions.len() - 1
                        })
                    })
                });
                asked.push((item, index));
            }
            (document, questions, asked)
        })
        .await;
        let mut answers: Vec<Completions> = Vec::new();
        for question in questions {
            // Without an image that answers, only the names of the text are known.
            let Ok(answer) = self.query(question).await else { break };
            answers.push(answer);
        }
        compute_all(move || {
            let names = |(item, index): &(Diagnostic, Option<usize>)| match index {
                Some(index) => {
                    let known = answers.get(*index).map(|answer| answer.items.as_slice());
                    meant::names(&document, item, known.unwrap_or_default())
                }
                None => Vec::new(),
            };
            asked.iter().map(names).collect()
        })
        .await
    }
}
