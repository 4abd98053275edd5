//! The message about a file that is not in the workspace.

use std::path::Path;

/// Returns a message with the reason why a file is not in the workspace, and the next step. `real`
/// is the path with links resolved.
pub(crate) fn message(named: &Path, real: &Path, workspace: &Path) -> String {
    let root = match workspace.canonicalize() {
        Ok(root) => root,
        Err(why) => {
            return format!(
                "The workspace {} cannot be read ({why}): it was removed, renamed or made inaccessible. Restore it, or stop this host \
                 (`consort stop`) and start in the directory that you mean.",
                workspace.display()
            );
        }
    };
    let leads = if named == real { String::new() } else { format!(" (it leads to {})", real.display()) };
    let is = if root == workspace { String::new() } else { format!(" (which is {} now)", root.display()) };
    format!(
        "{}{leads} is not in the workspace {}{is}. Name a file below it, or start Consort in the directory that has the file.",
        named.display(),
        workspace.display()
    )
}
