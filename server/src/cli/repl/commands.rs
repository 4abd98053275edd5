//! Commands of the prompt: keywords that are of no use as Lisp code, and the numbers of restarts.

/// The meaning of a line that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Lisp code.
    Code,
    /// Lists the commands.
    Help,
    /// Leaves the program.
    Quit,
    /// Invokes the restart of this number. The forms that follow are its arguments.
    Restart(usize, String),
    /// Lists this many frames from the current one on, or a page of them.
    Frames(Option<usize>),
    /// Goes to the frame of this number, or shows the current one.
    Frame(Option<usize>),
    /// Goes to the caller.
    Up,
    /// Goes to the frame that was called.
    Down,
    /// Lists the variables of the current frame.
    Locals,
    /// Ends the evaluation; its report is shown.
    Abort,
    /// Goes on where the program stopped.
    Continue,
    /// Returns the values of a form from the current frame.
    Return(String),
    /// Calls the function of the current frame again.
    RestartFrame,
    /// Takes a step. The string is the command of the request: `stepIn`, `next` or `stepOut`.
    Step(&'static str),
}

/// The commands at every prompt.
const ALWAYS: &str = "  :help              this list
  :quit              leaves, as Ctrl-D does
  Tab, Ctrl-R        completes a name; searches the history
  Ctrl-C             interrupts an evaluation, or forgets what is typed
  *, **, ***         the last values; + and / as in the standard
";

/// The commands at a stop.
const STOPPED: &str = "  0, 1, 2 ...        invokes that restart; forms behind it are its arguments
  :frames [N]        lists frames from the current one on (:bt)
  :frame [N]         goes to frame N (:f), :up to its caller, :down back
  :locals            the variables of the frame (:l)
  FORM               is evaluated in the frame
  :return FORM       returns its values from the frame
  :restart-frame     calls the frame's function again, as it is now
  :continue          goes on, after a break or a breakpoint (:c)
  :step :next :out   steps into, over and out of forms
  :abort             ends the evaluation (:a, Ctrl-D)
";

/// Returns the text of `:help`, for a terminal of `width` columns.
pub(super) fn help(stopped: bool, width: usize) -> String {
    fitted(&if stopped { format!("{STOPPED}{ALWAYS}") } else { ALWAYS.to_owned() }, width)
}

/// Returns a table as it is if it fits the width. Otherwise puts each command on a line above its
/// description.
fn fitted(table: &str, width: usize) -> String {
    if table.lines().all(|line| line.chars().count() <= width) {
        return table.to_owned();
    }
    let mut shown = String::new();
    for line in table.lines() {
        let (name, about) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
        shown.extend(["  ", name]);
        let mut room = 0;
        for word in about.split_whitespace() {
            let length = word.chars().count() + 1;
            if room < length {
                shown.push_str("\n     ");
                room = width.saturating_sub(5);
            }
            shown.extend([" ", word]);
            room = room.saturating_sub(length);
        }
        shown.push('\n');
    }
    shown
}

/// The message before the program ends because of [`is_quit`].
pub(super) const IMAGE_KEEPS_RUNNING: &str =
    "; the image keeps running for editors and agents: `consort stop` ends it\n";

/// Returns true if a line is a call such as `(quit)`, which ends the Lisp process in other REPLs.
pub(super) fn is_quit(line: &str) -> bool {
    let call = line.trim().to_lowercase();
    let name = call.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).map(str::trim);
    name.is_some_and(|name| {
        let name =
            ["sb-ext:", "uiop:", "cl-user::"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        matches!(name, "quit" | "exit")
    })
}

/// The message before the evaluation of a line for which [`asks_for_help_or_exit`] is true.
pub(super) const HELP_AND_QUIT_HINT: &str = "; :help lists the commands, :quit leaves\n";

/// [`HELP_AND_QUIT_HINT`] for a line that is typed at a stop.
pub(super) const WORD_AT_STOP: &str = "; :help lists the commands, :abort ends the program, :quit then leaves\n";

/// Returns true if a line is a word with which newcomers ask for help or leave.
pub(super) fn asks_for_help_or_exit(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "help" | "quit" | "exit" | "bye" | "?")
}

/// The message after the value of a line for which [`looks_like_command`] is true.
pub(super) const HELP_HINT: &str = "; :help lists the commands\n";

/// Returns true if a line is a keyword alone. As code it is of no use, so a command may be meant.
pub(super) fn looks_like_command(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && line.starts_with(':') && line[1..].chars().all(|char| char.is_alphanumeric() || char == '-')
}

