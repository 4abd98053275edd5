//! The destination of the log: standard error for commands in a terminal, a file for a host in
//! the background.

use std::io;
use std::sync::Arc;

use consort::host::log::Log;
use tracing_subscriber::EnvFilter;

/// The log filter: CONSORT_LOG, then RUST_LOG, then `default`.
fn filter(default: &str) -> EnvFilter {
    let wanted = ["CONSORT_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    wanted.and_then(|wanted| EnvFilter::try_new(wanted).ok()).unwrap_or_else(|| EnvFilter::new(default))
}

/// Logs warnings to standard error.
pub(crate) fn to_stderr() {
    to_stderr_from("warn");
}

/// Logs to standard error, with the default filter `default`.
pub(crate) fn to_stderr_from(default: &str) {
    let colour = super::output::colour(&io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter(default)).with_writer(io::stderr).with_ansi(colour).init();
}

/// Logs to a file, panics included.
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
