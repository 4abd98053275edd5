//! The help of the command line, with texts that stay on one line at any width: a command, a quoted
//! text, and the last words of a paragraph.

use clap::{Arg, Command};

/// A placeholder, until the help is printed, for a space at which a line is not broken.
const FIXED_SPACE: char = '\u{a0}';
/// The maximum length of a last word that must not be on a line of its own.
const MAX_SHORT_WORD_CHARS: usize = 12;

/// Returns the command, with its help and that of its subcommands prepared for [`printed`].
pub(super) fn prepared(command: Command) -> Command {
    let about = command.get_about().map(|text| with_fixed_spaces(&text.to_string()));
    let after = command.get_after_help().map(|text| with_fixed_spaces(&text.to_string()));
    let mut command = command.mut_args(argument).mut_subcommands(prepared);
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(after) = after {
        command = command.after_help(after);
    }
    command
}

/// Returns help as it is printed.
pub(super) fn printed(text: &str) -> String {
    text.replace(FIXED_SPACE, " ")
}

fn argument(argument: Arg) -> Arg {
    let help = argument.get_help().map(|text| with_fixed_spaces(&text.to_string()));
    match help {
        Some(help) => argument.help(help),
        None => argument,
    }
}

fn with_fixed_spaces(text: &str) -> String {
    text.split('\n').map(with_fixed_spaces_in_line).collect::<Vec<String>>().join("\n")
}

/// Replaces the spaces of a help line at which the line must not be broken.
fn with_fixed_spaces_in_line(text: &str) -> String {
    let space = FIXED_SPACE.to_string();
    let code = text.trim_start_matches(' ');
    if code.len() < text.len() {
        return format!("{}{}", &text[..text.len() - code.len()], code.replace(' ', &space));
    }
    // Every second part is between backquotes.
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| if index % 2 == 1 { part.replace(' ', &space) } else { part.to_owned() });
    let text = parts.collect::<Vec<String>>().join("`");
    match text.rsplit_once(' ') {
        Some((before, last)) if last.chars().count() <= MAX_SHORT_WORD_CHARS => format!("{before}{space}{last}"),
        _ => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::CommandFactory;

    use super::super::Cli;
    use super::*;

    /// Returns the help of each command at a width.
    fn all(width: usize) -> Vec<String> {
        let mut command = prepared(Cli::command()).term_width(width);
        let help = command.render_help().to_string();
        let mut all = vec![help];
        command.build();
        for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
            all.push(one.clone().term_width(width).render_help().to_string());
        }
        all.iter().map(|help| printed(help)).collect()
    }

    /// Returns the lines of code in the help.
    fn code() -> Vec<String> {
        let mut command = Cli::command();
        command.build();
        let after = |one: &Command| one.get_after_help().map(ToString::to_string).unwrap_or_default();
        let texts: Vec<String> = std::iter::once(&command).chain(command.get_subcommands()).map(after).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        lines.filter(|line| line.starts_with(' ')).map(str::to_owned).collect()
    }

    fn indent(line: &str) -> usize {
        line.len() - line.trim_start().len()
    }

    #[test]
    fn no_paragraph_ends_with_a_short_word_alone() {
        let code = code();
        for width in 40..=120 {
            for help in all(width) {
                let lines: Vec<&str> = help.lines().collect();
                for pair in lines.windows(2) {
                    let [before, line] = pair else { continue };
                    let word = line.trim();
                    // A paragraph begins after the name of an option or argument.
                    let begins = before.is_empty()
                        || indent(before) != indent(line) && before.trim_start().starts_with(['-', '<']);
                    // The line is code, or the name of an option or argument.
                    let is_name = word.starts_with(['-', '<', '[']);
                    let is_code = is_name || code.iter().any(|code| code == line);
                    let alone = !is_code
                        && !word.is_empty()
                        && !word.contains(' ')
                        && word.chars().count() <= MAX_SHORT_WORD_CHARS;
                    assert!(begins || !alone, "{width}: {before:?}, {line:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_quoted_and_what_is_code_is_not_broken() {
        let code = code();
        assert!(code.len() > 15);
        for width in [40, 61, 80, 100, 200] {
            let helps = all(width);
            for help in &helps {
                let broken = help.lines().find(|line| line.matches('`').count() % 2 == 1);
                assert_eq!(broken, None, "{width}");
            }
            for code in &code {
                assert!(helps.iter().any(|help| help.lines().any(|line| line == code)), "{width}: {code}");
            }
        }
    }
}
