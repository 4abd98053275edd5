"""profile-code by its contract, its verification strategy sentence by sentence; and run-tests. Figures differ from run to run: shapes are asserted."""

import re
import time

from jsonschema import Draft202012Validator

from contract import PATIENCE, check, evaluate, eventually, facts, same, text, value

TEN = """
(defun hot (n) (declare (fixnum n)) (let ((s 0)) (declare (fixnum s)) (dotimes (i n s) (setf s (logxor i (logand s 1023))))))
(macrolet ((cold (&rest names) `(progn ,@(loop for name in names collect `(defun ,name () (list ',name (random 10)))))))
  (cold cold1 cold2 cold3 cold4 cold5 cold6 cold7 cold8 cold9))
(defun ten (n) (dotimes (i n :done) (hot 10000000) (cold1) (cold2) (cold3) (cold4) (cold5) (cold6) (cold7) (cold8) (cold9)))
"""


async def profiled(agent, code, **more):
    return await agent.call("profile-code", {"code": code, **{name.replace("_", "-"): given for name, given in more.items()}})


async def profiled_until(agent, code, samples, amount=1, **more):
    """The profile of CODE, with more and more of the work, by the AMOUNT that takes the place of `{}` in it, until there are SAMPLES. How long a piece of
    work takes, and so how many samples it is worth, is the machine's."""
    end = time.monotonic() + PATIENCE
    while True:
        result = await profiled(agent, code.replace("{}", str(amount)), **more)
        assert not result.get("isError"), text(result)
        if facts(result)["samples"] >= samples:
            return result
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s in vain for {samples} samples; with {amount}:\n{text(result)}"
        amount *= 2


def row(result, name):
    return next((row for row in facts(result)["rows"] if row["function"] == name), None)


def adds_up(node):
    children = node.get("children", [])
    return node["own"] + sum(child["samples"] for child in children) == node["samples"] and all(map(adds_up, children))


@check
async def profile_hot_spot_identification(agent):
    await value(agent, TEN)
    result = await profiled_until(agent, "(ten {})", 20, 8, mode="cpu")
    first = facts(result)["rows"][0]
    assert first["function"] == "HOT" and first["self_percent"] >= 80, text(result)
    assert re.search(r"^Function +Samples +Self% +Cumulative%\n-+\nHOT +\d+ +\d+\.\d% +\d+\.\d%$", text(result), re.M), text(result)
    assert re.search(r"^(The top hot spot accounts|Top [23] hot spots account) for \d+% of execution time\.$", text(result), re.M), text(result)


@check
async def profile_of_a_fifth_of_a_second_has_samples(agent):
    result = await profiled(agent, "(let ((end (+ (get-internal-run-time) (floor internal-time-units-per-second 5)))) (loop until (> (get-internal-run-time) end)))")
    assert facts(result)["samples"] > 0, text(result)


@check
async def profile_modes_differ_for_what_waits(agent):
    await value(agent, "(defun e2e-waits () (sleep 0.6) 1)")
    cpu = await profiled(agent, "(e2e-waits)", mode="cpu")
    waited = await profiled_until(agent, "(loop repeat {} do (e2e-waits))", 20, mode="time")
    # Waiting takes almost no processor time: the few samples are of the code around it.
    assert facts(cpu)["samples"] <= facts(waited)["samples"] / 10, (text(cpu), text(waited))
    assert row(waited, "E2E-WAITS")["inclusive_percent"] > 80, text(waited)
    assert text(waited).startswith("Statistical Profile (TIME mode)\nTotal samples: "), text(waited)


