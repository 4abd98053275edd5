"""The needs of an agent that works on a system: little output, changed files checked together, edits of parts, operations of people, threads."""

import json
import os
import subprocess

from contract import PATIENCE, check, eventually, facts, same, text
from hot_reload import WORKSPACE, write


def system(name, files):
    components = " ".join(f'(:file "{file}")' for file in files)
    write(f"{name}/{name}.asd", f'(defsystem "{name}" :serial t :components ({components}))\n')
    for file, content in files.items():
        write(f"{name}/{file}.lisp", content)


async def loaded(agent, name):
    result = await agent.call("load-system", {"system": name})
    assert not result.get("isError") and facts(result)["loaded"], text(result)
    return result


@check
async def a_print_loop_costs_four_kilobytes_and_the_rest_can_be_read(agent):
    result = await agent.call("evaluate-lisp", {"code": "(dotimes (i 5000 :done) (format t \"line ~D~%\" i))"})
    whole = json.dumps(result)
    assert len(whole) < 7_000, len(whole)
    assert "line 0\n" in text(result) and "line 4999\n" in text(result) and text(result).endswith("=> :DONE"), text(result)
    assert whole.count("line 1\\n") <= 2, "text and data do not carry the same bulk"
    handle = facts(result)["full_output"]
    assert f'full-output {{"handle": {handle}}}' in text(result), text(result)
    found = await agent.call("full-output", {"handle": handle, "search": "line 2500"})
    assert "line 2500" in text(found) and facts(found)["found"] == 1, text(found)
    seen, line = "", 1
    while line:
        page = await agent.call("full-output", {"handle": handle, "line": line, "limit": 20_000})
        seen, line = seen + text(page).split("\n", 1)[1] + "\n", facts(page).get("next_line")
    assert all(f"line {number}\n" in seen for number in range(5000))
    gone = await agent.call("full-output", {"handle": 10_000})
    assert gone["isError"] and "Call the tool again" in text(gone), text(gone)


@check
async def loading_tells_warnings_and_counts(agent):
    quiet = "".join(f"(defun wa-unused-{number} (x) (let ((y 1)) 2))\n" for number in range(200))
    system("wa-chatty", {"chatty": f"(in-package :cl-user)\n{quiet}"})
    result = await loaded(agent, "wa-chatty")
    assert len(text(result)) < 600 and "style warnings" in text(result), text(result)
    assert "caught STYLE-WARNING" not in text(result) and "1 file compiled" in text(result), text(result)
    whole = await agent.call("full-output", {"handle": facts(result)["full_output"], "search": "caught STYLE-WARNING"})
    assert facts(whole)["found"] >= 200, text(whole)


@check
async def plain_asdf_finds_the_workspace(agent):
    system("wa-plain", {"plain": "(defpackage :wa-plain (:use :cl) (:export #:here))\n(in-package :wa-plain)\n(defun here () :workspace)\n"})
    result = await agent.call("evaluate-lisp", {"code": '(asdf:load-system "wa-plain") (uiop:symbol-call :wa-plain :here)'})
    assert not result.get("isError") and "=> :WORKSPACE" in text(result), text(result)
    # A system that was loaded from elsewhere is reported once in an image, which several clients
    # of these tests share.
    other = f"wa-other-{os.getpid()}"
    elsewhere = os.path.join(os.environ["TMPDIR"], "wa-elsewhere")
    os.makedirs(elsewhere, exist_ok=True)
    with open(os.path.join(elsewhere, f"{other}.asd"), "w") as file:
        file.write(f'(defsystem "{other}")\n')
    await agent.call("evaluate-lisp", {"code": f'(asdf:load-asd "{elsewhere}/{other}.asd") (asdf:load-system "{other}")'})
    system(other, {"other": "(in-package :cl-user)\n"})
    result = await agent.call("evaluate-lisp", {"code": "(asdf:already-loaded-systems)"})
    assert "wa-elsewhere" in text(result) and "not the workspace's" in text(result), text(result)
    os.remove(os.path.join(elsewhere, f"{other}.asd"))
    # The same through a function of the agent's own, whose call says nothing of loading.
    await agent.call("evaluate-lisp", {"code": "(defun wa-get (name) (asdf:load-system name))"})
    late, foreign = f"wa-late-{os.getpid()}", f"wa-foreign-{os.getpid()}"
    system(late, {"late": "(in-package :cl-user)\n"})
    write(f"{late}.asd", f'(defsystem "{late}" :components ((:file "{late}/late")))\n')
    result = await agent.call("evaluate-lisp", {"code": f'(wa-get "{late}")'})
    assert not result.get("isError"), text(result)
    with open(os.path.join(elsewhere, f"{foreign}.asd"), "w") as file:
        file.write(f'(defsystem "{foreign}")\n')
    await agent.call("evaluate-lisp", {"code": f'(asdf:load-asd "{elsewhere}/{foreign}.asd") (wa-get "{foreign}")'})
    write(f"{foreign}.asd", f'(defsystem "{foreign}")\n')
    write(f"{late}-too.asd", f'(defsystem "{late}-too")\n')
    result = await agent.call("evaluate-lisp", {"code": f'(wa-get "{late}-too")'})
    assert foreign in text(result) and "not the workspace's" in text(result), text(result)
    os.remove(os.path.join(elsewhere, f"{foreign}.asd"))
    os.rmdir(elsewhere)


