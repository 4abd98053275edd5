"""The contracts of evaluate-lisp, compile-form and profile-code, sentence by sentence where the other checks do not reach; and the errors of an agent
that misuses a tool. Every structured answer is validated against the schema that is listed."""

import os
import re

from jsonschema import Draft202012Validator

from contract import check, compiled, evaluate, eventually, facts, same, text, value
from profile_checks import profiled, profiled_until


class Validated:
    """An agent whose answers are as the listed schemas say."""

    def __init__(self, agent):
        self.agent, self.schemas = agent, None

    async def call(self, name, arguments, **more):
        if self.schemas is None:
            self.schemas = {tool["name"]: tool["outputSchema"] for tool in await self.agent.tools()}
        result = await self.agent.call(name, arguments, **more)
        Draft202012Validator(self.schemas[name]).validate(facts(result))
        same([block["type"] for block in result["content"]], ["text"])
        return result


# evaluate-lisp.


@check
async def forms_are_evaluated_in_sequence_until_one_cannot_be_read(agent):
    agent = Validated(agent)
    same(await value(agent, "(defvar *s-order* nil) (setf *s-order* (list 1)) (push 2 *s-order*) (push 3 *s-order*)"), "=> (3 2 1)")
    result = await evaluate(agent, "(push 4 *s-order*) (list")
    assert result["isError"] and text(result).startswith("[ERROR] END-OF-FILE\nend of file on #<STRING-INPUT-STREAM>"), text(result)
    same(await value(agent, "*s-order*"), "=> (4 3 2 1)")
    # A form is read when those before it have been evaluated.
    same(await value(agent, "(defpackage :s-read (:use :cl)) (list 's-read::x)"), "=> (S-READ::X)")


@check
async def a_session_begins_in_cl_user_and_a_package_is_for_one_call(agent):
    agent = Validated(agent)
    same(await value(agent, "(package-name *package*)"), '=> "COMMON-LISP-USER"')
    same(await value(agent, "(cl:package-name cl:*package*)", package="KEYWORD"), '=> "KEYWORD"')
    same(await value(agent, "(package-name *package*)"), '=> "COMMON-LISP-USER"')
    # Clients that fill in every field send an empty text for a missing value.
    same(await value(agent, "(package-name *package*)", package=""), '=> "COMMON-LISP-USER"')


@check
async def values_are_printed_as_the_contract_says(agent):
    agent = Validated(agent)
    hundred = await value(agent, "(loop for i from 1 to 101 collect i)")
    same(hundred.removeprefix("=> ").split(), ["(1", *map(str, range(2, 101)), "...)"])
    assert "\n" in hundred, "pretty"
    deep = "(let ((x :bottom)) (dotimes (i {}) (setf x (list x))) x)"
    same(await value(agent, deep.format(10)), "=> ((((((((((:BOTTOM))))))))))")
    same(await value(agent, deep.format(11)), "=> ((((((((((#))))))))))")
    same(await value(agent, "(let ((x (list 1 2))) (setf (cddr x) x))"), "=> #1=(1 2 . #1#)")
    same(await value(agent, '(list "a\\"b" #\\Space \'|a b| (intern "lower"))'), '=> ("a\\"b" #\\  |a b| |lower|)')


@check
async def sections_are_left_out_when_they_are_empty(agent):
    agent = Validated(agent)
    same(await value(agent, '(format *error-output* "e") 1'), "[stderr]\ne\n\n=> 1")
    same(await value(agent, '(format *trace-output* "t") 1'), "[stderr]\nt\n\n=> 1")
    same(await value(agent, '(princ "o") 1'), "[stdout]\no\n\n=> 1")
    warned = await value(agent, "(warn 'sb-int:simple-style-warning :format-control \"styled\") 1")
    same(warned, "[warnings]\nSTYLE-WARNING: styled\n\n=> 1")
    same(await value(agent, "1", **{"capture-time": False}), "=> 1")
    # No person is at the other end of these streams.
    same(await value(agent, '(format *debug-io* "d") (format *query-io* "q") 1'), "=> 1")


