//! Table `[approval]`: the setting of each class of agent requests, and the sources that may
//! change it.

use std::path::PathBuf;
use std::time::Duration;

use super::source::Source;

/// A class of agent requests that a person sets to `allow`, `ask` or `deny` (contracts:
/// Approval).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Running code in the image. The default is `allow`; all other classes default to `ask`.
    Eval,
    /// Compiling a file and writing the fasl.
    CompileFile,
    /// Replacing, loading, reloading or undoing definitions.
    ModifyRunningCode,
    /// Writing a file in the workspace.
    EditFile,
    /// Ending the image, whose state is lost.
    RestartImage,
    /// Running code at a stop, or leaving the stop.
    Debug,
}

impl Class {
    /// All classes, in the order of the documentation.
    pub const ALL: [Class; 6] =
        [Class::Eval, Class::CompileFile, Class::ModifyRunningCode, Class::EditFile, Class::RestartImage, Class::Debug];

    /// Returns the key in the table.
    pub fn key(self) -> &'static str {
        match self {
            Class::Eval => "eval",
            Class::CompileFile => "compile-file",
            Class::ModifyRunningCode => "modify-running-code",
            Class::EditFile => "edit-file",
            Class::RestartImage => "restart-image",
            Class::Debug => "debug",
        }
    }

    /// Returns the class that `approval.KEY` sets.
    pub(super) fn of_key(name: &str) -> Option<Class> {
        let key = name.strip_prefix("approval.")?;
        Class::ALL.into_iter().find(|class| class.key() == key)
    }
}

/// The setting of a class. The stricter setting is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// Permitted without a question.
    Allow,
    /// Permitted if a person agrees.
    Ask,
    /// Permitted only in a copy of the image, where no change is kept. For evaluation alone.
    Copy,
    /// Refused.
    Deny,
}

impl Setting {
    pub(super) fn of(written: &str) -> Option<Setting> {
        match written {
            "allow" => Some(Setting::Allow),
            "ask" => Some(Setting::Ask),
            "copy" => Some(Setting::Copy),
            "deny" => Some(Setting::Deny),
            _ => None,
        }
    }

    /// Returns the name in the settings file.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Allow => "allow",
            Setting::Ask => "ask",
            Setting::Copy => "copy",
            Setting::Deny => "deny",
        }
    }
}

/// The source of the setting in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    /// The user's config.toml, or the default.
    User,
    /// The workspace's consort.toml, with a stricter setting.
    Workspace,
    /// An editor's settings.
    Editor,
}

impl SettingSource {
    /// Returns the name for a person and for the audit log.
    pub fn name(self) -> &'static str {
        match self {
            SettingSource::User => "the person's config.toml or the default",
            SettingSource::Workspace => "the workspace's consort.toml",
            SettingSource::Editor => "the editor's settings",
        }
    }
}

type PerClass<T> = [T; Class::ALL.len()];

/// The table, with the settings of each source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalConfig {
    own: PerClass<Setting>,
    /// The lower bound from the workspace, which holds whatever the other sources set.
    workspace: PerClass<Option<Setting>>,
    editor: PerClass<Option<Setting>>,
    /// The time limit for a person's answer. Not configurable; only tests change it.
    pub deadline: Duration,
    /// The file of the audit log. Without a log, requests that need an approval are refused.
    pub audit: Option<PathBuf>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        let mut own = [Setting::Ask; Class::ALL.len()];
        own[Class::Eval as usize] = Setting::Allow;
        ApprovalConfig {
            own,
            workspace: Default::default(),
            editor: Default::default(),
            deadline: Duration::from_secs(120),
            audit: None,
        }
    }
}

impl ApprovalConfig {
    /// Sets the setting of one class.
    ///
    /// # Errors
    /// A sentence for a person. The workspace may only make a setting stricter, and only evaluation
    /// can be done in a copy.
    pub fn set(&mut self, class: Class, setting: Setting, source: Source) -> Result<(), String> {
        let at = class as usize;
        if setting == Setting::Copy && class != Class::Eval {
            let key = class.key();
            return Err(format!(
                "approval.{key} must be \"allow\", \"ask\" or \"deny\": only approval.eval can be \"copy\""
            ));
        }
        match source {
            Source::User => self.own[at] = setting,
            Source::Workspace | Source::Client if setting < self.own[at] => {
                return Err(format!(
                    "approval.{} = {:?} is not taken from here: it may be a file of the workspace, which an agent can write, so it can \
                     only make approval stricter than {:?}; set it in your own config.toml or in VS Code's user settings",
                    class.key(),
                    setting.name(),
                    self.own[at].name()
                ));
            }
            Source::Client | Source::OwnClient => self.editor[at] = Some(setting),
            Source::Workspace => self.workspace[at] = Some(setting),
        }
        Ok(())
    }