@check
async def names_of_packages_follow_one_rule(agent):
    await agent.call("evaluate-lisp", {"code": '(defpackage :wa-case (:use :cl)) (defpackage "wa-Lower" (:use :cl))'})
    for tool, arguments in [
        ("evaluate-lisp", {"code": "(package-name *package*)"}),
        ("compile-form", {"code": "(car nil)"}),
        ("macroexpand-form", {"form": "(when a b)"}),
        ("describe-symbol", {"symbol": "car"}),
        ("source_location", {"symbol": "car"}),
        ("apropos", {"pattern": "ca"}),
        ("profile-code", {"code": "(+ 1 2)"}),
    ]:
        for name in ["wa-case", "WA-CASE", ":wa-case", "#:wa-case", "wa-Lower", "|wa-Lower|"]:
            result = await agent.call(tool, {**arguments, "package": name})
            assert "not found" not in text(result), (tool, name, text(result))
        missing = await agent.call(tool, {**arguments, "package": "wa-lower"})
        assert missing["isError"] and text(missing).endswith("Package wa-lower not found"), (tool, text(missing))


@check
async def changed_files_are_checked_together(agent):
    # Several clients of these tests share an image.
    both = f"wa-both-{os.getpid()}"
    first = f"(defpackage :{both} (:use :cl))\n(in-package :{both})\n(defun price (x) x)\n"
    second = f"(in-package :{both})\n(defun total (x) (price x))\n"
    system(both, {"first": first, "second": second})
    await loaded(agent, both)
    write(f"{both}/first.lisp", first.replace("(x) x", "(x rate) (* x rate)") + "(defun fee (x) x)\n")
    result = await agent.call("diagnostics", {"path": both, "severity": "style-warning"})
    assert "wrong-argument-count" in text(result), text(result)
    write(f"{both}/second.lisp", second.replace("(price x)", "(fee (price x 2))"))
    result = await agent.call("diagnostics", {"paths": [both], "severity": "style-warning"})
    assert [one["diagnostics"] for one in facts(result)["files"]] == [[], []], text(result)
    not_loaded = [[form["names"] for form in one["not_loaded"]] for one in facts(result)["files"]]
    assert not_loaded == [[["PRICE"], ["FEE"]], [["TOTAL"]]], not_loaded
    # The image is as it was.
    seen = await agent.call("evaluate-lisp", {"code": f"(list (fboundp (quote {both}::fee)) ({both}::total 3))"})
    assert "=> (NIL 3)" in text(seen), text(seen)