@check
async def profile_allocation_shows_the_allocator(agent):
    await value(agent, "(defun e2e-hog () (loop repeat 200000 collect (make-array 20)) t) (defun e2e-modest () (loop repeat 10000 collect (list 1 2 3)) t)")
    await value(agent, "(e2e-hog) (e2e-modest)")
    counted = int((await value(agent, "(let ((before (sb-ext:get-bytes-consed))) (e2e-hog) (- (sb-ext:get-bytes-consed) before))"))[3:])
    result = await profiled(agent, "(progn (e2e-hog) (e2e-modest))", mode="alloc")
    first = facts(result)["rows"][0]
    assert first["function"] == "E2E-HOG" and 0.9 * counted < first["bytes"] < 1.1 * counted, (counted, text(result))
    assert re.search(r"^Function +Samples +Bytes +%\n-+\nE2E-HOG +\d+ +\d+\.\d MB +\d+\.\d%$", text(result), re.M), text(result)
    assert re.search(r"^Total allocation: \d+\.\d MB$", text(result), re.M), text(result)


@check
async def profile_fast_code_is_warned_of(agent):
    result = await profiled(agent, "(+ 1 2 3)", mode="cpu")
    shape = (
        r"Statistical Profile \(CPU mode\)\nTotal samples: 0\n\nWarning: Code executed too quickly to collect samples\.\n"
        r"\(Duration: (<0\.01|\d+\.\d\d)s\)\n\nFor reliable profiling, code should run at least 0\.5 seconds\.\n\nResult: 6\b"
    )
    assert re.match(shape, text(result)), text(result)
    assert not result.get("isError")


@check
async def profile_report_formats(agent):
    definitions = "(declaim (notinline e2e-b)) (defun e2e-b () (random 100)) (defun e2e-a (times) (let ((n 0)) (loop repeat times do (incf n (e2e-b))) n))"
    await value(agent, definitions)
    result = await profiled_until(agent, "(e2e-a {})", 20, 5_000_000, mode="cpu", report_type="graph")
    answer = text(result)
    assert answer.startswith("Statistical Profile (CPU mode)\n") and "Call Graph (inclusive times):" in answer, answer
    assert re.search(r"^E2E-A \[\d+\.\d%\]$", answer, re.M) and re.search(r"^ +[├└]─ \S+.* \[\d+\.\d%\]$", answer, re.M), answer
    assert re.search(r"^  E2E-A: \d+\.\d% inclusive, \d+\.\d% exclusive \(\d+ samples\)$", answer, re.M), answer
    assert "Note: Percentages show inclusive time (function + callees)" in answer
    tree = facts(result)["tree"]
    assert all(map(adds_up, tree)) and sum(node["samples"] for node in tree) == facts(result)["samples"], tree
    counts = [int(line.rsplit(" ", 1)[1]) for line in facts(result)["folded"]]
    assert sum(counts) == facts(result)["samples"] and all(";" in line or " " in line for line in facts(result)["folded"])


@check
async def profile_keeps_the_result_and_the_session(agent):
    result = await profiled(agent, "(defun e2e-fib (n) (if (<= n 1) n (+ (e2e-fib (- n 1)) (e2e-fib (- n 2))))) (e2e-fib 27)", mode="cpu", report_type="flat")
    assert "\nResult: 196418" in text(result) and facts(result)["values"] == ["196418"], text(result)
    same(await value(agent, "*"), "=> 196418")
    printed = await profiled(agent, "(princ \"shown\") (values 1 2)")
    assert "[stdout]\nshown" in text(printed) and facts(printed)["values"] == ["1", "2"], text(printed)
    listed = await profiled(agent, "(loop repeat 10000 collect (make-list 100))", mode="alloc")
    assert row(listed, "MAKE-LIST") or facts(listed)["rows"], text(listed)