    /// Returns the setting in force with the settings of `editors` applied. The strictest of the
    /// editors' settings overrides the user's own file, but never loosens `copy` or `deny`. The
    /// workspace's setting remains the lower bound.
    pub fn in_force<'a>(
        &self,
        class: Class,
        editors: impl IntoIterator<Item = &'a ApprovalConfig>,
    ) -> (Setting, SettingSource) {
        let at = class as usize;
        let editor = editors.into_iter().filter_map(|editor| editor.editor[at]).max();
        let chosen = match editor {
            Some(editor) if editor > self.own[at] || self.own[at] < Setting::Copy => (editor, SettingSource::Editor),
            _ => (self.own[at], SettingSource::User),
        };
        match self.workspace[at] {
            Some(floor) if floor > chosen.0 => (floor, SettingSource::Workspace),
            _ => chosen,
        }
    }

    /// Applies an editor's newer settings as far as they are not looser than `before`. Also returns
    /// the classes whose settings were not applied.
    pub fn tightened(mut self, before: &ApprovalConfig) -> (ApprovalConfig, Vec<Class>) {
        let mut kept = Vec::new();
        for class in Class::ALL {
            let at = class as usize;
            let with = |editor| {
                let mut config = self.clone();
                config.editor[at] = editor;
                config.in_force(class, [&config]).0
            };
            if with(self.editor[at]) < with(before.editor[at]) {
                self.editor[at] = before.editor[at];
                kept.push(class);
            }
        }
        (self, kept)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn config(own: Setting, workspace: Option<Setting>, editor: Option<Setting>) -> ApprovalConfig {
        let mut config = ApprovalConfig::default();
        config.set(Class::Eval, own, Source::User).unwrap();
        if let Some(workspace) = workspace {
            // Looser settings are refused and change nothing.
            let _ = config.set(Class::Eval, workspace, Source::Workspace);
        }
        if let Some(editor) = editor {
            config.set(Class::Eval, editor, Source::OwnClient).unwrap();
        }
        config
    }

    #[test]
    fn evaluation_is_allowed_and_all_else_is_asked() {
        let config = ApprovalConfig::default();
        for class in Class::ALL {
            let expected = if class == Class::Eval { Setting::Allow } else { Setting::Ask };
            assert_eq!(config.in_force(class, []), (expected, SettingSource::User), "{class:?}");
        }
        assert_eq!(config.deadline, Duration::from_secs(120));
    }

    #[test]
    fn only_evaluation_is_done_in_a_copy() {
        for class in Class::ALL {
            let set = ApprovalConfig::default().set(class, Setting::Copy, Source::User);
            assert_eq!(set.is_ok(), class == Class::Eval, "{set:?}");
        }
    }

    #[test]
    fn the_workspace_can_only_tighten() {
        use Setting::{Allow, Ask, Copy, Deny};
        let mut loose = config(Ask, None, None);
        assert!(loose.set(Class::Eval, Allow, Source::Workspace).unwrap_err().contains("only make approval stricter"));
        for (own, workspace, editor, expected) in [
            (Ask, Some(Allow), None, Ask),
            (Deny, Some(Allow), None, Deny),
            (Deny, Some(Ask), None, Deny),
            (Allow, Some(Ask), None, Ask),
            (Allow, Some(Deny), None, Deny),
            // An editor cannot loosen the workspace's setting, nor the user's own `deny`.
            (Allow, Some(Ask), Some(Allow), Ask),
            (Ask, Some(Deny), Some(Allow), Deny),
            (Deny, None, Some(Allow), Deny),
            (Ask, None, Some(Allow), Allow),
            (Allow, None, Some(Deny), Deny),
            (Allow, Some(Copy), Some(Ask), Copy),
            (Copy, None, Some(Allow), Copy),
            (Copy, None, Some(Deny), Deny),
            (Ask, None, Some(Copy), Copy),
        ] {
            let config = config(own, workspace, editor);
            assert_eq!(config.in_force(Class::Eval, [&config]).0, expected, "{own:?} {workspace:?} {editor:?}");
        }
    }

    #[test]
    fn an_editor_that_may_have_its_settings_from_the_workspace_only_tightens() {
        use Setting::{Allow, Ask, Deny};
        let mut config = config(Ask, None, None);
        assert!(config.set(Class::Eval, Allow, Source::Client).unwrap_err().contains("only make approval stricter"));
        assert_eq!(config.in_force(Class::Eval, [&config]), (Ask, SettingSource::User));
        config.set(Class::Eval, Deny, Source::Client).unwrap();
        assert_eq!(config.in_force(Class::Eval, [&config]), (Deny, SettingSource::Editor));
    }

    #[test]
    fn of_several_editors_the_strictest_that_says_something_wins() {
        use Setting::{Allow, Ask, Deny};
        let of = |editor| config(Ask, None, editor);
        let base = of(None);
        assert_eq!(base.in_force(Class::Eval, [&of(Some(Allow)), &of(None)]).0, Allow);
        assert_eq!(base.in_force(Class::Eval, [&of(Some(Allow)), &of(Some(Ask))]).0, Ask);
        assert_eq!(base.in_force(Class::Eval, [&of(Some(Deny)), &of(Some(Allow))]), (Deny, SettingSource::Editor));
        assert_eq!(base.in_force(Class::Eval, []), (Ask, SettingSource::User));
    }

    #[test]
    fn later_settings_of_an_editor_only_tighten() {
        use Setting::{Allow, Ask, Deny};
        for (before, after, expected) in [
            (None, Some(Allow), None),
            (None, Some(Deny), Some(Deny)),
            (Some(Deny), None, Some(Deny)),
            (Some(Deny), Some(Ask), Some(Deny)),
            (Some(Allow), None, None),
            (Some(Allow), Some(Ask), Some(Ask)),
        ] {
            let (config, kept) = config(Ask, None, after).tightened(&config(Ask, None, before));
            assert_eq!(config.editor[0], expected, "{before:?} {after:?}");
            assert_eq!(kept.is_empty(), after == expected);
        }
    }
}