@check
async def a_warning_does_not_stop_the_evaluation(agent):
    result = await evaluate(Validated(agent), '(warn "one") (warn "two") (defun s-warned (x) (no-such-function-at-all)) (princ "still") :value')
    answer = text(result)
    assert not result["isError"] and answer.endswith("=> :VALUE") and answer.startswith("[stdout]\nstill"), answer
    assert answer.index("WARNING: one") < answer.index("WARNING: two") < answer.index("STYLE-WARNING: undefined function"), answer


@check
async def every_error_has_a_type_a_message_and_numbered_frames(agent):
    agent = Validated(agent)
    await value(agent, '(defun s-deep (n) (if (zerop n) (error "bottom") (1+ (s-deep (1- n)))))')
    for code, kind, frame in [
        ('(error "intentional")', "SIMPLE-ERROR", '(ERROR "intentional")'),
        ("(no-such-function 1)", "UNDEFINED-FUNCTION", "(EVAL (NO-SUCH-FUNCTION 1))"),
        ("no-such-variable", "UNBOUND-VARIABLE", "(EVAL NO-SUCH-VARIABLE)"),
        ("(car 1)", "TYPE-ERROR", "(CAR 1)"),
        ("(funcall (lambda (x) x))", "SB-INT:SIMPLE-PROGRAM-ERROR", "((LAMBDA (X)))"),
        ("(error 'sb-ext:timeout)", "TIMEOUT", "(ERROR TIMEOUT)"),
        ("(list 1", "END-OF-FILE", "(READ)"),
    ]:
        result = await evaluate(agent, code)
        lines = text(result).split("\n")
        assert result["isError"] and lines[0] == f"[ERROR] {kind}" and lines[1], text(result)
        assert lines[lines.index("[Backtrace]") + 1].startswith(f"0: {frame}"), text(result)
        same((facts(result)["status"], facts(result)["error"]["type"]), ("error", kind))
    answer = text(await evaluate(agent, "(s-deep 100)"))
    frames = answer.split("[Backtrace]\n")[1].split("\n\n")[0].split("\n")
    same(len(frames), 20)
    same(frames[1:3], ["1: (S-DEEP 0)", "2: (S-DEEP 1)"])
    for internal in ["EVAL", "SB-IMPL", "SB-KERNEL", "CONSORT", "INVOKE-DEBUGGER"]:
        assert not any(f"({internal}" in frame for frame in frames), answer


@check
async def an_error_in_a_thread_of_the_code_is_told_and_the_image_lives(agent):
    agent = Validated(agent)
    image = await value(agent, "(consort:image-id)")
    told = []

    async def is_told():
        told.append(text(await evaluate(agent, ":next")))
        return any("An error ended the Lisp thread" in one and "elsewhere" in one for one in told)

    made = '(sb-thread:join-thread (sb-thread:make-thread (lambda () (error "elsewhere")) :name "made") :default :gone)'
    told.append(text(await evaluate(agent, made)))
    await eventually(is_told, f"not told: {told}")
    same(await value(agent, "(consort:image-id)"), image)


# compile-form.


