//! Where the log goes: standard error for what a person runs, a file for a host in the background.

use std::io;
use std::sync::Arc;

use consort::host::log::Log;
use tracing_subscriber::EnvFilter;

/// CONSORT_LOG, then RUST_LOG, then `default`.
fn filter(default: &str) -> EnvFilter {
    let wanted = ["CONSORT_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    wanted.and_then(|wanted| EnvFilter::try_new(wanted).ok()).unwrap_or_else(|| EnvFilter::new(default))
}

/// Log warnings to standard error.
pub(crate) fn to_stderr() {
    to_stderr_from("warn");
}

/// Log to standard error, from `default` on.
pub(crate) fn to_stderr_from(default: &str) {
    let colour = super::output::colour(&io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter(default)).with_writer(io::stderr).with_ansi(colour).init();
}

/// Log to a file, panics too.
pub(crate) fn to_file(log: Log) {
    let log = Arc::new(log);
    tracing_subscriber::fmt()
        .with_env_filter(filter("info"))
        .with_writer(move || LogWriter(log.clone()))
        .with_ansi(false)
        .init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

struct LogWriter(Arc<Log>);

impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        (&*self.0).write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
