//! Documentation strings of Lisp functions: they say what a function does, in the third person.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

/// Verbs that begin documentation as a command.
const COMMANDS: &str = "Add Allow Answer Apply Ask Begin Bind Call Check Close Collect Compare Compile Confine Connect \
    Copy Count Cut Define Delete Describe Do Drop End Evaluate Fail Fill Find Finish Flag Forget \
    Fork Free Get Give Go Handle Have Insert Install Keep Leave Let Limit List Load Look Make Mark \
    Move Note Open Overwrite Pass Perform Print Put Read Record Refuse Remember Remove Rename \
    Replace Report Return Run Save Send Serve Set Show Signal Skip Start Stay Stop Take Tell \
    Undefine Use Wait Work Write";
/// The lines of `text` on which the documentation of a function begins with a verb of [`COMMANDS`].
fn commands(text: &str) -> Vec<usize> {
    let is_definition =
        |line: &str| ["(defun ", "(defmacro ", "(defmethod "].iter().any(|start| line.starts_with(start));
    let mut within = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('(') {
            within = is_definition(line);
        }
        // Documentation stands on a line of its own, or behind the lambda list.
        let documentation = line.strip_prefix("  \"").or_else(|| line.split_once(") \"").map(|(_, rest)| rest));
        let Some(documentation) = documentation.filter(|_| within) else { continue };
        let word = documentation.split(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
        let rest = documentation[word.len()..].trim_start_matches([',', ':']);
        if COMMANDS.split_whitespace().any(|command| command == word)
            && !rest.starts_with(" of ")
            && (rest.is_empty() || rest.starts_with(' '))
        {
            found.push(number + 1);
        }
        within = false;
    }
    found
}

fn lisp_files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lisp_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "lisp") {
            found.push(path);
        }
    }
}

#[test]
fn documentation_is_in_the_third_person() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("lisp");
    let mut files = vec![root.join("boot.lisp")];
    lisp_files(&root.join("src"), &mut files);
    assert!(files.len() > 100, "only {} files were found", files.len());
    let wrong: Vec<String> = files
        .iter()
        .map(|path| path.strip_prefix(&root).unwrap())
        .flat_map(|path| {
            let lines = commands(&std::fs::read_to_string(root.join(path)).unwrap());
            lines.into_iter().map(move |line| format!("{}:{line}", path.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "documentation that begins with a command (`Call`, not `Calls`):\n{}", wrong.join("\n"));
}

#[test]
fn a_command_is_seen() {
    let text = "(defun f (x)\n  \"Call X.\"\n  \"Call it.\")\n(defun g () \"Put it.\" 1)\n(defmacro h (x\n              y)\n  \"Fork: the id.\"\n  1)\n";
    assert_eq!(commands(text), [2, 4, 7]);
    let text =
        "(defun f (x)\n  \"Calls X.\"\n  1)\n(defun g () \"End of a list.\" 1)\n(defvar *x* 1\n  \"Call it.\")\n";
    assert_eq!(commands(text), [] as [usize; 0]);
}
