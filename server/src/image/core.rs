//! The cache of the files from which the image starts: a core saved by the user's own SBCL, or a
//! fasl when `lisp.command` wraps SBCL in another program.
//!
//! An entry is built once for a program (its file, modification time, size and arguments), the
//! variables SBCL_HOME and SBCL_CORE, the embedded Lisp code and this version. The key is computed
//! without starting the program.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use include_dir::{Dir, include_dir};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

use super::build::{self, build};
use super::probe::version;
use super::program::Program;
use crate::fault::{self, Call};

/// The Lisp sources, embedded when this binary was built (server/build.rs makes Cargo watch them).
static LISP: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/lisp");

/// The age after its last use at which an entry is removed.
const MAX_UNUSED_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The reason why there is no file from which the image can start.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CoreError {
    /// The cache directory cannot be used.
    #[error("The cache directory {directory} cannot be used: {error}. {step}")]
    Cache {
        /// The directory.
        directory: String,
        /// The error.
        error: String,
        /// The next step, a sentence.
        step: &'static str,
    },
    /// The program does not behave like SBCL.
    #[error("{question} {how}.\nSet `lisp.command` to a program that runs SBCL, and restart the image.")]
    Program {
        /// The command line of the version query.
        question: String,
        /// The outcome.
        how: String,
    },
    /// SBCL did not build the file.
    #[error("{program} could not build the image: it {how}.\n{last}")]
    Build {
        /// The program.
        program: String,
        /// The way in which the build process ended.
        how: String,
        /// The last lines that it printed.
        last: String,
    },
}

/// The file from which the image starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// A core, for `--core` of the plain executable.
    Core(PathBuf),
    /// A fasl, for `--load` by any command that runs SBCL.
    Fasl(PathBuf),
}

impl Start {
    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Start::Core(path) | Start::Fasl(path) => path,
        }
    }
}