@check
async def profile_errors_are_caught_and_it_profiles_again(agent):
    for mode in ["cpu", "time", "alloc"]:
        result = await profiled(agent, '(error "intentional error")', mode=mode)
        assert result["isError"] and text(result).startswith("[ERROR] SIMPLE-ERROR\nintentional error\n\n[Backtrace]\n0: "), text(result)
        assert "(Profiling stopped due to error)" in text(result)
        assert not (await profiled(agent, "(+ 1 2)", mode=mode)).get("isError")
    unread = await profiled(agent, "(car")
    assert unread["isError"] and "END-OF-FILE" in text(unread), text(unread)
    endless = await profiled(agent, "(loop (random 10))", timeout=1)
    assert endless["isError"] and "Total samples:" in text(endless) and facts(endless)["status"] == "timeout", text(endless)
    same(text(await profiled(agent, "1", package="NO-SUCH-PACKAGE")), "Package NO-SUCH-PACKAGE not found")
    invalid = await profiled(agent, "(+ 1 2)", mode="invalid")
    same(text(invalid), '[ERROR] SIMPLE-ERROR\nInvalid profiling mode: "invalid". Valid modes: cpu, time, alloc')
    assert invalid["isError"]


@check
async def profiles_run_one_at_a_time(agent):
    other = await agent.another()
    await value(agent, "(defvar *e2e-profiling* nil) (setf *e2e-profiling* nil)")
    running = agent.start("profile-code", {"code": "(setf *e2e-profiling* t) (unwind-protect (sleep 300) (setf *e2e-profiling* nil))", "mode": "time", "timeout": 300})

    async def runs():
        return await value(other, "cl-user::*e2e-profiling*") == "=> T"

    async def stopped():
        return await value(other, "cl-user::*e2e-profiling*") == "=> NIL"

    await eventually(runs, "the profile never began")
    second = await profiled(other, "1")
    assert second["isError"] and "Another profile is running" in text(second), text(second)
    running.cancel()
    await eventually(stopped, "a cancel did not stop the profile")

    async def again():
        return not (await profiled(other, "1")).get("isError")

    await eventually(again, "no other profile could begin")


@check
async def profiles_answer_as_the_schema_says(agent):
    schemas = {tool["name"]: tool["outputSchema"] for tool in await agent.tools()}
    for arguments in [{"code": "(+ 1 2)"}, {"code": "(/ 1 0)"}, {"code": "1", "mode": "x"}, {"kode": "1"}, {"code": "(loop repeat 100000 collect (list 1))", "mode": "alloc"}]:
        Draft202012Validator(schemas["profile-code"]).validate(facts(await agent.call("profile-code", arguments)))
    for arguments in [{"test": "no-such-test"}, {"package": "NO-SUCH-PACKAGE"}, {"framework": "junit"}]:
        result = await agent.call("run-tests", arguments)
        Draft202012Validator(schemas["run-tests"]).validate(facts(result))
        assert result["isError"] and text(result), arguments


@check
async def tests_of_fiveam_are_run(agent):
    loaded = await evaluate(agent, "(and (asdf:find-system :fiveam nil) (asdf:load-system :fiveam))", timeout=120)
    if text(loaded).endswith("=> NIL"):
        return  # cl-fiveam is not installed
    await value(agent, "(defpackage :e2e-fiveam (:use :cl :fiveam))")
    code = "(def-suite e2e-suite) (in-suite e2e-suite) (test right (is (= 4 (+ 2 2)))) (test wrong (princ \"looking\") (is (= 5 (+ 2 2))))"
    await value(agent, code, package="E2E-FIVEAM")
    result = await agent.call("run-tests", {"package": "E2E-FIVEAM"})
    told = facts(result)
    assert not result.get("isError") and told["success"] is False and (told["passed"], told["failed"]) == (1, 1), text(result)
    wrong = next(test for test in told["tests"] if test["status"] == "failed")
    assert wrong["name"] == "E2E-FIVEAM::WRONG" and wrong["suite"] == "E2E-FIVEAM::E2E-SUITE" and "looking" in wrong["output"], wrong
    assert wrong["failures"][0]["actual"] == "4" and wrong["failures"][0]["expected"] == "5", wrong
    assert text(result).startswith("2 tests: 1 passed, 1 failed (fiveam)\n\nFAILED E2E-FIVEAM::WRONG"), text(result)
    alone = await agent.call("run-tests", {"test": "right", "package": "e2e-fiveam"})
    assert facts(alone)["success"] is True and len(facts(alone)["tests"]) == 1, text(alone)