@check
async def calls_between_changed_files_are_measured_both_ways(agent):
    name = f"wa-calls-{os.getpid()}"
    package = f"(defpackage :{name} (:use :cl))\n"

    def files(early, base, late, user):
        write(f"{name}/a.lisp", f"(in-package :{name})\n(defun early (x) {early})\n(defun base {base} (list {base.strip('()')}))\n")
        write(f"{name}/b.lisp", f"(in-package :{name})\n(defun late {late} (list {late.strip('()')}))\n(defun user (x) {user})\n")

    system(name, {"package": package, "a": "", "b": ""})
    files("(late x)", "(x)", "(x)", "(base x)")
    await loaded(agent, name)

    async def bad_calls():
        result = await agent.call("diagnostics", {"path": name})
        return [(os.path.basename(one["file"]), finding["line"], finding["code"]) for one in facts(result)["files"] for finding in one["diagnostics"]], text(result)

    # The function is in the earlier file, the call in the later one; then the other way round. Each
    # call is wrong first, then right.
    wrong, right = (lambda file, line: [(file, line, "wrong-argument-count")]), []
    for early, base, late, user, expected in [
        ("(list (late x))", "(x y)", "(x)", "(list (base x))", wrong("b.lisp", 3)),
        ("(list (late x))", "(x y)", "(x)", "(list (base x 1))", right),
        ("(list (late x))", "(x)", "(x y)", "(list (base x))", wrong("a.lisp", 2)),
        ("(late x)", "(x)", "(x y)", "(base x)", wrong("a.lisp", 2)),
        ("(list (late x 1))", "(x)", "(x y)", "(list (base x))", right),
    ]:
        files(early, base, late, user)
        found, words = await bad_calls()
        same(found, expected)
        assert found == [] or "Style warnings: 1" in words, words


@check
async def forms_are_edited_by_pieces_several_at_once_and_into_the_image(agent):
    path = write("wa-edit.lisp", "(in-package :cl-user)\n\n(defun wa-one (x)\n  (list x 1))\n\n(defun wa-two (y)\n  (list y 2))\n")
    await agent.call("evaluate-lisp", {"code": f'(load "{path}")'})
    both = {"edits": [{"form_type": "defun", "form_name": "wa-one", "old": "x 1", "new": "x 10"}, {"form_type": "defun", "form_name": "wa-two", "content": "(defun wa-two (y)\n  (list y 20)"}]}
    result = await agent.call("lisp-edit-form", {"path": "wa-edit.lisp", **both, "load": True})
    assert not result.get("isError") and "Mended: defun wa-two: put the missing `)` in on line 2" in text(result), text(result)
    with open(path) as file:
        assert file.read() == "(in-package :cl-user)\n\n(defun wa-one (x)\n  (list x 10))\n\n(defun wa-two (y)\n  (list y 20))\n"
    seen = await agent.call("evaluate-lisp", {"code": "(list (wa-one 0) (wa-two 0))", "package": "cl-user"})
    assert "=> ((0 10) (0 20))" in text(seen), text(seen)
    missing = await agent.call("lisp-edit-form", {"path": "wa-edit.lisp", "form_type": "defun", "form_name": "wa-one", "old": "nothing", "new": "x"})
    assert missing["isError"] and "(list x 10)" in text(missing), text(missing)
    alone = {"path": "wa-edit.lisp", "form_type": "defun", "form_name": "wa-one"}
    old = await agent.call("lisp-edit-form", {**alone, "old": "x 10", "new": "x 11"})
    assert "The image still has the old definition of WA-ONE" in text(old), text(old)
    await agent.call("evaluate-lisp", {"code": "(defun wa-one (x) (list x 12))", "package": "cl-user"})
    same = await agent.call("lisp-edit-form", {**alone, "content": "(defun wa-one (x)\n  (list x 12))"})
    assert "as it is in the file now" in text(same) and "old definition" not in text(same), text(same)
    new = await agent.call("lisp-edit-form", {**alone, "operation": "insert_after", "content": "(defun wa-three () 3)"})
    assert "The image has no WA-THREE" in text(new), text(new)


