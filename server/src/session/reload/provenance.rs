//! The provenance of definitions that a reload has made, for the record.

use std::path::{Path, PathBuf};

use super::super::provenance::{MadeBy, ProvenanceEntry};
use super::super::{ClientId, Session, log};
use super::{Reload, home_of};
use crate::image::api::Origin;
use crate::image::api::reload::{CompileString, ReloadOutcome};

/// The part of a reload from which the provenance of its definitions is recorded.
pub(super) enum ProvenanceSource {
    /// Only the report.
    Reported,
    Texts(Vec<ReloadedText>),
    Files,
    System(String),
    Undone,
}

/// A text that was loaded.
pub(super) struct ReloadedText {
    code: String,
    package: String,
    origin: Option<Origin>,
}

impl ProvenanceSource {
    pub(super) fn of(reload: &Reload, workspace: &Path) -> ProvenanceSource {
        let text = |code: &str, package: Option<String>, file: Option<&PathBuf>, line: usize| ReloadedText {
            code: code.to_owned(),
            package: package.unwrap_or_else(|| "COMMON-LISP-USER".to_owned()),
            origin: file.map(|file| Origin { file: workspace.join(file), line, column: 1 }),
        };
        match reload {
            Reload::Code { code, package, file, line, .. } => {
                ProvenanceSource::Texts(vec![text(code, package.clone(), file.as_ref(), *line)])
            }
            Reload::Texts { texts, .. } => {
                let one = |one: &CompileString| text(&one.code, one.package.clone(), one.file.as_ref(), one.line);
                ProvenanceSource::Texts(texts.iter().map(one).collect())
            }
            Reload::Function { function, code, package, file, line } => {
                let package = package.clone().or_else(|| home_of(function));
                ProvenanceSource::Texts(vec![text(code, package, file.as_ref(), *line)])
            }
            Reload::Fasl { .. } => ProvenanceSource::Reported,
            Reload::Package { .. } => ProvenanceSource::Files,
            Reload::System { system, .. } => ProvenanceSource::System(system.clone()),
            Reload::Undefine(_) | Reload::Undo => ProvenanceSource::Undone,
        }
    }
}

impl Session {
    /// Records the provenance of the reloaded definitions.
    pub(super) async fn record_provenance(&self, client: ClientId, made: ProvenanceSource, outcome: &ReloadOutcome) {
        let (image, provenance, who) = (&self.inner.image, &self.inner.provenance, self.maker(client));
        let how = log::current().map_or_else(|| "a reload".to_owned(), |doing| doing.tool.clone());
        let until = std::time::SystemTime::now();
        let report = outcome.report.clone().unwrap_or_default();
        let files = || report.files.iter().map(PathBuf::from).collect();
        match made {
            ProvenanceSource::Reported => {
                let made: Vec<String> = report.redefined.iter().chain(&report.new).cloned().collect();
                provenance.reported(&made, &[], &how, &who);
            }
            ProvenanceSource::Texts(texts) => {
                for ReloadedText { code, package, origin } in texts {
                    let (client, made_by) = (who.clone(), MadeBy::Operation(how.clone()));
                    let entry = ProvenanceEntry { client, made_by, package, origin, file: None };
                    provenance.record_text(image, &code, entry).await;
                }
            }
            ProvenanceSource::Files => provenance.files(image, files(), &MadeBy::Operation(how), who, until).await,
            ProvenanceSource::System(system) => {
                provenance.files(image, files(), &MadeBy::System(system), who, until).await
            }
            ProvenanceSource::Undone => {
                let back: Vec<String> = report.redefined.iter().chain(&report.new).cloned().collect();
                provenance.reported(&back, &report.gone, &how, &who);
            }
        }
    }
}