/// The cache directory.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Returns `$XDG_CACHE_HOME/consort`, or the platform's cache directory.
    pub(crate) fn default_directory() -> PathBuf {
        let configured = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let own = directories::ProjectDirs::from("", "", "consort").map(|project| project.cache_dir().to_owned());
        match (configured, own.filter(|own| own.is_absolute())) {
            (Some(base), _) => base.join("consort"),
            (None, Some(own)) => own,
            (None, None) => std::env::temp_dir().join("consort-cache"),
        }
    }

    /// Returns the cache in `directory`, which is created by the first build.
    pub(crate) fn new(directory: PathBuf) -> Cache {
        Cache { directory }
    }

    /// Returns the path of the entry for `program`, present or not.
    pub(crate) fn entry(&self, program: &Program) -> Start {
        let mut hash = Sha256::new();
        hash.update(env!("CARGO_PKG_VERSION"));
        hash.update([0]);
        hash.update(&program.identity);
        for variable in ["SBCL_HOME", "SBCL_CORE"] {
            hash.update([0]);
            hash.update(std::env::var_os(variable).unwrap_or_default().as_encoded_bytes());
        }
        hash_sources(&LISP, &mut hash);
        let key: String = hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        if program.plain {
            Start::Core(self.directory.join(format!("image-{key}.core")))
        } else {
            Start::Fasl(self.directory.join(format!("image-{key}.fasl")))
        }
    }

    /// Returns the entry if it is present, and marks it as used.
    pub(crate) fn lookup(&self, program: &Program) -> Option<Start> {
        let entry = self.entry(program);
        let path = entry.path();
        if let Err(error) = check_directory(&self.directory).and_then(|facts| check_ours(&facts, &self.directory)) {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, "what is cached is not used");
            }
            return None;
        }
        let file = fault::point(Call::Open)
            .and_then(|()| File::options().write(true).custom_flags(NOFOLLOW).open(path))
            .ok()?;
        let facts = file.metadata().ok()?;
        if let Err(error) = check_ours(&facts, path) {
            tracing::warn!(%error, "what is cached is built again");
            return None;
        }
        if facts.mode() & 0o077 != 0
            && let Err(error) = file.set_permissions(fs::Permissions::from_mode(0o600))
        {
            tracing::warn!(%error, "what is cached stays open to others");
        }
        if let Err(error) = file.set_modified(SystemTime::now()) {
            tracing::debug!(%error, "marking the core as used");
        }
        Some(entry)
    }

    /// Removes an entry that does not start.
    pub(crate) fn discard(&self, entry: &Start) {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "removing a core that does not start");
        }
    }

    /// Builds the entry, unless another host has done so in the meantime. `say` receives the
    /// progress. Dropping the future ends the build.
    pub(crate) async fn build(
        &self,
        program: &Program,
        workspace: &Path,
        say: impl FnMut(&str),
    ) -> Result<Start, CoreError> {
        let cannot = |error: io::Error| CoreError::Cache {
            directory: self.directory.display().to_string(),
            error: error.to_string(),
            step: crate::limits::step(&error).unwrap_or("Make it writable, or set XDG_CACHE_HOME to another one."),
        };
        make_private(&self.directory).map_err(cannot)?;
        let _alone = self.exclusive().await.map_err(cannot)?;
        if let Some(built) = self.lookup(program) {
            return Ok(built);
        }
        ask_version(program, workspace).await?;
        let entry = self.entry(program);
        let scratch = tempfile::Builder::new().prefix("build-").tempdir_in(&self.directory).map_err(cannot)?;
        let sources = scratch.path().join("lisp");
        extract(&LISP, &sources).map_err(cannot)?;
        let output = scratch.path().join(entry.path().file_name().unwrap_or_default());
        let built = build(program, workspace, &sources.join("boot.lisp"), &output, say).await;
        let name = || program.path.display().to_string();
        built.map_err(|build::Failed { how, last }| CoreError::Build { program: name(), how, last })?;
        // The mode does not depend on the umask: if others could write the file, another user could
        // load code into an image that starts from it.
        fs::set_permissions(&output, fs::Permissions::from_mode(0o600)).map_err(cannot)?;
        fs::rename(&output, entry.path()).map_err(cannot)?;
        Ok(entry)
    }

    /// Takes the lock that hosts share. Waits while another host builds.
    async fn exclusive(&self) -> io::Result<File> {
        fault::point(Call::Open)?;
        let file =
            File::options().create(true).truncate(false).write(true).mode(0o600).open(self.directory.join("lock"))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                // There is no asynchronous flock, and a blocked thread could not be cancelled.
                Err(rustix::io::Errno::WOULDBLOCK) => crate::steady::sleep(Duration::from_millis(50)).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Removes entries that have not been used for [`MAX_UNUSED_AGE`], except `used`, and the files
    /// left by interrupted builds.
    pub(crate) fn remove_stale(&self, used: &Start) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let limit = match () {
                () if name.starts_with("image-") && entry.path() != used.path() => MAX_UNUSED_AGE,
                () if name.starts_with("build-") => 4 * build::BUILD_TIMEOUT,
                () => continue,
            };
            let age =
                entry.metadata().and_then(|facts| facts.modified()).map(|time| time.elapsed().unwrap_or_default());
            if age.is_ok_and(|age| age > limit) {
                let path = entry.path();
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                tracing::info!(path = %path.display(), ?removed, "removed a stale entry of the cache");
            }
        }
    }
}