@check
async def statistics_and_each_condition_are_as_the_contract_has_them(agent):
    agent = Validated(agent)
    code = "(defun s-a (x) (s-nowhere) (s-nowhere))\n(defun s-b (y) (declare (optimize speed)) (+ y 1))\n(defun s-c () (let ((z 1 2)) z))"
    result = await compiled(agent, code)
    counts = {name: facts(result)[name] for name in ["warnings", "errors", "style_warnings", "notes"] if name in facts(result)}
    head = text(result).split("\n\n")[0].split("\n")
    same(head[0], "Compilation failed")
    same(head[1:3], ["Warnings: 2", "Errors: 1"])
    assert head[3] == "Style-warnings: 1" and re.fullmatch(r"Notes: [1-9]\d*", head[4]), head
    assert counts["warnings"] == 2 and counts["errors"] == 1, counts
    blocks = [block for block in text(result).split("\n\n")[1:] if not block.startswith("Compiled ")]
    for block in blocks:
        shape = r"(ERROR|WARNING|STYLE-WARNING|NOTE): .+\n(?:.*\n)*?  in form: \(.+\n  at: line \d+, column \d+\n  severity: (\S+)"
        found = re.fullmatch(shape, block)
        assert found and found[1] == found[2], block
    # Each use by itself, at its place.
    assert "  at: line 1, column 17\n" in text(result) and "  at: line 1, column 29\n" in text(result), text(result)
    same(text(result).split("\n\n")[-1], "Compiled 2 of 3 forms successfully")


@check
async def a_long_form_is_abbreviated_in_its_condition(agent):
    code = f"(defun s-long () (s-nowhere) {' '.join(f'(list {number} {number})' for number in range(200))})"
    line = re.search(r"^  in form: (.*)$", text(await compiled(Validated(agent), code)), re.M)[1]
    assert line.startswith("(DEFUN S-LONG () (S-NOWHERE)") and len(line) < 200, line


@check
async def warnings_wait_for_the_end_of_the_unit(agent):
    same(text(await compiled(Validated(agent), "(defun s-first () (s-second 1)) (defun s-second (x) x)")).split("\n")[:3],
         ["Compilation successful", "Warnings: 0", "Errors: 0"])


@check
async def the_second_form_counts_as_much_as_the_first(agent):
    agent = Validated(agent)
    ill = await compiled(agent, '(defun s-one () 1)\n(defun s-two () (+ 1 "two"))')
    assert text(ill).startswith("Compilation successful (with warnings)\nWarnings: 1\n") and "at: line 2, column" in text(ill), text(ill)
    unbalanced = await compiled(agent, "(defun s-one () 1)\n(defun s-two () (+ 1 2)")
    assert unbalanced["isError"] and text(unbalanced).startswith("Compilation failed\n"), text(unbalanced)


@check
async def what_runs_at_compile_time_runs_in_the_copy(agent):
    agent = Validated(agent)
    await value(agent, "(defvar *s-runs* 0) (defmacro s-running () (incf *s-runs*)) (setf *s-runs* 0)")
    code = "(defun s-f () (macrolet ((m () (incf *s-runs*))) (list (m) (s-running) (load-time-value (incf *s-runs*)) #.1)))"
    assert (await compiled(agent, code))["isError"], "read-time evaluation is refused"
    result = await compiled(agent, code.replace("#.1", "1") + ' (print (setf *s-runs* 100)) (format t "EXECUTED")')
    assert facts(result)["success"] and "EXECUTED" not in text(result), text(result)
    same(await value(agent, "*s-runs*"), "=> 0")
    same(await value(agent, "(list (fboundp 's-f) (consort:image-id))"), "=> (NIL " + (await value(agent, "(consort:image-id)"))[3:] + ")")


@check
async def code_is_compiled_in_its_package_and_by_default_in_cl_user(agent):
    agent = Validated(agent)
    await value(agent, "(unless (find-package :s-here) (make-package :s-here :use '(:cl))) (defmacro s-here::only-here () 1) (in-package :s-here)")
    same(facts(await compiled(agent, "(defun s-g () (only-here))", package="S-HERE"))["warnings"], 0)
    same(facts(await compiled(agent, "(in-package :s-here) (defun s-g () (only-here))"))["warnings"], 0)
    elsewhere = await compiled(agent, "(defun s-g () (only-here))")
    assert "WARNING: Undefined function: ONLY-HERE" in text(elsewhere), text(elsewhere)
    same(await value(agent, "(package-name *package*)"), '=> "S-HERE"')


