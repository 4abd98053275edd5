//! Definitions that the image keeps from evaluations although the files of a loaded system have
//! other ones. They are kept because a reload does not load unchanged files again.

use std::collections::HashSet;
use std::path::Path;

use super::requests::compute_all;
use super::{Provenance, Session};
use crate::bounded_file;
use crate::image::api::package_contents::{Homes, SystemFiles};
use crate::model::image::ImageError;
use crate::shown::{first_names, line};
use crate::text::decode;
use crate::text::recorded_definitions::{Definition, definitions};

/// The package of a text that names none.
const PACKAGE: &str = "COMMON-LISP-USER";
/// The maximum number of symbols in one query for home packages.
const MAX_SYMBOLS: usize = 500;
/// The number of bytes of sources after which no further file is compared.
const MAX_BYTES: usize = 16 << 20;
/// The number of definitions after which no further file is compared.
const MAX_FOUND: usize = 50;
/// The maximum number of definitions that are named.
const MAX_NAMED: usize = 12;

impl Session {
    /// Returns the definitions of a loaded system's files that the image has from an evaluation
    /// with another text, such as `SHOP::DISCOUNT (src/shop.lisp:12, claude 1)`. Returns none if
    /// the image does not answer.
    pub async fn kept_from_evaluations(&self, system: &str) -> Vec<String> {
        let names = self.inner.provenance.evaluated_names();
        if names.is_empty() {
            return Vec::new();
        }
        let known = match self.query_when_ready(SystemFiles { system: system.to_lowercase() }).await {
            Ok(known) => known.files,
            Err(error) => {
                tracing::debug!(%error, system, "the files of a loaded system are not known");
                return Vec::new();
            }
        };
        let workspace = self.real_workspace().await;
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for file in known {
            // A file that cannot be read defines nothing.
            let Ok(text) = bounded_file::read_blocking(file.clone(), bounded_file::SOURCE_LIMIT).await else {
                continue;
            };
            bytes += text.len();
            let found = definitions_named(text, names.clone()).await;
            if !found.is_empty() {
                let real = tokio::fs::canonicalize(&file).await.unwrap_or(file);
                match self.kept_of(found, real.strip_prefix(&workspace).unwrap_or(&real)).await {
                    Ok(some) => kept.extend(some),
                    Err(error) => {
                        tracing::warn!(%error, system, "definitions from evaluations are named in part only");
                        break;
                    }
                }
            }
            if kept.len() >= MAX_FOUND || bytes >= MAX_BYTES {
                break;
            }
        }
        kept
    }

    /// Acts as [`Session::kept_from_evaluations`] after a reload of a system. Returns none after
    /// another reload.
    pub async fn kept_after_reload(&self, system: Option<&str>) -> Vec<String> {
        match system {
            Some(system) => self.kept_from_evaluations(system).await,
            None => Vec::new(),
        }
    }

    async fn kept_of(&self, found: Vec<Definition>, file: &Path) -> Result<Vec<String>, ImageError> {
        let package = |one: &Definition| one.package.clone().unwrap_or_else(|| PACKAGE.into());
        let mut kept = Vec::new();
        for some in found.chunks(MAX_SYMBOLS) {
            let symbols = some.iter().map(|one| (package(one), one.name.clone())).collect();
            let homes = self.query_when_ready(Homes { symbols }).await?;
            for (one, home) in some.iter().zip(homes.homes) {
                let Some((package, name)) = home.filter(|_| one.is_read(&homes.features)) else { continue };
                let made = self.provenance(&package, &name);
                if let Some(made) = evaluated(one, &found, &made) {
                    let place = format!("{}:{}", file.display(), one.line);
                    let name = line(&format!("{package}::{name}"));
                    kept.push(format!("{name} ({}, {})", line(&place), made.by));
                }
            }
        }
        kept.dedup();
        Ok(kept)
    }
}

/// Returns the definitions with these names in the text of a file.
async fn definitions_named(bytes: Vec<u8>, names: HashSet<String>) -> Vec<Definition> {
    compute_all(move || {
        let mut found = definitions(&decode(bytes));
        found.retain(|one| names.contains(&one.name));
        found
    })
    .await
}

/// Returns the evaluation that made the image's definition, unless the file has a definition with
/// the same text. `found` are the definitions of the file, which may have several of one name.
fn evaluated<'a>(one: &Definition, found: &[Definition], made: &'a [Provenance]) -> Option<&'a Provenance> {
    let method = one.method_in(PACKAGE);
    let newest = made.iter().find(|made| made.kind == one.kind && made.method == method)?;
    let is_of_file = newest.system.is_some()
        || newest.digest == 0
        || found.iter().any(|other| other.name == one.name && other.digest == newest.digest);
    (!is_of_file).then_some(newest)
}

/// Returns a sentence that names definitions of unchanged files that were not loaded again, or
/// `None` if there are no such definitions.
pub fn not_of_the_files(kept: &[String]) -> Option<String> {
    (!kept.is_empty()).then(|| {
        let names = first_names(kept, MAX_NAMED);
        format!(
            "Unchanged files were not loaded again, and the image has other definitions than these files, from \
             evaluations: {names}. To have those of the files, reload all of the system (`force`)."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Frontend;

    fn made(text: &str, system: Option<&str>) -> Provenance {
        let one = definitions(text).pop().expect("a definition");
        Provenance {
            kind: one.kind.clone(),
            method: one.method_in(PACKAGE),
            by: "agent".into(),
            frontend: Frontend::Mcp,
            at: String::new(),
            time: std::time::SystemTime::UNIX_EPOCH,
            how: "evaluate-lisp".into(),
            system: system.map(str::to_owned),
            text: one.text,
            digest: one.digest,
            file: None,
            real: None,
            line: None,
        }
    }

    #[test]
    fn the_newest_definition_counts_when_its_text_is_none_of_the_file() {
        let found = definitions("(defun f () 1) (defmethod m ((x a)) 1) (defun f () 2)");
        let is_kept = |one: usize, made: &[Provenance]| evaluated(&found[one], &found, made).is_some();
        assert!(is_kept(0, &[made("(defun f () 3)", None)]));
        assert!(!is_kept(0, &[made("(defun f () 3)", Some("shop"))]));
        assert!(!is_kept(0, &[made("(defun f ()\n 2)", None)]));
        assert!(!is_kept(0, &[]));
        assert!(!is_kept(0, &[made("(defmacro f () 3)", None)]));
        assert!(!is_kept(1, &[made("(defmethod m :after ((x a)) 1)", None)]));
        assert!(is_kept(1, &[made("(defmethod m ((x a)) 2)", None)]));
        assert_eq!(not_of_the_files(&[]), None);
        let many: Vec<String> = (0..50).map(|number| format!("P::F{number} (a.lisp:1, agent)")).collect();
        let told = not_of_the_files(&many).unwrap_or_default();
        assert!(told.contains("P::F11 (a.lisp:1, agent) and 38 more."), "{told}");
    }
}