/// The flag of `open` not to follow a symbolic link.
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Creates the directory and its parents with mode 0700. An existing directory must belong to this
/// user. The mode becomes 0700 if others have access.
fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if check_directory(directory)?.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Returns the metadata of a directory, having checked that it and the link to it belong to this
/// user.
fn check_directory(directory: &Path) -> io::Result<fs::Metadata> {
    let (link, facts) = (fs::symlink_metadata(directory)?, fs::metadata(directory)?);
    let ours = rustix::process::geteuid().as_raw();
    if link.uid() != ours || facts.uid() != ours {
        let message = format!("{} belongs to another user; remove it", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(facts)
}

/// Checks that a file or directory belongs to this user and cannot be written by others.
fn check_ours(facts: &fs::Metadata, path: &Path) -> io::Result<()> {
    let fault = if facts.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if facts.mode() & 0o022 != 0 {
        "can be written by other users"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {fault}; remove it", path.display())))
}

/// Hashes all sources except the tests, in the order of names.
fn hash_sources(directory: &Dir<'_>, hash: &mut Sha256) {
    for file in directory.files() {
        hash.update([0]);
        hash.update(file.path().as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update((file.contents().len() as u64).to_le_bytes());
        hash.update(file.contents());
    }
    for child in directory.dirs().filter(|child| !is_tests(child)) {
        hash_sources(child, hash);
    }
}

fn extract(directory: &Dir<'_>, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for file in directory.files() {
        if let Some(name) = file.path().file_name() {
            fs::write(target.join(name), file.contents())?;
        }
    }
    for child in directory.dirs().filter(|child| !is_tests(child)) {
        if let Some(name) = child.path().file_name() {
            extract(child, &target.join(name))?;
        }
    }
    Ok(())
}

fn is_tests(directory: &Dir<'_>) -> bool {
    directory.path() == Path::new("tests")
}

/// Checks that the program answers the version query of [`probe`](super::probe). Any answer is
/// accepted, since a wrapper may not know `--version`.
async fn ask_version(program: &Program, workspace: &Path) -> Result<(), CoreError> {
    let (asked, directory) = (program.clone(), workspace.to_owned());
    let asked = move || version(&asked.path, &asked.arguments, &directory);
    let answer = tokio::task::spawn_blocking(asked).await.unwrap_or_else(|error| Err(error.to_string()));
    let question = || {
        format!(
            "`{}`",
            [&[program.path.display().to_string()], program.arguments.as_slice(), &["--version".into()]]
                .concat()
                .join(" ")
        )
    };
    answer.map(drop).map_err(|how| CoreError::Program { question: question(), how })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program { path: "/x/sbcl".into(), arguments: Vec::new(), plain: true, identity: "x".into() }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_could_have_written_is_not_started_from() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("deep/consort"));
        make_private(&cache.directory).unwrap();
        assert_eq!(mode(&cache.directory), 0o700);
        let entry = cache.entry(&program());
        fs::write(entry.path(), "core").unwrap();
        for (of_file, of_directory, used) in
            [(0o600, 0o700, true), (0o644, 0o755, true), (0o664, 0o700, false), (0o600, 0o777, false)]
        {
            set(entry.path(), of_file);
            set(&cache.directory, of_directory);
            assert_eq!(cache.lookup(&program()).is_some(), used, "{of_file:o} {of_directory:o}");
        }
        make_private(&cache.directory).unwrap();
        assert_eq!(mode(&cache.directory), 0o700, "it is ours, and closed again");
        assert!(cache.lookup(&program()).is_some());
        set(entry.path(), 0o644);
        assert!(cache.lookup(&program()).is_some());
        assert_eq!(mode(entry.path()), 0o600);
        fs::rename(entry.path(), dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), entry.path()).unwrap();
        assert!(cache.lookup(&program()).is_none(), "a link");
        if rustix::process::geteuid().is_root() {
            fs::remove_file(entry.path()).unwrap();
            fs::write(entry.path(), "core").unwrap();
            let stranger = Some(rustix::fs::Uid::from_raw(4242));
            rustix::fs::chown(entry.path(), stranger, None).unwrap();
            assert!(cache.lookup(&program()).is_none());
            rustix::fs::chown(&cache.directory, stranger, None).unwrap();
            assert!(make_private(&cache.directory).unwrap_err().to_string().contains("another user"));
        }
    }
}
