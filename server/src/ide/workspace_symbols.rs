//! Symbols by a part of their names: the definitions in open texts and in the image.

use super::context::{Backend, Context};
use super::partial_name::fits;
use super::places::{self, Defined};
use crate::image::api::symbols::{Apropos, Known};
use crate::text::definitions;

/// The maximum number of symbols in an answer.
const LIMIT: usize = 200;

/// Returns the definitions of names that match `query`. An empty query returns the definitions in
/// open texts.
pub async fn symbols<B: Backend>(context: &Context<B>, query: &str) -> Vec<Defined> {
    let query = query.trim().to_lowercase();
    let mut texts = context.texts().await;
    let mut found: Vec<Defined> = Vec::new();
    for text in texts.known() {
        for one in definitions::all(&text.document) {
            let name = one.key.trim_start_matches("(setf ").trim_end_matches(')');
            if name.contains(&query) || fits(&query, name) {
                found.push(Defined {
                    kind: definitions::kind_of(&one.operator).to_owned(),
                    name: one.written.clone(),
                    text: Some(text.clone()),
                    file: text.path.clone(),
                    place: Some(definitions::Place { form: one.span, name: one.name }),
                });
            }
        }
    }
    if !query.is_empty() {
        let question =
            Apropos { pattern: query, package: None, external: false, system: false, limit: LIMIT, definitions: true };
        if let Ok(answer) = context.query(question).await {
            for symbol in answer.symbols.into_iter().filter(|symbol| symbol.package != "COMMON-LISP") {
                let known =
                    Known { definitions: symbol.definitions, features: answer.features.clone(), ..Known::default() };
                for mut one in places::defined(&known, &mut texts).await {
                    one.name = one.name.rsplit(':').next().unwrap_or(&one.name).to_owned();
                    found.push(one);
                }
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| seen.insert((one.file.clone(), one.place.map(|place| place.name))));
    found.truncate(LIMIT);
    found
}
