"""Requirements of any MCP client on `consort mcp`: the contracts of evaluate-lisp and compile-form, and the rules for every tool.

Each check takes an agent (see client_v1.py, client_v2.py) with
    await agent.tools() -> list of tools as plain JSON
    await agent.call(name, arguments, on_progress=None) -> the result as plain JSON; raises ProtocolError
    agent.start(name, arguments) -> a task whose cancellation cancels the request
    await agent.another() -> a further connection to the same workspace
"""

import asyncio
import os
import re

from jsonschema import Draft202012Validator

CHECKS = []
# The time limit for something that must come, in seconds; run.sh sets it by the machine's speed. No
# test asserts that anything comes sooner.
PATIENCE = int(os.environ.get("CONSORT_TEST_PATIENCE", "120000")) / 1000


class ProtocolError(Exception):
    """The request itself was answered with an error."""


def check(function):
    CHECKS.append(function)
    return function


def text(result):
    """Returns the text of the only block."""
    assert [block["type"] for block in result["content"]] == ["text"], result["content"]
    return result["content"][0]["text"]


def facts(result):
    return result["structuredContent"]


def same(actual, expected):
    assert actual == expected, f"\n--- expected\n{expected}\n--- got\n{actual}"


async def evaluate(agent, code, **more):
    result = await agent.call("evaluate-lisp", {"code": code, **more})
    return result


async def value(agent, code, **more):
    """Returns the text of an evaluation that must succeed."""
    result = await evaluate(agent, code, **more)
    assert not result.get("isError"), text(result)
    return text(result)


async def compiled(agent, code, **more):
    return await agent.call("compile-form", {"code": code, **more})


async def eventually(condition, what):
    """Waits until the awaitable that CONDITION returns has a true result."""

    async def loop():
        while not await condition():
            await asyncio.sleep(0.05)

    try:
        await asyncio.wait_for(loop(), PATIENCE)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE:.0f} s in vain: {what}") from None


# For every tool.


@check
async def the_tools_are_those_of_the_contracts(agent):
    tools = {tool["name"]: tool for tool in await agent.tools()}
    assert {"evaluate-lisp", "compile-form"} <= tools.keys(), tools.keys()
    assert "repl_eval" not in tools
    for name, tool in tools.items():
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["outputSchema"]["type"] == "object"
        hints = tool["annotations"]
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]:
            assert isinstance(hints[hint], bool), (name, hint)
    same(tools["evaluate-lisp"]["inputSchema"]["required"], ["code"])
    assert {"code", "package", "capture-time", "timeout", "in"} == tools["evaluate-lisp"]["inputSchema"]["properties"].keys()
    assert tools["compile-form"]["annotations"]["readOnlyHint"] and not tools["evaluate-lisp"]["annotations"]["readOnlyHint"]


@check
async def every_structured_answer_is_as_its_output_schema_says(agent):
    schemas = {tool["name"]: tool["outputSchema"] for tool in await agent.tools()}
    calls = [
        ("evaluate-lisp", {"code": "(warn \"w\") (print 1) (format *error-output* \"e\") (values 1 2)", "capture-time": True}),
        ("evaluate-lisp", {"code": "(values)"}),
        ("evaluate-lisp", {"code": "(/ 1 0)"}),
        ("evaluate-lisp", {"code": "(list"}),
        ("evaluate-lisp", {"code": "(loop)", "timeout": 0.5}),
        ("evaluate-lisp", {"code": "1", "package": "NO-SUCH-PACKAGE"}),
        ("evaluate-lisp", {"kode": "1"}),
        ("compile-form", {"code": "(defun f (x) (g x))"}),
        ("compile-form", {"code": "(defun f (x)"}),
        ("compile-form", {"code": "(let ((x 1 2)) x)"}),
        ("compile-form", {"code": "1", "package": "NO-SUCH-PACKAGE"}),
        ("compile-form", {}),
    ]
    for name, arguments in calls:
        result = await agent.call(name, arguments)
        Draft202012Validator(schemas[name]).validate(facts(result))
        assert text(result), arguments