@check
async def nesting_without_measure_ends(agent):
    agent = Validated(agent)
    deep = "(" * 3000 + ")" * 3000
    assert facts(await compiled(agent, f"'{deep}"))["success"]
    same(await value(agent, f"(length '{deep})"), "=> 1")
    for tool, argument in [("compile-form", "code"), ("evaluate-lisp", "code"), ("macroexpand-form", "form")]:
        assert text(await agent.call(tool, {argument: "(list " * 3000 + ")" * 3000})), tool
        assert text(await agent.call(tool, {argument: "(" * 100_000})), tool
    same(await value(agent, "(+ 1 2)"), "=> 3")


# profile-code.


@check
async def profile_runs_in_cl_user_unless_told_otherwise(agent):
    agent = Validated(agent)
    await value(agent, "(unless (find-package :s-prof) (make-package :s-prof :use '(:cl))) (in-package :s-prof)")
    same(facts(await profiled(agent, "(package-name *package*)"))["values"], ['"COMMON-LISP-USER"'])
    same(facts(await profiled(agent, "(package-name *package*)", package="s-prof"))["values"], ['"S-PROF"'])


@check
async def profile_of_several_forms_is_of_the_whole_run(agent):
    agent = Validated(agent)
    busy = "(defun {} (n) (let ((s 0)) (declare (fixnum s n)) (dotimes (i n s) (setf s (logxor s i)))))"
    await value(agent, busy.format("s-busy-one") + busy.format("s-busy-two"))
    result = await profiled_until(agent, "(s-busy-one {}) (s-busy-two {}) :both", 20, 50_000_000)
    names = {row["function"] for row in facts(result)["rows"]}
    assert {"S-BUSY-ONE", "S-BUSY-TWO"} <= names and facts(result)["values"] == [":BOTH"], text(result)


@check
async def profile_takes_no_more_samples_than_it_may(agent):
    agent = Validated(agent)
    for mode, code in [("time", "(sleep 0.5)"), ("alloc", "(progn (loop repeat 200000 collect (make-list 20)) 1)")]:
        result = await profiled(agent, code, mode=mode, max_samples=7)
        assert 0 < facts(result)["samples"] <= 7, text(result)
        assert facts(result)["values"], "the run goes on"


@check
async def profile_percentages_add_up(agent):
    agent = Validated(agent)
    await value(
        agent,
        "(declaim (notinline s-left s-right)) (defun s-left (n) (let ((s 0)) (declare (fixnum s)) (dotimes (i n s) (setf s (logxor s i)))))"
        "(defun s-right (n) (1+ (s-left n))) (defun s-top (n) (dotimes (i n (list 1)) (s-left 10000000) (s-right 5000000)))",
    )
    flat = await profiled_until(agent, "(s-top {})", 30, 5)
    rows = [row for row in facts(flat)["rows"]]
    shown = re.findall(r"^(\S.*?) +(\d+) +(\d+\.\d)% +(\d+\.\d)%$", text(flat), re.M)
    assert abs(sum(float(share) for _, _, share, _ in shown) - 100) < 0.1 * len(shown) + 0.1, text(flat)
    same(sum(int(samples) for _, samples, _, _ in shown), facts(flat)["samples"])
    same(shown[-1][3], "100.0")
    running = 0
    for _, _, share, cumulative in shown:
        running += float(share)
        assert abs(running - float(cumulative)) < 0.1 * len(shown) + 0.1, text(flat)
    same([row["samples"] for row in rows], sorted((row["samples"] for row in rows), reverse=True))

    graph = await profiled_until(agent, "(s-top {})", 30, 5, report_type="graph")
    stack = []
    for line in text(graph).split("Call Graph (inclusive times):\n\n")[1].split("\n\n")[0].split("\n"):
        found = re.fullmatch(r"((?:[ │]|├─|└─)*)(\S.*) \[(\d+\.\d)%\]", line)
        assert found, line
        depth, share = len(found[1]), float(found[3])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if stack:
            stack[-1][2].append(share)
            # Rounded figures: each may be wrong by a twentieth.
            assert sum(stack[-1][2]) <= stack[-1][1] + 0.05 * (len(stack[-1][2]) + 1) + 0.01, text(graph)
        stack.append((depth, share, []))
        assert share <= 100.0
    for name, inclusive, exclusive in re.findall(r"^  (\S.*): (\d+\.\d)% inclusive, (\d+\.\d)% exclusive", text(graph), re.M):
        assert float(exclusive) <= float(inclusive), name


