//! The tools of the MCP server. Each has a file of its own and a line in [`TABLE`]. The function
//! [`run::tool`] makes a call of any tool.

mod apropos;
mod call;
mod clhs;
mod compile_form;
mod debug;
mod describe_symbol;
mod diagnostics;
mod editor_context;
mod evaluate_lisp;
mod facts;
mod full_output;
mod image;
mod in_copy;
mod inspect;
mod lisp_edit_form;
mod lisp_read_file;
mod load_system;
mod macroexpand_form;
mod profile_code;
mod record;
mod reload;
mod rename_symbol;
mod reply;
mod run;
mod run_tests;
mod schema;
mod set_breakpoints;
mod source_location;
mod threads;
mod tried_first;
mod try_code;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use rmcp::model::{CallToolResponse, JsonObject, ListToolsResult, Tool as Definition, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::Limits;
use crate::session::approval::{Class, Subject};
pub(crate) use call::{Call, CodeContext};
pub(crate) use reply::{Failure, FromFailure, Reply};

/// The effects of a tool, by which a client decides whether to ask its user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    /// True if the tool changes nothing.
    pub(crate) read_only: bool,
    /// True if the tool may undo or overwrite something.
    pub(crate) destructive: bool,
    /// True if a second call with the same arguments changes nothing more.
    pub(crate) idempotent: bool,
    /// True if the tool may reach beyond the image: files, network, processes.
    pub(crate) open_world: bool,
}

/// A tool.
pub(crate) trait Tool {
    /// The tool's arguments. Doc comments of the fields are the arguments' descriptions.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// The data of the tool's answer, as `structuredContent`.
    type Output: Serialize + FromFailure + Send + 'static;

    const NAME: &'static str;
    /// True for a tool that may run the user's code, in the image or in a copy of it, because it
    /// loads, expands macros, prints or changes definitions. An interrupt that arrives after the
    /// beginning of such a call ends the call, even if the session has no job for it yet.
    const RUNS_CODE: bool;
    /// The description for an agent: when to use the tool, and when not to use it.
    const DESCRIPTION: &'static str;
    const HINTS: Hints;
    /// The size limits of an answer.
    const LIMITS: Limits = Limits::DEFAULT;
    /// Other accepted names of arguments. They are not listed.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// True for a tool whose first call has the image started and waits for it.
    const NEEDS_IMAGE: bool = true;
    /// False for a tool that must be answered regardless of the client's other calls.
    const HAS_QUOTA: bool = true;

    /// Returns the class of approval that the call needs, and the subject to show. Returns `None`
    /// if no approval is needed.
    fn required_approval(_: &Self::Input) -> Option<(Class, Subject)> {
        None
    }

    /// Returns the same as [`Tool::required_approval`], for a tool that must inspect something
    /// first, such as a file. A failure ends the call.
    fn required_approval_async(
        _: &Call,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Option<(Class, Subject)>, Failure>> + Send {
        std::future::ready(Ok(Self::required_approval(input)))
    }

    /// Returns the outcome of the call as far as it is known before approval is requested.
    fn before_approval(_: &Call, _: &Self::Input) -> impl Future<Output = BeforeApproval<Self::Output>> + Send {
        std::future::ready(BeforeApproval::Nothing)
    }

    /// Returns the context in which the tool reads the code in its arguments. A person is shown
    /// this context with the code.
    fn code_context(_: &Self::Input) -> Option<CodeContext> {
        None
    }

    /// Returns the path of the file that the call edits, if there is one. Calls that edit the same
    /// file run one after another.
    fn edits(_: &Self::Input) -> Option<&str> {
        None
    }

    /// Returns the error in the arguments, if a contract specifies its text.
    fn argument_error(_: &JsonObject) -> Option<Failure> {
        None
    }

    fn call(call: Call, input: Self::Input) -> impl Future<Output = Reply<Self::Output>> + Send;
}

/// The outcome of a call, as far as it is known before approval is requested.
#[derive(Debug)]
pub(crate) enum BeforeApproval<T> {
    Nothing,
    /// The answer, if the call would fail even with approval, or needs no approval.
    Answer(Reply<T>),
    /// The result of a trial in a copy of the image, for the person who is asked.
    Tried(String),
}

type Running = Pin<Box<dyn Future<Output = CallToolResponse> + Send>>;

/// An entry of [`TABLE`].
pub(crate) struct Entry {
    pub(crate) definition: Definition,
    /// The schema against which arguments are checked.
    accepts: JsonObject,
    needs_image: bool,
    has_quota: bool,
    runs_code: bool,
    run: fn(&'static Entry, Call, JsonObject) -> Running,
}

impl Entry {
    /// Returns true if the tool's first call has the image started, and waits for it.
    pub(crate) fn needs_image(&self) -> bool {
        self.needs_image
    }

    /// Returns true if the tool's calls count against their client's quota ([`Tool::HAS_QUOTA`]).
    pub(crate) fn has_quota(&self) -> bool {
        self.has_quota
    }

    /// Returns true if the tool may run code ([`Tool::RUNS_CODE`]).
    pub(crate) fn runs_code(&self) -> bool {
        self.runs_code
    }