@check
async def bad_arguments_are_named(agent):
    result = await agent.call("evaluate-lisp", {"kode": "1", "timeout": "soon"})
    assert result["isError"]
    for word in ["`code` is missing", "`kode` is not an argument", "`timeout` must be a number"]:
        assert word in text(result), text(result)
    assert (await agent.call("compile-form", {"code": 7}))["isError"]


@check
async def an_unknown_tool_is_an_error_that_names_those_there_are(agent):
    try:
        answer = text(await agent.call("evaluate_lisp", {"code": "1"}))
    except ProtocolError as error:
        answer = str(error)
    assert "evaluate-lisp" in answer and "compile-form" in answer, answer


@check
async def an_unknown_package_is_told_before_anything_is_read(agent):
    for tool in ["evaluate-lisp", "compile-form"]:
        result = await agent.call(tool, {"code": "#.(error \"read\") (", "package": "NO-SUCH-PACKAGE"})
        assert result["isError"]
        same(text(result), "Package NO-SUCH-PACKAGE not found")


# evaluate-lisp.


@check
async def a_value_is_shown(agent):
    result = await evaluate(agent, "(+ 1 2)")
    same(text(result), "=> 3")
    assert result["isError"] is False
    same((facts(result)["status"], facts(result)["values"]), ("ok", ["3"]))


@check
async def only_the_last_of_several_forms_is_shown_with_all_its_values(agent):
    same(await value(agent, "1 2 (values :a \"b\" #\\c)"), '=> :A\n=> "b"\n=> #\\c')
    same(await value(agent, "(values)"), "; No value")


@check
async def output_and_warnings_have_sections(agent):
    code = '(format t "out~%") (format *error-output* "err~%") (format *trace-output* "trace~%") (warn "careful") 1'
    same(await value(agent, code), "[stdout]\nout\n\n[stderr]\nerr\ntrace\n\n[warnings]\nWARNING: careful\n\n=> 1")


@check
async def definitions_and_the_package_persist(agent):
    await value(agent, "(defpackage :e2e-persist (:use :cl)) (in-package :e2e-persist) (defun double (x) (* 2 x))")
    same(await value(agent, "(double 21)"), "=> 42")
    same(await value(agent, "(package-name *package*)", package="CL-USER"), '=> "COMMON-LISP-USER"')
    same(await value(agent, "(package-name *package*)"), '=> "E2E-PERSIST"')
    await value(agent, "(in-package :cl-user)")


@check
async def the_repl_variables_hold_the_last_values(agent):
    await value(agent, "(+ 20 1)")
    same(await value(agent, "(* 2 *)"), "=> 42")


@check
async def timing_is_given_when_asked_for(agent):
    answer = await value(agent, "(length (make-list 1000))", **{"capture-time": True})
    assert re.search(r"\n; Timing: \d+ms real, \d+ms run, \d+ms GC, \d+ bytes consed$", answer), answer
    assert "Timing" not in await value(agent, "1")


@check
async def an_error_has_its_type_message_and_backtrace_then_what_was_printed(agent):
    await value(agent, "(defun e2e-divide (x) (1+ (/ 1 x)))")
    result = await evaluate(agent, '(format t "before~%") (e2e-divide 0)')
    assert result["isError"]
    lines = text(result).split("\n")
    same(lines[0], "[ERROR] DIVISION-BY-ZERO")
    assert "[Backtrace]" in lines and lines.index("[stdout]") > lines.index("[Backtrace]"), text(result)
    assert re.search(r"^\d+: \(E2E-DIVIDE 0\)$", text(result), re.M), text(result)
    same(facts(result)["stdout"], "before\n")
    [frame] = [frame for frame in facts(result)["error"]["backtrace"] if frame["name"] == "E2E-DIVIDE"]
    same(frame["args"], ["0"])