@check
async def profile_ends_clearly_when_memory_or_time_runs_out(agent):
    agent = Validated(agent)
    image = await value(agent, "(consort:image-id)")
    for mode in ["cpu", "time", "alloc"]:
        full = await profiled(agent, "(make-array (expt 10 9))", mode=mode)
        assert full["isError"] and "HEAP-EXHAUSTED" in text(full) and "(Profiling stopped due to error)" in text(full), text(full)
        late = await profiled(agent, "(loop)", mode=mode, timeout=0.5)
        assert late["isError"] and facts(late)["status"] == "timeout", text(late)
        undefined = await profiled(agent, "(no-such-function)", mode=mode)
        assert undefined["isError"] and "[Backtrace]\n0: " in text(undefined), text(undefined)
        same(facts(await profiled(agent, "(list 1 2)", mode=mode))["values"], ["(1 2)"])
    same(await value(agent, "(consort:image-id)"), image)


# Misuse: every answer names the error, and the valid choices.


@check
async def misused_tools_say_what_they_take(agent):
    agent = Validated(agent)
    image = await value(agent, "(consort:image-id)")
    for tool, arguments, words in [
        ("evaluate-lisp", {"code": 7}, ["`code` must be a string, not 7", "It takes: code (string, required)"]),
        ("evaluate-lisp", {"code": "1", "timeout": 1e300}, ["`timeout` must be a number from 0.1 to 86400"]),
        ("evaluate-lisp", {"code": "1", "timeout": -1}, ["`timeout` must be a number from 0.1 to 86400, not -1"]),
        ("evaluate-lisp", {"code": "1", "capture_time": True}, ["`capture_time` is not an argument of this tool", "capture-time (boolean)"]),
        ("profile-code", {"code": "1", "sample-interval": 0}, ["`sample-interval` must be a number from 0.0001 to 60, not 0"]),
        ("profile-code", {"code": "1", "sample-interval": 1e-9, "mode": "time"}, ["`sample-interval` must be a number from 0.0001 to 60"]),
        ("profile-code", {"code": "1", "max-samples": 0}, ["`max-samples` must be a whole number from 1 to 100000"]),
        ("profile-code", {"code": "1", "report-type": "tree"}, ['one of "flat", "graph"']),
        ("code_compile_string", {"code": "(list 1)", "position": 10**12}, ["`position` must be a whole number from 1 to 1000000"]),
        ("lisp-read-file", {"path": ""}, ["`path` must be a string that is not empty"]),
        ("lisp-read-file", {"path": "."}, ["no regular file"]),
        ("lisp-read-file", {"path": "no-such.lisp"}, ["Paths are absolute or start at the workspace"]),
        ("lisp-read-file", {"path": "a\0b"}, ["cannot be read"]),
        ("lisp-read-file", {"path": "../" * 20 + "etc/passwd"}, ["outside of the workspace"]),
        ("source_location", {"symbol": ""}, ["`symbol` must be a string that is not empty"]),
        ("describe-symbol", {"symbol": ""}, ["`symbol` must be a string that is not empty"]),
        ("diagnostics", {"paths": [7]}, ["`paths` must be a list of strings, not a list with 7"]),
        ("diagnostics", {"paths": ["/etc"]}, ["is not in the workspace"]),
        ("image", {"action": "explode"}, ['one of "status", "interrupt", "restart"']),
        ("code_undo", {"steps": 1}, ["`steps` is not an argument of this tool", "It takes: no arguments"]),
        ("load-system", {"system": ""}, ["`system` must be a string that is not empty"]),
        ("load-system", {"system": "s-no-such-system"}, ["ASDF finds no such system.", "Quicklisp"]),
        ("run-tests", {"system": "s-no-such-system"}, ["ASDF finds no such system.", "[Backtrace]\n0: "]),
    ]:
        result = await agent.call(tool, arguments)
        for word in words:
            assert result["isError"] and word in text(result), (tool, arguments, text(result))
    same(await value(agent, "(consort:image-id)"), image)