/// Parses a line that was typed. `stopped` is true if a program is stopped in the debugger.
///
/// # Errors
/// The message for the user, if a command is malformed or not possible now.
pub(super) fn parse(line: &str, stopped: bool) -> Result<Command, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (word, rest) = (word.to_lowercase(), rest.trim());
    if is_quit(line) {
        return Ok(Command::Quit);
    }
    match word.as_str() {
        ":help" | ":h" | ":?" if rest.is_empty() => return Ok(Command::Help),
        ":quit" | ":q" | ":exit" if rest.is_empty() => return Ok(Command::Quit),
        _ => {}
    }
    if !stopped {
        return match parse(line, true) {
            Ok(Command::Code | Command::Restart(..)) => Ok(Command::Code),
            _ if !word.starts_with(':') => Ok(Command::Code),
            _ => Err(format!("Nothing is stopped: {word} is for the debugger, which opens at an error.")),
        };
    }
    if !word.is_empty() && word.chars().all(|char| char.is_ascii_digit()) {
        let number = word.parse().map_err(|_| format!("There is no restart {word}."))?;
        return Ok(Command::Restart(number, rest.to_owned()));
    }
    let number = || match rest {
        "" => Ok(None),
        rest => rest.parse().map(Some).map_err(|_| format!("{word} takes the number of a frame, and not {rest}.")),
    };
    let command = match word.as_str() {
        ":frames" | ":backtrace" | ":bt" => Command::Frames(number()?),
        ":frame" | ":f" => Command::Frame(number()?),
        ":return" if rest.is_empty() => return Err(":return takes a form, whose values are returned.".into()),
        ":return" => Command::Return(rest.to_owned()),
        _ if !rest.is_empty() => Command::Code,
        ":up" | ":u" => Command::Up,
        ":down" | ":d" => Command::Down,
        ":locals" | ":l" => Command::Locals,
        ":abort" | ":a" => Command::Abort,
        ":continue" | ":c" => Command::Continue,
        ":restart-frame" => Command::RestartFrame,
        ":step" | ":s" => Command::Step("stepIn"),
        ":next" | ":n" => Command::Step("next"),
        ":out" | ":o" => Command::Step("stepOut"),
        _ => Command::Code,
    };
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_do_stands_in_one_column() {
        for line in help(true, 200).lines() {
            assert_eq!((line.get(..2), line.get(20..21)), (Some("  "), Some(" ")), "{line}");
            assert!(line.get(21..22).is_some_and(|begin| begin != " "), "{line}");
        }
    }

    #[test]
    fn digits_and_keywords_are_commands_at_a_stop_only() {
        for (line, command) in [
            ("0", Command::Restart(0, String::new())),
            (" 12 (list 1) :a ", Command::Restart(12, "(list 1) :a".into())),
            (":bt 3", Command::Frames(Some(3))),
            (":FRAME", Command::Frame(None)),
            (":return (values 1\n 2)", Command::Return("(values 1\n 2)".into())),
            (":step", Command::Step("stepIn")),
            (":step into", Command::Code),
            (":other", Command::Code),
            ("(f 1)", Command::Code),
            ("1+", Command::Code),
            ("-1", Command::Code),
            ("", Command::Code),
        ] {
            assert_eq!(parse(line, true), Ok(command), "{line}");
        }
        for code in ["0", "99999999999999999999999", ":step into", ":other", "x", ""] {
            assert_eq!(parse(code, false), Ok(Command::Code), "{code}");
        }
        for command in [":bt", ":abort", ":frame 3", ":return 1"] {
            let told = parse(command, false);
            assert!(told.as_ref().is_err_and(|why| why.starts_with("Nothing is stopped: :")), "{told:?}");
        }
        assert_eq!((parse(":quit", false), parse(":help", true)), (Ok(Command::Quit), Ok(Command::Help)));
        for line in ["(quit)", " (EXIT) ", "(sb-ext:exit)", "( uiop:quit )"] {
            assert_eq!((parse(line, false), parse(line, true)), (Ok(Command::Quit), Ok(Command::Quit)), "{line}");
        }
        assert_eq!(parse("(exit :code 1)", false), Ok(Command::Code));
        assert_eq!(parse("quit", true), Ok(Command::Code));
        for wrong in [":frame x", ":frames -1", ":return", "99999999999999999999999"] {
            assert!(parse(wrong, true).is_err(), "{wrong}");
        }
    }

    #[test]
    fn help_is_broken_between_words_where_the_terminal_is_narrow() {
        assert_eq!(help(true, 80), format!("{STOPPED}{ALWAYS}"));
        let narrow = help(true, 40);
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(
            narrow.contains("\n  :frames [N]\n      lists frames from the current one\n      on (:bt)\n"),
            "{narrow}"
        );
        assert_eq!(narrow.split_whitespace().count(), help(true, 80).split_whitespace().count());
    }

    #[test]
    fn a_keyword_alone_is_like_a_command() {
        assert!([":hepl", " :a-b "].into_iter().all(looks_like_command));
        assert!([":", "::a", ":a 1", "a", "(:a)", ":|a b|", ""].into_iter().all(|line| !looks_like_command(line)));
    }

    #[test]
    fn every_command_that_help_names_is_one() {
        for line in help(true, 80).lines() {
            for word in line.split_whitespace().take_while(|word| word.starts_with(':')) {
                let form = if word == ":return" { " 1" } else { "" };
                assert_ne!(parse(&format!("{word}{form}"), true), Ok(Command::Code), "{word}");
            }
        }
    }
}
