//! Approval: what an agent may do only when a person lets it (contracts: Approval).

use std::path::PathBuf;

use super::{ClientId, Session};

/// What a person sets to `allow`, `ask` or `deny`, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Run code in the image. Allowed unless a person says otherwise; the others are asked.
    Eval,
    /// Compile a file, which writes one.
    CompileFile,
    /// Replace, load, reload or undo definitions.
    ModifyRunningCode,
    /// Write a file of the workspace.
    EditFile,
    /// End the image and what it holds.
    RestartImage,
}

/// What a person who is asked is shown, and what the approval is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// What is to be done, in a few words: "Replace the function CL-PPCRE:SCAN".
    pub what: String,
    /// The file concerned.
    pub file: Option<PathBuf>,
    /// The code concerned, whole.
    pub code: Option<String>,
}

impl Session {
    /// Whether `client` may do this with exactly these arguments; asks a person if need be.
    ///
    /// # Errors
    /// Why not, and how a person can allow it.
    pub async fn permit(
        &self,
        _client: ClientId,
        _class: Class,
        _tool: &str,
        _subject: Subject,
        _arguments: &serde_json::Value,
    ) -> Result<(), String> {
        Ok(())
    }
}
