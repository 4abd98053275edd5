//! The binding of an approval to its arguments, by their digest, and to its file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::bound_file::BoundFile;
use super::types::{ApprovalRequest, BoundRequest, Grant};
use crate::config::approval::Class;
use crate::fault::{self, Call};
use crate::session::outside_workspace;

/// The limit of arguments that a person can review, in characters.
const READABLE: usize = 100_000;
/// The limit of arguments in the audit log, in characters; the digest covers all.
const WRITTEN: usize = 4_000;

impl BoundRequest {
    /// Resolves the request's file now; this is the file shown to a person.
    pub(in crate::session) fn new(wish: ApprovalRequest, workspace: &Path) -> BoundRequest {
        let arguments = wish.arguments.to_string();
        let written = (arguments.chars().take(WRITTEN).collect(), arguments.chars().count());
        let digest = digest(wish.tool, wish.class, &arguments);
        let file = wish.subject.file.as_deref().map(|file| BoundFile::of(workspace, file));
        let (file, mut impossible) = match file.transpose() {
            Ok(file) => (file, None),
            Err(why) => (None, Some(why)),
        };
        if let Some(outside) = file.as_ref().filter(|file| wish.class == Class::EditFile && !file.is_within(workspace))
        {
            let why = outside_workspace::message(&outside.named, &outside.path, workspace);
            impossible = Some(format!("{why} It cannot be written"));
        }
        BoundRequest { wish, digest, written, file, impossible }
    }

    /// Returns the reason why no person can be asked: the request is too long to read.
    pub(in crate::session) fn unreadable(&self) -> Option<String> {
        let characters = self.written.1;
        let why = "its arguments have {n} characters, which nobody can judge; send at most {most}, or save the code to a file and load that";
        (characters > READABLE)
            .then(|| why.replace("{n}", &characters.to_string()).replace("{most}", &READABLE.to_string()))
    }

    /// Returns the permission. `decided`: by a person, and not by a rule.
    pub(in crate::session) fn permit(self: Box<Self>, decided: bool) -> Grant {
        Grant { bound: Arc::from(self), decided }
    }
}

/// Returns the SHA-256, in hex, of the tool, the class and the arguments, with keys in order
/// (`serde_json`'s maps are ordered).
fn digest(tool: &str, class: Class, arguments: &str) -> String {
    let mut hash = Sha256::new();
    for part in [tool, class.key(), arguments] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns 128 random bits, in hex.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    fault::point(Call::Open)?;
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