@check
async def a_form_that_cannot_be_read_is_an_error(agent):
    for code in ["(list 1", ")", "(no-such-package::x)", '"open']:
        result = await evaluate(agent, code)
        assert result["isError"] and text(result).startswith("[ERROR] "), text(result)


@check
async def values_are_printed_within_limits(agent):
    answer = await value(agent, "(loop for i below 1000 collect i)")
    assert answer.rstrip().endswith("...)"), answer[-50:]
    assert "#1=" in await value(agent, "(let ((x (list 1))) (setf (cdr x) x))")
    assert "#" in await value(agent, "(let ((x nil)) (dotimes (i 20 x) (setf x (list x))))")


@check
async def output_without_end_is_cut_and_says_so(agent):
    result = await evaluate(agent, "(dotimes (i 1000000) (format t \"0123456789\"))", timeout=120)
    assert len(text(result)) < 110_000 and "left out" in text(result)
    assert facts(result)["omitted"] > 9_000_000
    result = await evaluate(agent, "(make-string 10000000 :initial-element #\\x)", timeout=120)
    assert len(text(result)) < 110_000 and "left out" in text(result)


@check
async def a_lone_surrogate_does_no_harm(agent):
    assert "=> " in await value(agent, "(string (code-char #xD800))")
    await evaluate(agent, "(princ (code-char #xDC00))")
    same(await value(agent, "(+ 1 2)"), "=> 3")


@check
async def a_deadline_ends_the_call_and_keeps_the_state(agent):
    await value(agent, "(defvar *e2e-kept* 17)")
    result = await evaluate(agent, "(loop)", timeout=1)
    assert result["isError"] and facts(result)["status"] == "timeout", text(result)
    same(await value(agent, "*e2e-kept*"), "=> 17")


@check
async def leaving_is_refused_and_standard_input_is_empty(agent):
    for code in ["(sb-ext:exit)", "(quit)", "(sb-ext:exit :abort t)"]:
        result = await evaluate(agent, code)
        assert result["isError"], text(result)
    result = await evaluate(agent, "(read-line)")
    assert result["isError"] and "END-OF-FILE" in text(result), text(result)


@check
async def conditions_that_are_no_errors_are_reported_too(agent):
    result = await evaluate(agent, "(labels ((f (x) (1+ (f x)))) (f 1))")
    assert result["isError"] and "EXHAUSTED" in text(result), text(result)
    assert (await evaluate(agent, "(error 'sb-sys:interactive-interrupt)"))["isError"]
    same(await value(agent, "(+ 1 2)"), "=> 3")


@check
async def repl_eval_is_evaluate_lisp(agent):
    same(text(await agent.call("repl_eval", {"code": "(+ 1 2)"})), "=> 3")


# compile-form: the contract's examples.


@check
async def a_clean_form_compiles(agent):
    result = await compiled(agent, "(defun double (x) (* x 2))", package="CL-USER")
    same(text(result), "Compilation successful\nWarnings: 0\nErrors: 0\n\nCompiled 1 form successfully")
    assert facts(result)["success"] and not result.get("isError")


@check
async def an_undefined_function_is_a_warning(agent):
    same(
        text(await compiled(agent, "(defun uses-undefined () (undefined-function 42))")),
        "Compilation successful (with warnings)\nWarnings: 1\nErrors: 0\n\n"
        "WARNING: Undefined function: UNDEFINED-FUNCTION\n"
        "  in form: (DEFUN USES-UNDEFINED () (UNDEFINED-FUNCTION 42))\n"
        "  at: line 1, column 27\n"
        "  severity: WARNING\n\n"
        "Compiled 1 form successfully",
    )
    two = await compiled(agent, "(defun e2e-one () 1)\n(defun my-func () (nonexistent-func))")
    assert "Compiled 2 forms successfully" in text(two) and "at: line 2, column 20" in text(two), text(two)


