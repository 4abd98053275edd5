//! Prompts: workflows with an image that runs, which a user chooses from the agent's menu.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

struct Workflow {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// The name and the description of the only argument.
    argument: (&'static str, &'static str),
    /// The start of the text if the argument is given. `{}` stands for the argument.
    given: &'static str,
    text: &'static str,
}

const WORKFLOWS: [Workflow; 4] = [
    Workflow {
        name: "hot-reload-development",
        title: "Change running code",
        about: "Locate, read, modify, compile, load, verify, persist.",
        argument: ("task", "what is to be changed"),
        given: "The task: {}\n\n",
        text: "Change the code of this running Common Lisp image step by step, and do not restart it:
1. Locate: source_location finds every definition of a symbol (function, methods, macro, class, ...); describe-symbol tells who calls it.
2. Read: lisp-read-file shows the file's top-level forms; read the one in question whole.
3. Modify: write the new definition. Keep the lambda list compatible with the callers, or change them too.
4. Compile: compile-form checks it in a copy of the image, which nothing can break; correct it until it is clean.
5. Load: code_replace_function for one function, code_compile_string for other forms, code_reload_system when several files changed. A person may \
be asked to allow it. Read the report: callers that inlined the old code, macros whose callers must be recompiled, layouts that changed.
6. Verify: evaluate-lisp (or run-tests) with real data, the edge cases too. If it is wrong, code_undo puts the old definitions back.
7. Persist: lisp-edit-form writes the definition to its file; definitions that exist only in the image are lost with it. Then look at diagnostics.",
    },
    Workflow {
        name: "debugging",
        title: "Find a mistake",
        about: "Reproduce, look, narrow down, correct, prove.",
        argument: ("problem", "what goes wrong"),
        given: "The problem: {}\n\n",
        text: "Find the cause in the live image before changing anything:
1. Reproduce it with evaluate-lisp in as small a call as you can. The answer has the condition's type, its message and a backtrace.
2. Read the functions in the backtrace: source_location, lisp-read-file. See who defined them last: consort://symbol/NAME has the provenance, \
consort://log what ran before.
3. Look at the values: evaluate the subexpressions with the same arguments; describe-symbol for lambda lists; macroexpand-form where a macro is involved.
4. Say what you think the cause is, and try to refute it with one more evaluation.
5. Correct it: compile-form, then code_replace_function; repeat step 1.
6. Add a test that fails without the correction, run-tests, persist with lisp-edit-form, look at diagnostics.
A long or endless evaluation is interrupted at its timeout; the image and its state stay.",
    },
    Workflow {
        name: "profiling",
        title: "Make it faster",
        about: "Measure, find the hot spot, change one thing, measure again.",
        argument: ("code", "the call that is slow"),
        given: "The call that is slow: {}\n\n",
        text: "Measure before you change anything:
1. Take a call that runs for a second or more; evaluate-lisp with capture-time tells time, garbage collection and bytes allocated.
2. profile-code with mode cpu shows where the time goes; alloc when much is allocated; time when it waits. Report mode graph tells who calls the hot spot.
3. Read the hot function. compile-form with (declaim (optimize speed)) in front shows the compiler's notes; a type declaration often settles them.
4. Change one thing. Check that the results are equal (evaluate-lisp), then measure the same call again.
5. Keep what helped, code_undo what did not, and persist with lisp-edit-form. Tell the figures before and after.",
    },
    Workflow {
        name: "test-first",
        title: "Test first",
        about: "A failing test, the least code that passes it, then tidy up.",
        argument: ("feature", "what is to be built"),
        given: "The feature: {}\n\n",
        text: "Work in small rounds, in the live image:
1. Write one test for the next piece of behaviour, in the project's own test framework. Load it (code_compile_string) and run it (run-tests): it must fail, \
for the reason you expect.
2. Write the least code that makes it pass: compile-form until clean, code_compile_string to load, run-tests.
3. All tests of the system must pass. Then tidy up names and duplication, with the tests green after each step.
4. Persist test and code to their files with lisp-edit-form, add new files to the system's .asd, look at diagnostics.
5. At the end code_reload_system from the files, and run-tests once more: what passes only because of what is left in the image does not count.",
    },
];

/// Returns all prompts.
pub(crate) fn list() -> Vec<Prompt> {
    let one = |way: &Workflow| {
        let argument = PromptArgument::new(way.argument.0).with_description(way.argument.1).with_required(false);
        let mut prompt = Prompt::new(way.name, Some(way.about), Some(vec![argument]));
        prompt.title = Some(way.title.into());
        prompt
    };
    WORKFLOWS.iter().map(one).collect()
}

/// Returns a prompt for the given argument.
///
/// # Errors
/// No prompt has this name, or its argument is not a string.
pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let Some(way) = WORKFLOWS.iter().find(|way| way.name == request.name) else {
        let names: Vec<&str> = WORKFLOWS.iter().map(|way| way.name).collect();
        let message = format!("There is no prompt {}. There are {}", request.name, names.join(", "));
        return Err(ErrorData::invalid_params(message, None));
    };
    let none = JsonObject::new();
    let mut text = String::new();
    for (name, value) in request.arguments.as_ref().unwrap_or(&none) {
        match value.as_str().filter(|_| name == way.argument.0) {
            Some(value) if value.trim().is_empty() => {}
            Some(value) => text.push_str(&way.given.replace("{}", value)),
            None => {
                let message =
                    format!("{} takes one argument, `{}`, a string: {}", way.name, way.argument.0, way.argument.1);
                return Err(ErrorData::invalid_params(message, None));
            }
        }
    }
    text.push_str(way.text);
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    result.description = Some(way.about.into());
    Ok(result)
}
