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
    /// A workspace that asks about evaluation.
    pub(crate) async fn new() -> Guarded {
        Guarded::configured(asking()).await
    }

    /// A workspace that asks about evaluation, and does not wait long for an answer.
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

    /// An agent that cannot ask anybody.
    pub(crate) async fn agent(&self, name: &str) -> Agent {
        Agent::named(&self.world.session, name, json!({})).await
    }

    /// An agent of a person who can be asked.
    pub(crate) async fn asking_agent(&self, name: &str) -> Agent {
        Agent::named(&self.world.session, name, json!({"elicitation": {}})).await
    }

    /// An editor that can be asked.
    pub(crate) async fn editor(&self) -> Editor {
        let mut editor = Editor::start(&self.world.session, json!({})).await;
        // `initialized` has no answer; a request behind it has.
        editor.command("consort.status", json!({})).await.expect("a status");
        editor
    }

    /// The decisions so far.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.audit_file()).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    pub(crate) fn audit_file(&self) -> std::path::PathBuf {
        self.state.path().join("state/x.audit.jsonl")
    }

    /// Wait until a decision is there, which a refusal that nobody waits for need not be at once.
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

    /// A refusal whose reason or decider has these words.
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