@check
async def a_type_error_is_a_warning(agent):
    result = await compiled(agent, '(defun bad-call () (+ 1 "two"))')
    assert facts(result)["warnings"] >= 1 and facts(result)["success"] and not result.get("isError"), text(result)
    assert '"two"' in text(result), text(result)


@check
async def a_form_that_never_ends_is_an_error_and_the_rest_is_compiled(agent):
    result = await compiled(agent, "(defun incomplete (x)")
    answer = text(result)
    assert answer.startswith("Compilation failed\n") and "\nErrors: 1\n" in answer, answer
    assert "ERROR: end of file on #<STRING-INPUT-STREAM>\n  Could not read form from code string\n" in answer, answer
    assert "  at: line 1, column 1\n" in answer and facts(result)["success"] is False and result["isError"]
    both = await compiled(agent, "(defun e2e-fine () (e2e-nowhere))\n(defun incomplete (x)")
    assert "Undefined function: E2E-NOWHERE" in text(both), text(both)
    assert "at: line 2, column 1" in text(both), text(both)


@check
async def an_error_in_the_code_is_a_successful_check(agent):
    result = await compiled(agent, "(defun e2e-bad () (let ((x 1 2)) x))")
    assert facts(result)["success"] is False and facts(result)["errors"] >= 1 and not result.get("isError"), text(result)
    assert text(result).startswith("Compilation failed\n"), text(result)


@check
async def nothing_is_executed_and_nothing_is_left_behind(agent):
    code = """
(defpackage :e2e-ghost (:use :cl))
(in-package :e2e-ghost)
(defmacro twice (form) `(progn ,form ,form))
(defvar *ghost* (print 'executed))
(defun ghost () (twice (print 'executed)))
(eval-when (:compile-toplevel :load-toplevel :execute) (setf (get 'car 'e2e-ghost) t) (format t "executed~%"))
"""
    result = await compiled(agent, code)
    assert "EXECUTED" not in text(result).upper().replace("(PRINT 'EXECUTED)", ""), text(result)
    assert facts(result)["success"], text(result)
    same(await value(agent, "(list (find-package :e2e-ghost) (get 'car 'e2e-ghost) (fboundp 'ghost))"), "=> (NIL NIL NIL)")
    again = await compiled(agent, "(defun e2e-caller () (e2e-checked-only))")
    await compiled(agent, "(defun e2e-checked-only () 1)")
    same(text(await compiled(agent, "(defun e2e-caller () (e2e-checked-only))")), text(again))


@check
async def it_knows_what_the_image_has(agent):
    await value(agent, "(defmacro e2e-unless (test form) `(if ,test nil ,form))", package="CL-USER")
    assert facts(await compiled(agent, "(defun e2e-user (x) (e2e-unless x 1))"))["warnings"] == 0


@check
async def read_time_evaluation_is_refused(agent):
    result = await compiled(agent, "(print #.(+ 1 2))")
    assert result["isError"] and facts(result)["success"] is False, text(result)


@check
async def a_macro_that_never_returns_meets_the_deadline(agent):
    result = await compiled(agent, "(defmacro e2e-endless () (loop)) (e2e-endless)", timeout=2)
    assert not result["isError"] and facts(result)["success"] is False, text(result)
    assert "never ends" in text(result), text(result)
    same(await value(agent, "(+ 1 2)"), "=> 3")


# Calls while Lisp works.


@check
async def other_calls_are_answered_while_lisp_loops_and_a_cancel_keeps_the_state(agent):
    await value(agent, "(defvar *e2e-before* :kept)")
    await value(agent, "(defvar *e2e-loops* nil) (setf *e2e-loops* nil)")
    endless = agent.start("evaluate-lisp", {"code": "(setf *e2e-loops* t) (unwind-protect (loop) (setf *e2e-loops* nil))", "timeout": 300})
    other = await agent.another()

    async def is_looping():
        return await value(other, "cl-user::*e2e-loops*") == "=> T"

    async def has_stopped():
        return await value(other, "cl-user::*e2e-loops*") == "=> NIL"

    await eventually(is_looping, "the loop never began")
    assert await agent.tools()
    assert facts(await compiled(agent, "(defun f () 1)"))["success"]
    endless.cancel()
    await eventually(has_stopped, "a cancel did not stop the loop")
    same(await value(agent, "*e2e-before*"), "=> :KEPT")