@check
async def what_people_did_is_told(agent):
    await agent.call("evaluate-lisp", {"code": "(defun wa-discount (x) x)", "package": "cl-user"})
    command = [os.environ["CONSORT_BIN"], "eval", "--workspace", WORKSPACE, "(defun cl-user::wa-discount (x) (* 2 x))"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    seen = await agent.call("describe-symbol", {"symbol": "cl-user::wa-discount"})
    assert "; Note: the command line redefined COMMON-LISP-USER::WA-DISCOUNT" in text(seen), text(seen)
    again = await agent.call("evaluate-lisp", {"code": "1"})
    assert "Note" not in text(again), text(again)


@check
async def a_class_is_described_and_a_reload_of_the_same_text_changes_no_layout(agent):
    source = "(in-package :cl-user)\n(define-condition wa-bad (error) ((why :initarg :why :reader wa-why)))\n(defclass wa-item () ((name :initarg :name :accessor wa-name) (price :initform 1)))\n"
    source += "(defclass wa-book (wa-item) ((author :initarg :author)))\n(defmethod wa-show ((item wa-item)) item)\n(defstruct wa-point x y)\n"
    system("wa-class", {"class": source})
    await loaded(agent, "wa-class")
    result = await agent.call("describe-symbol", {"symbol": "wa-item", "package": "cl-user"})
    described = facts(result)["class"]
    assert described["subclasses"] == ["wa-book"] and described["methods"] == ["wa-show (wa-item)"], described
    assert [slot["name"] for slot in described["slots"]] == ["name", "price"] and ":name" in described["initargs"], described
    for words in ["Slot name initargs :name accessors wa-name", "Method wa-show (wa-item)", "Subclasses: wa-book"]:
        assert words in text(result), text(result)
    assert "callers" not in facts(result)
    callers = await agent.call("describe-symbol", {"symbol": "wa-item", "package": "cl-user", "callers": True})
    assert "class.lisp:5" in text(callers), text(callers)
    same = await agent.call("code_reload_system", {"system": "wa-class", "force": True})
    assert facts(same)["report"]["layouts"] == [], text(same)
    write("wa-class/class.lisp", source.replace("(price :initform 1)", "(price :initform 1) (size :initform 2)"))
    changed = await agent.call("code_reload_system", {"system": "wa-class", "force": True})
    layouts = facts(changed)["report"]["layouts"]
    assert any("WA-ITEM" in one for one in layouts) and not any("WA-BAD" in one for one in layouts), text(changed)


@check
async def threads_tell_what_they_wait_for_and_end(agent):
    path = write("wa-threads.lisp", "(in-package :cl-user)\n(defvar *wa-lock* (sb-thread:make-mutex :name \"wa till\"))\n\n(defun wa-hold ()\n  (sb-thread:with-mutex (*wa-lock*) (loop (list 1))))\n")
    code = (
        f'(load "{path}")'
        '(sb-thread:make-thread (function wa-hold) :name "wa holder")'
        "(loop until (sb-thread:mutex-owner *wa-lock*) do (sleep 0.01))"
        '(sb-thread:make-thread (lambda () (sb-thread:with-mutex (*wa-lock*) 1)) :name "wa waiter") 1'
    )
    assert not (await agent.call("evaluate-lisp", {"code": code, "package": "cl-user"})).get("isError")

    async def named(name):
        threads = facts(await agent.call("threads", {}))["threads"]
        return next((one for one in threads if one["name"] == name), None)

    async def waits():
        waiter = await named("wa waiter")
        return waiter and waiter.get("waits_for") == "wa till" and waiter

    await eventually(waits, "the second thread waits for the lock of the first")
    waiter = await waits()
    holder = await named("wa holder")
    assert waiter["held_by"] == holder["number"] and waiter["state"] == "waits for a lock", (waiter, holder)
    stack = await agent.call("threads", {"action": "stack", "number": holder["number"]})
    assert "WA-HOLD" in text(stack) and "wa-threads.lisp:" in text(stack), text(stack)

    async def works():
        return (await named("wa holder"))["processor"] > (await named("wa waiter"))["processor"]

    await eventually(works, "the thread that holds the lock is seen to take processor time")
    ended = await agent.call("threads", {"action": "end", "number": holder["number"]})
    assert not ended.get("isError"), text(ended)

    async def gone():
        return await named("wa holder") is None and await named("wa waiter") is None

    await eventually(gone, "both threads have ended")
