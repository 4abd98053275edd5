//! The place of the corpus, and its systems.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Packages and their systems: `scripts/corpus` fetches the packages.
const SYSTEMS: &str = include_str!("systems");

/// The directory into which `scripts/corpus` unpacked the packages.
pub(crate) struct Corpus {
    directory: PathBuf,
}

impl Corpus {
    /// The one that `CONSORT_CORPUS` names.
    ///
    /// # Errors
    /// The variable is not set, or there are no sources.
    pub(crate) fn new() -> Result<Corpus> {
        let directory: PathBuf =
            std::env::var_os("CONSORT_CORPUS").context("CONSORT_CORPUS is not set: run `make corpus`")?.into();
        let corpus = Corpus { directory: directory.canonicalize()? };
        ensure!(corpus.sources().is_dir(), "{} is missing", corpus.sources().display());
        Ok(corpus)
    }

    fn sources(&self) -> PathBuf {
        self.directory.join("root/usr/share/common-lisp/source")
    }

    /// Has ASDF in what `command` starts find the corpus and nothing else, and keep what it
    /// compiles with it. A newer ASDF in the registry is left out: plain ASDF would compile itself
    /// first, and then each system twice.
    pub(crate) fn environment(&self, command: &mut Command) {
        let registry = format!(
            "(:source-registry (:exclude \"cl-asdf\") (:tree \"{}/\") :ignore-inherited-configuration)",
            self.sources().display()
        );
        command
            .env("CL_SOURCE_REGISTRY", registry)
            .env("ASDF_OUTPUT_TRANSLATIONS", translations(&self.directory.join("fasls")))
            .env("LC_ALL", "C.UTF-8");
    }

    /// The definition of a system: that of its name in any directory of the sources.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn definition(&self, system: &str) -> Result<PathBuf> {
        for entry in std::fs::read_dir(self.sources())?.flatten() {
            let file = entry.path().join(format!("{system}.asd"));
            if file.is_file() {
                return Ok(file.canonicalize()?);
            }
        }
        anyhow::bail!("no {system}.asd below {}", self.sources().display())
    }
}

fn translations(fasls: &std::path::Path) -> String {
    format!("(:output-translations (t (\"{}/\" :implementation)) :ignore-inherited-configuration)", fasls.display())
}

/// The systems' names, in order.
pub(crate) fn systems() -> Vec<&'static str> {
    SYSTEMS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split_whitespace().skip(1)).collect()
}
