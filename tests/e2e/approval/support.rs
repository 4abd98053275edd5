//! A world in which evaluation is asked about, and its audit log.

use std::time::Duration;

use consort::config::Config;
use consort::config::Source;
use consort::config::approval::{Class, Setting};
use consort_tests::agent::Agent;
use consort_tests::lsp::Editor;
use consort_tests::patience::{PATIENCE, alone};
use consort_tests::world::World;
use serde_json::{Value, json};

/// A world with an audit log.
pub(crate) struct Guarded {
    pub(crate) world: World,
    state: tempfile::TempDir,
}

/// A configuration that asks about evaluation.
pub(crate) fn asking() -> Config {
    let mut config = Config::default();
    config.approval.set(Class::Eval, Setting::Ask, Source::User).expect("a person may");
    config
}

impl Guarded {
    /// Creates a workspace that asks about evaluation.
    pub(crate) async fn new() -> Guarded {
        Guarded::configured(asking()).await
    }

    /// Creates a workspace that asks about evaluation, with a short time limit for the answer.
    pub(crate) async fn hasty() -> Guarded {
        let mut config = asking();
        config.approval.deadline = Duration::from_millis(300);
        Guarded::configured(config).await
    }

    pub(crate) async fn configured(mut config: Config) -> Guarded {
        let state = tempfile::tempdir().expect("a directory");
        config.approval.audit = Some(state.path().join("state/x.audit.jsonl"));
        let world = World::configured(&[("core.lisp", "(defun core ())\n")], config).await;
        Guarded { world, state }
    }

    /// Connects an agent whose client cannot ask anybody.
    pub(crate) async fn agent(&self, name: &str) -> Agent {
        Agent::named(&self.world.session, name, json!({})).await
    }

    /// Connects an agent whose client can ask a person.
    pub(crate) async fn asking_agent(&self, name: &str) -> Agent {
        Agent::named(&self.world.session, name, json!({"elicitation": {}})).await
    }

    /// Connects an editor that can be asked.
    pub(crate) async fn editor(&self) -> Editor {
        let mut editor = Editor::start(&self.world.session, json!({})).await;
        // `initialized` has no answer, so a request behind it is waited for.
        editor.command("consort.status", json!({})).await.expect("a status");
        editor
    }

    /// Returns the decisions so far.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.audit_file()).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    pub(crate) fn audit_file(&self) -> std::path::PathBuf {
        self.state.path().join("state/x.audit.jsonl")
    }

    /// Waits until a decision is in the log: a refusal that no call waits for may come later.
    pub(crate) async fn audited(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let look = async {
            loop {
                if let Some(found) = self.audit().into_iter().find(&wanted) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, look)
            .await
            .unwrap_or_else(|_| panic!("waited in vain; the audit log has {:#?}\n{}", self.audit(), alone()))
    }

    /// Waits for a refusal whose reason or decider has these words.
    pub(crate) async fn refused(&self, words: &str) -> Value {
        let has = |entry: &Value| {
            [&entry["why"], &entry["by"]].iter().any(|text| text.as_str().is_some_and(|text| text.contains(words)))
        };
        self.audited(|entry| entry["decision"] == "refused" && has(entry)).await
    }

    pub(crate) async fn end(self) {
        self.world.end().await;
    }
}