@check
async def two_agents_share_the_image_and_not_the_package(agent):
    other = await agent.another()
    await value(agent, "(defun cl-user::e2e-shared () :shared)", package="CL-USER")
    same(await value(other, "(cl-user::e2e-shared)"), "=> :SHARED")
    await value(other, "(in-package :keyword)")
    same(await value(other, "(cl:package-name cl:*package*)"), '=> "KEYWORD"')
    assert await value(agent, "(package-name *package*)") != '=> "KEYWORD"'


@check
async def progress_is_told_to_those_who_ask(agent):
    told = []
    other = await agent.another()
    await value(other, "(defvar cl-user::*e2e-enough* nil) (setf cl-user::*e2e-enough* nil)")
    code = '(loop for i from 0 until cl-user::*e2e-enough* do (format t "step ~D~%" i) (finish-output) (sleep 0.1) finally (return :done))'

    async def enough():
        return len(told) >= 3

    async def asked():
        return await agent.call("evaluate-lisp", {"code": code, "timeout": 2 * PATIENCE}, on_progress=lambda progress, message: told.append((progress, message)))

    running = asyncio.ensure_future(asked())
    try:
        await eventually(enough, "progress that is told three times")
    finally:
        await value(other, "(setf cl-user::*e2e-enough* t)")
    result = await running
    assert text(result).endswith("=> :DONE"), text(result)
    amounts = [progress for progress, _ in told]
    assert amounts == sorted(set(amounts)), told
    assert any("step" in (message or "") for _, message in told), told


import profile_checks  # noqa: E402,F401 its checks use what is above
# lisp-read-file and lisp-edit-form.


@check
async def forms_are_read_and_edits_tried_without_asking_anybody(agent):
    path = os.path.join(os.environ["CONSORT_WORKSPACE"], "forms.lisp")
    source = "(in-package :cl-user)\n(defun f (x)\n  \"(\" x)\n(defmethod m ((x list)) 1)\n(defmethod m ((x null)) 2)\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    read = await agent.call("lisp-read-file", {"path": "forms.lisp", "name_pattern": "^f$"})
    assert not read.get("isError"), text(read)
    assert 'L2-3 (defun f (x)\n  "(" x)' in text(read), text(read)
    same([form["form_name"] for form in facts(read)["forms"]], ["cl-user", "f", "m (list)", "m (null)"])
    edit = {"file_path": "forms.lisp", "form_type": "defmethod", "operation": "replace", "content": "(defmethod m (x) 3)", "dry_run": True}
    dry = await agent.call("lisp-edit-form", {**edit, "form_name": "m (null)"})
    assert not dry.get("isError") and facts(dry)["changed"] is False, text(dry)
    several = await agent.call("lisp-edit-form", {**edit, "form_name": "m"})
    assert several["isError"] and "form_name m (list)" in text(several), text(several)
    unbalanced = await agent.call("lisp-edit-form", {**edit, "form_name": "m (null)", "content": "(defmethod m (x) 3"})
    assert not unbalanced["isError"] and "put the missing `)` in" in text(unbalanced), text(unbalanced)
    broken = await agent.call("lisp-edit-form", {**edit, "form_name": "m (null)", "content": "(defmethod m (x) \"3)"})
    assert broken["isError"] and "never closed" in text(broken), text(broken)
    outside = await agent.call("lisp-read-file", {"path": "/etc/passwd"})
    assert outside["isError"] and "outside" in text(outside), text(outside)
    with open(path, encoding="utf-8") as file:
        same(file.read(), source)