    /// Calls the tool. Dropping the future cancels the call.
    pub(crate) fn call(&'static self, call: Call, arguments: JsonObject) -> Running {
        (self.run)(self, call, arguments)
    }
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    vec![
        entry::<compile_form::CompileForm>(),
        entry::<evaluate_lisp::EvaluateLisp>(),
        entry::<macroexpand_form::MacroexpandForm>(),
        entry::<source_location::SourceLocation>(),
        entry::<describe_symbol::DescribeSymbol>(),
        entry::<apropos::Apropos>(),
        entry::<clhs::Clhs>(),
        entry::<lisp_read_file::LispReadFile>(),
        entry::<lisp_edit_form::LispEditForm>(),
        entry::<rename_symbol::RenameSymbol>(),
        entry::<try_code::TryCode>(),
        entry::<record::Record>(),
        entry::<reload::CompileString>(),
        entry::<reload::LoadFasl>(),
        entry::<reload::ReloadPackage>(),
        entry::<reload::ReloadSystem>(),
        entry::<reload::ReplaceFunction>(),
        entry::<reload::Undo>(),
        entry::<load_system::LoadSystem>(),
        entry::<run_tests::RunTests>(),
        entry::<profile_code::ProfileCode>(),
        entry::<image::Image>(),
        entry::<threads::Threads>(),
        entry::<debug::Debug>(),
        entry::<inspect::Inspect>(),
        entry::<set_breakpoints::SetBreakpoints>(),
        entry::<diagnostics::Diagnostics>(),
        entry::<editor_context::EditorContext>(),
        entry::<full_output::FullOutput>(),
    ]
});

/// Returns all tools, in the order of the list.
pub(crate) fn all() -> &'static [Entry] {
    &TABLE
}

/// Returns the answer to `tools/list`.
pub(crate) fn list() -> ListToolsResult {
    ListToolsResult::with_all_items(all().iter().map(|entry| entry.definition.clone()).collect())
}

/// Returns the tool with a name. `repl_eval` is the name of `evaluate-lisp` in the hot-reload
/// workflow. It is accepted, but not listed.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    let name = if name == "repl_eval" { "evaluate-lisp" } else { name };
    TABLE.iter().find(|entry| entry.definition.name == name)
}

fn entry<T: Tool + 'static>() -> Entry {
    let hints = ToolAnnotations::new()
        .read_only(T::HINTS.read_only)
        .destructive(T::HINTS.destructive)
        .idempotent(T::HINTS.idempotent)
        .open_world(T::HINTS.open_world);
    let accepts = schema::input::<T::Input>();
    let definition = Definition::new(T::NAME, T::DESCRIPTION, Arc::new(schema::listed(&accepts)))
        .with_raw_output_schema(Arc::new(schema::output()))
        .with_annotations(hints);
    let run: fn(&'static Entry, Call, JsonObject) -> Running =
        |entry, call, arguments| Box::pin(run::tool::<T>(&entry.accepts, call, arguments));
    Entry { definition, accepts, needs_image: T::NEEDS_IMAGE, has_quota: T::HAS_QUOTA, runs_code: T::RUNS_CODE, run }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_name_tools_that_there_are() {
        let tools = all();
        let names: Vec<&str> = tools.iter().map(|entry| entry.definition.name.as_ref()).collect();
        for tool in
            ["compile-form", "evaluate-lisp", "lisp-edit-form", "code_reload_system", "diagnostics", "run-tests"]
        {
            assert!(names.contains(&tool) && crate::mcp::server::INSTRUCTIONS.contains(tool), "{tool}");
        }
    }

    /// Arguments that may be listed without a description.
    const SAID_BY_THEIR_NAMES: [&str; 41] = [
        "action",
        "callers",
        "code",
        "content",
        "dry_run",
        "external",
        "failure",
        "file",
        "filename",
        "force",
        "form",
        "frame",
        "framework",
        "function",
        "functions",
        "handle",
        "in",
        "limit",
        "line",
        "load",
        "max-samples",
        "new",
        "new_code",
        "offset",
        "operation",
        "package",
        "path",
        "pattern",
        "position",
        "query",
        "recording",
        "report-type",
        "restart",
        "show",
        "start",
        "stop",
        "suite",
        "symbol",
        "system",
        "test",
        "timeout",
    ];

    #[test]
    fn the_list_is_small_and_every_tool_declares_all_there_is_to_declare() {
        let list = list();
        let bytes = serde_json::to_string(&list).unwrap().len();
        // An agent has the whole list in its context.
        assert!(bytes < 16 << 10, "{bytes} bytes for {} tools", list.tools.len());
        for definition in &list.tools {
            let bytes = serde_json::to_string(definition).unwrap().len();
            assert!(bytes < 1_300, "{bytes} bytes for {}", definition.name);
            let hints = definition.annotations.as_ref().unwrap();
            assert!(hints.read_only_hint.is_some() && hints.destructive_hint.is_some(), "{}", definition.name);
            assert!(hints.idempotent_hint.is_some() && hints.open_world_hint.is_some(), "{}", definition.name);
            assert_eq!(definition.input_schema["type"], "object");
            assert_eq!(definition.output_schema.as_ref().unwrap()["type"], "object");
            for (name, property) in definition.input_schema["properties"].as_object().unwrap() {
                let said = SAID_BY_THEIR_NAMES.contains(&name.as_str());
                assert!(said || property["description"].is_string(), "{}: {name}", definition.name);
            }
        }
    }

    #[test]
    fn every_tool_is_documented() {
        let page = include_str!("../../../docs/agents.md");
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        for entry in all() {
            let name = entry.definition.name.as_ref();
            assert!(
                headings.iter().any(|line| line.split(", ").any(|one| one == name)),
                "docs/agents.md has no section for {name}"
            );
        }
    }

    #[test]
    fn repl_eval_is_answered_and_not_listed() {
        assert_eq!(find("repl_eval").unwrap().definition.name, "evaluate-lisp");
        assert!(all().iter().all(|entry| entry.definition.name != "repl_eval"));
        assert!(find("evaluate_lisp").is_none());
    }

    #[test]
    fn the_definitions_are_the_contracts() {
        let definitions: Vec<&Definition> = all().iter().map(|entry| &entry.definition).collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&definitions).unwrap());
    }
}