@check
async def looking_for_what_is_not_there_is_told(agent):
    agent = Validated(agent)
    with open(os.path.join(os.environ["CONSORT_WORKSPACE"], "s-forms.lisp"), "w", encoding="utf-8") as file:
        file.write("(defun s-one () 1)\n(defun s-two () 2)\n")
    read = await agent.call("lisp-read-file", {"path": "s-forms.lisp", "name_pattern": "three"})
    assert "`three` names no form" in text(read) and len(facts(read)["forms"]) == 2, text(read)
    beyond = await agent.call("lisp-read-file", {"path": "s-forms.lisp", "offset": 10**9})
    assert "it has 2 top-level forms, and none behind offset" in text(beyond), text(beyond)
    same(text(await agent.call("image", {"action": "interrupt"})), "Nothing of yours was running.")


@check
async def odd_characters_come_back_as_they_went(agent):
    agent = Validated(agent)
    same(await value(agent, '(list (length "a\0b") (map (quote list) (function char-code) "é𝄞\u202e\u200b"))'), "=> (3 (233 119070 8238 8203))")
    same(await value(agent, "(defun ñandú (λ) (list λ \"𝄞\")) (ñandú 1)"), '=> (1 "𝄞")')
    same(text(await evaluate(agent, "1", package="NO\0SUCH")), "Package NO\0SUCH not found")
    bad = await compiled(agent, "(defun s-𝄞 () (s-nowhere-𝄞))")
    assert "at: line 1, column 16" in text(bad) and "S-NOWHERE-𝄞" in text(bad), text(bad)


@check
async def a_system_of_the_workspace_stays_the_workspaces(agent):
    """ASDF looks for a system anew when it is asked of it; one of the same name that is installed must not take its place."""
    agent = Validated(agent)
    here, installed = (os.path.join(os.environ["CONSORT_WORKSPACE"], name) for name in ["s-sys", "installed/deep/down/below/the/s-sys"])
    definition = '(asdf:defsystem "s-sys" :serial t :components ((:file "z-package") (:file "code")))\n'
    for directory in [here, installed]:
        os.makedirs(directory, exist_ok=True)
        for name, content in [
            ("s-sys.asd", definition),
            ("z-package.lisp", "(defpackage :s-sys (:use :cl) (:export #:answer))\n"),
            # As hunchentoot does for its version.
            ("code.lisp", "(in-package :s-sys)\n(defun answer () #.(namestring (asdf:system-source-file (asdf:find-system :s-sys))))\n"),
        ]:
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(content)
    await value(agent, f'(pushnew #p"{installed}/" asdf:*central-registry* :test #\'equal)')
    mine = f'=> "{os.path.realpath(here)}/s-sys.asd"'
    loaded = await agent.call("load-system", {"system": "s-sys"})
    assert facts(loaded)["loaded"], text(loaded)
    same(await value(agent, "(s-sys:answer)"), mine)
    same(await value(agent, '(namestring (asdf:system-source-file (asdf:find-system "s-sys")))'), mine)
    reloaded = await agent.call("code_reload_package", {"package": "S-SYS"})
    assert not reloaded.get("isError"), text(reloaded)
    same([os.path.basename(file) for file in facts(reloaded)["report"]["files"]], ["z-package.lisp", "code.lisp"])
    same(await value(agent, "(s-sys:answer)"), mine)
    await value(agent, "(setf asdf:*central-registry* '())")
