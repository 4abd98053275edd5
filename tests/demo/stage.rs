//! The output of the demo in a terminal.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use consort_tests::place::Place;
use serde_json::Value;

/// Prints, in colour on a terminal.
pub(crate) struct Stage {
    colour: bool,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage { colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn title(&self, text: &str) {
        println!("\n{}", self.paint("1;36", &format!("━━ {text}")));
    }

    pub(crate) fn note(&self, text: &str) {
        println!("{}", self.paint("2", &format!("   {}", text.replace('\n', "\n   "))));
    }

    /// Run `consort ARGS` for the audience; its exit code.
    pub(crate) fn run(&self, place: &Place, args: &[&str]) -> Result<Option<i32>> {
        println!("\n{}\n", self.paint("1", &format!("$ consort {}", args.join(" "))));
        let status = place.command(args).status().context("cannot run consort")?;
        Ok(status.code())
    }

    /// A client does something.
    pub(crate) fn says(&self, who: &str, what: &str) {
        let style = if who == "agent" { "1;35" } else { "1;34" };
        println!("\n{} {}", self.paint(style, &format!("{who:>6} ▸")), what.replace('\n', "\n         "));
    }

    /// An answer.
    pub(crate) fn answers(&self, what: &str) {
        println!("         {}", self.paint("32", &what.replace('\n', "\n         ")));
    }

    /// Diagnostics, as an editor has them: 0-based.
    pub(crate) fn diagnostics(&self, items: &[Value]) {
        for item in items {
            let start = &item["range"]["start"];
            let message = item["message"].as_str().unwrap_or_default();
            println!("         {}", self.paint("33", &format!("{}:{}: {message}", start["line"], start["character"])));
        }
        if items.is_empty() {
            self.answers("no diagnostics");
        }
    }
}
