"""Hot reload over a real MCP client: each example of the contract, its safety guarantees, its errors, the report and undo."""

import asyncio
import os
import re

from contract import PATIENCE, check, eventually, facts, same, text, value

WORKSPACE = os.environ["CONSORT_WORKSPACE"]


async def compile_string(agent, code, **more):
    return await agent.call("code_compile_string", {"code": code, **more})


async def reloaded(agent, tool, arguments):
    """Returns the report of a call that must succeed."""
    result = await agent.call(tool, arguments)
    assert not result.get("isError") and facts(result)["success"], text(result)
    return facts(result)["report"]


def write(name, content):
    path = os.path.join(WORKSPACE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)
    return path


def error_of(result, kind):
    """Returns the contract's error object, which must be of that type."""
    assert result["isError"], text(result)
    error = facts(result)["error"]
    same(error["code"], -32000)
    same(error["data"]["type"], kind)
    assert error["message"], error
    return error


@check
async def the_hot_reload_tools_are_the_contracts(agent):
    tools = {tool["name"]: tool["inputSchema"] for tool in await agent.tools()}
    for name, required in [
        ("code_compile_string", ["code"]),
        ("code_load_fasl", ["path"]),
        ("code_reload_package", ["package"]),
        ("code_reload_system", ["system"]),
        ("code_replace_function", ["function", "new_code"]),
    ]:
        same(sorted(tools[name]["required"]), required)
    assert {"code_undo", "load-system", "image"} <= tools.keys()
    assert {"filename", "position"} <= tools["code_compile_string"]["properties"].keys()


@check
async def a_string_is_compiled_and_loaded_and_found_at_its_place(agent):
    head = ";; one\n(in-package :cl-user)\n\n"
    path = write("src/core.lisp", head + "(defun hr-process (x) x)\n")
    report = await reloaded(
        agent, "code_compile_string", {"code": "(defun hr-process (x) (list :new x))", "filename": "src/core.lisp", "position": 4}
    )
    assert "function COMMON-LISP-USER::HR-PROCESS" in report["new"] + report["redefined"], report
    same(await value(agent, "(hr-process 1)", package="CL-USER"), "=> (:NEW 1)")
    place = (
        "(let ((s (sb-introspect:find-definition-source #'cl-user::hr-process)))"
        " (list (namestring (sb-introspect:definition-source-pathname s)) (sb-introspect:definition-source-character-offset s)))"
    )
    same(await value(agent, place), f'=> ("{path}" {len(head)})')


@check
async def a_compilation_error_is_the_contracts_and_changes_nothing(agent):
    await value(agent, "(defun hr-stays () :old)", package="CL-USER")
    before = await value(agent, "(list (find-symbol \"HR-NEVER\" :cl-user) (hr-stays))", package="CL-USER")
    result = await compile_string(
        agent, "(defun hr-stays () :new)\n(defun hr-never (x)\n  (+ x unknwon-var))", filename="yet/to/be/core.lisp", position=40
    )
    error = error_of(result, "COMPILATION_ERROR")
    same(error["message"], "Compilation failed")
    assert "UNKNWON-VAR" in error["data"]["message"].upper(), error
    assert error["data"]["location"]["file"].endswith("yet/to/be/core.lisp"), error
    same(error["data"]["location"]["line"], 42)
    same(await value(agent, "(list (find-symbol \"HR-NEVER\" :cl-user) (hr-stays))", package="CL-USER"), before)
    for code in ["(defun hr-never (x)", "(let ((x 1 2)) x)", "(no-such-package:f)"]:
        error_of(await compile_string(agent, code), "COMPILATION_ERROR")
    error_of(await compile_string(agent, "1", package="NO-SUCH-PACKAGE"), "PACKAGE_NOT_FOUND")
    # A reload whose load fails is undone.
    error_of(await compile_string(agent, "(defun hr-stays () :new) (error \"while loading\")"), "LOAD_ERROR")
    same(await value(agent, "(hr-stays)", package="CL-USER"), "=> :OLD")


@check
async def an_unknown_package_is_the_contracts_error(agent):
    error = error_of(await agent.call("code_reload_package", {"package": "UNKNOWN-PACKAGE"}), "PACKAGE_NOT_FOUND")
    same(error["message"], "Package UNKNOWN-PACKAGE not found")


@check
async def a_function_is_replaced_by_exactly_its_definition(agent):
    await value(agent, "(defpackage :my-app (:use :cl) (:export #:compute)) (in-package :my-app) (defun compute (x) x) (defgeneric gen (x))")
    await value(agent, "(in-package :cl-user)")
    arguments = {"function": "my-app:compute", "new_code": "(defun my-app:compute (x) (+ x 1))"}
    report = await reloaded(agent, "code_replace_function", arguments)
    same(report["redefined"], ["function MY-APP:COMPUTE"])
    same(await value(agent, "(my-app:compute 41)"), "=> 42")
    for function, code, kind in [
        ("my-app:compute", "(defun my-app:compute (x) x) (print 1)", "WRONG_DEFINITION"),
        ("my-app:compute", "(defun my-app::other (x) x)", "WRONG_DEFINITION"),
        ("my-app::gen", "(defun my-app::gen (x) x)", "WRONG_DEFINITION"),
        ("my-app::gen", "(defmethod my-app::gen ((x string)) x)", "METHOD_NOT_FOUND"),
        ("my-app::gen", "(defmethod my-app::gen ((x string) y) y)", "WRONG_DEFINITION"),
        ("if", "(defun if (x) x)", "NOT_REPLACEABLE"),
        ("my-app::nothing", "(defun my-app::nothing (x) x)", "FUNCTION_NOT_FOUND"),
        ("my-app:compute", "(defun my-app:compute (x) (+ x nowhere))", "COMPILATION_ERROR"),
    ]:
        error_of(await agent.call("code_replace_function", {"function": function, "new_code": code}), kind)
    same(await value(agent, "(my-app:compute 41)"), "=> 42")
    await reloaded(agent, "code_undo", {})
    same(await value(agent, "(my-app:compute 41)"), "=> 41")


@check
async def methods_generic_functions_macros_and_setf_functions_are_replaced(agent):
    await value(
        agent,
        """(defpackage :hr-gen (:use :cl)) (in-package :hr-gen) (defclass task () ())
(defgeneric run (task)) (defmethod run ((task task)) :old) (defmethod run :around ((task task)) (list (call-next-method)))
(defmethod run ((task (eql :go))) :old-go) (defun (setf place) (new) new) (defmacro mac () :old)""",
    )
    await value(agent, "(in-package :cl-user)")
    for function, code, redefined in [
        ("hr-gen::run", "(defmethod run ((job task)) :new)", "method (HR-GEN::RUN (HR-GEN::TASK))"),
        ("hr-gen::run", "(defmethod run :around ((task task)) (list :outer (call-next-method)))", "method (HR-GEN::RUN :AROUND (HR-GEN::TASK))"),
        ("hr-gen::run", "(defmethod run ((task (eql :go))) :new-go)", "method (HR-GEN::RUN ((EQL :GO)))"),
        ("hr-gen::run", '(defgeneric run (task) (:documentation "Documented."))', "generic function HR-GEN::RUN"),
        ("(setf hr-gen::place)", "(defun (setf place) (new) (list new))", "setf function (SETF HR-GEN::PLACE)"),
        ("hr-gen::mac", "(defmacro mac () :new)", "macro HR-GEN::MAC"),
    ]:
        report = await reloaded(agent, "code_replace_function", {"function": function, "new_code": code})
        same(report["redefined"], [redefined])
    probe = "(list (hr-gen::run (make-instance 'hr-gen::task)) (hr-gen::run :go) (setf (hr-gen::place) 1) (hr-gen::mac))"
    same(await value(agent, probe), "=> ((:OUTER :NEW) :NEW-GO (1) :NEW)")
    # The provenance of the definition is known.
    known = facts(await agent.call("describe-symbol", {"symbol": "hr-gen::run"}))
    for kind in ["method", "generic function"]:
        assert re.search(rf"Defined as {kind} by an agent .* with code_replace_function", known["made_by"]), known
    # A definition without a file has no location.
    same(facts(await agent.call("source_location", {"symbol": "hr-gen::run"}))["definitions"], [])
    for _ in range(6):
        same((await reloaded(agent, "code_undo", {}))["not_undone"], [])
    same(await value(agent, probe), "=> ((:OLD) :OLD-GO 1 :OLD)")
    known = facts(await agent.call("describe-symbol", {"symbol": "hr-gen::run"}))
    assert "with code_undo" in known["made_by"], known


@check
async def packages_conditions_and_structures_are_put_back(agent):
    await reloaded(
        agent,
        "code_compile_string",
        {
            "code": """(defpackage :hr-back (:use :cl) (:export #:one)) (in-package :hr-back)
(define-condition trouble (error) () (:report "old")) (defstruct point (x 1)) (defstruct grows a) (defconstant +limit+ 1) (defun one () 1)"""
        },
    )
    probe = (
        "(list (princ-to-string (make-condition 'hr-back::trouble)) (hr-back::point-x (hr-back::make-point)) hr-back::+limit+"
        " (nth-value 1 (find-symbol \"TWO\" :hr-back)))"
    )
    await value(agent, "(intern \"TWO\" :hr-back)")
    before = await value(agent, probe)
    report = await reloaded(
        agent,
        "code_compile_string",
        {
            "code": """(defpackage :hr-back (:use :cl) (:export #:one #:two)) (in-package :hr-back)
(define-condition trouble (error) () (:report "new")) (defstruct point (x 2)) (defstruct grows a b) (defconstant +limit+ 2)"""
        },
    )
    for redefined in ["package HR-BACK", "condition HR-BACK::TROUBLE", "structure HR-BACK::POINT", "constant HR-BACK::+LIMIT+"]:
        assert redefined in report["redefined"], report
    assert '("new" 2 2 :EXTERNAL)' in await value(agent, probe)
    undone = await reloaded(agent, "code_undo", {})
    same(len(undone["not_undone"]), 1)
    assert "HR-BACK::GROWS" in undone["not_undone"][0] and "HR-BACK::MAKE-GROWS" in undone["not_undone"][0], undone
    same(await value(agent, probe), before)


@check
async def a_definition_is_found_where_it_was_compiled_from_and_again_after_undo(agent):
    """Steps 1 to 7 of the contract's workflow: locate, read, modify, compile, load, verify, persist."""
    first = ";; one\n(in-package :cl-user)\n\n(defun hr-flow (x)\n  (* 2 x))\n"
    path = write("src/flow.lisp", first)
    await reloaded(agent, "code_compile_string", {"code": first, "filename": "src/flow.lisp", "position": 1})

    async def line():
        found = facts(await agent.call("source_location", {"symbol": "cl-user::hr-flow"}))
        same(len(found["definitions"]), 1)
        same(found["definitions"][0]["file"], path)
        return found["definitions"][0]["line"]

    same(await line(), 4)
    read = await agent.call("lisp-read-file", {"path": "src/flow.lisp", "collapsed": False})
    assert "(* 2 x)" in text(read), text(read)
    new = "(defun hr-flow (x)\n  (* 3 x))"
    report = await reloaded(agent, "code_compile_string", {"code": new, "filename": "src/flow.lisp", "position": 4})
    same(report["redefined"], ["function COMMON-LISP-USER::HR-FLOW"])
    verified = await agent.call("repl_eval", {"code": "(cl-user::hr-flow 2)"})
    assert "=> 6" in text(verified), text(verified)
    same(await line(), 4)
    edited = await agent.call(
        "lisp-edit-form",
        {"file_path": "src/flow.lisp", "form_type": "defun", "form_name": "hr-flow", "operation": "replace", "content": new},
    )
    assert not edited.get("isError"), text(edited)
    with open(path) as file:
        same(file.read(), first.replace("(* 2 x)", "(* 3 x)"))
    await reloaded(agent, "code_undo", {})
    same(await value(agent, "(cl-user::hr-flow 2)"), "=> 4")
    same(await line(), 4)


@check
async def threads_that_call_a_function_never_notice_that_it_is_replaced(agent):
    await value(
        agent,
        """(defun hr-pair () (let ((a 0)) (list a a)))
(defvar *hr-stop* nil) (defvar *hr-wrong* '()) (setf *hr-stop* nil *hr-wrong* '())
(defvar *hr-threads* '())
(setf *hr-threads* (loop repeat 4 collect (sb-thread:make-thread (lambda ()
  (loop until *hr-stop* do (handler-case (destructuring-bind (a b) (hr-pair) (unless (eql a b) (push (list a b) *hr-wrong*)))
                             (error (e) (push (princ-to-string e) *hr-wrong*))))))))""",
        package="CL-USER",
    )
    for number in range(20):
        code = f"(defun hr-pair () (let ((a {number})) (list a a)))"
        await reloaded(agent, "code_replace_function", {"function": "hr-pair", "new_code": code})
    same(await value(agent, "(progn (setf *hr-stop* t) (mapc #'sb-thread:join-thread *hr-threads*) *hr-wrong*)", package="CL-USER"), "=> NIL")
    same(await value(agent, "(hr-pair)", package="CL-USER"), "=> (19 19)")


@check
async def a_package_and_a_system_are_reloaded_with_progress_and_a_report(agent):
    write("my-sys/my-sys.asd", '(asdf:defsystem "my-sys" :serial t :components ((:file "package") (:file "code")))\n')
    write("my-sys/package.lisp", "(defpackage :my-sys (:use :cl) (:export #:answer))\n")
    write("my-sys/code.lisp", "(in-package :my-sys)\n(defun answer () :one)\n(defun left-out () 1)\n(defmacro twice (x) `(* 2 ,x))\n")
    loaded = await agent.call("load-system", {"system": "my-sys"})
    assert not loaded.get("isError") and facts(loaded)["loaded"], text(loaded)
    await value(agent, "(defun my-sys::user (x) (my-sys::twice x))")
    code = write("my-sys/code.lisp", "(in-package :my-sys)\n(defun answer () :two)\n(defmacro twice (x) `(+ ,x ,x))\n(defun fresh () 1)\n")
    report = await reloaded(agent, "code_reload_package", {"package": "MY-SYS", "recursive": True})
    same([os.path.basename(file) for file in report["files"]], ["package.lisp", "code.lisp"])
    assert "function MY-SYS:ANSWER" in report["redefined"] and "function MY-SYS::FRESH" in report["new"], report
    same(report["gone"], ["function MY-SYS::LEFT-OUT"])
    same(report["stale"], ["function MY-SYS::USER expanded MY-SYS::TWICE"])
    same(await value(agent, "(my-sys:answer)"), "=> :TWO")
    write("my-sys/code.lisp", "(in-package :my-sys)\n(defun answer () :three)\n")
    told = []
    result = await agent.call(
        "code_reload_system", {"system": "my-sys", "force": True}, on_progress=lambda progress, message: told.append(message)
    )
    assert not result.get("isError"), text(result)
    same(await value(agent, "(my-sys:answer)"), "=> :THREE")
    write("my-sys/code.lisp", "(in-package :my-sys)\n(defun answer () :four)\n\n(let ((x 1 2)) x)\n")
    error = error_of(await agent.call("code_reload_system", {"system": "my-sys", "force": True}), "COMPILATION_ERROR")
    same(error["data"]["location"]["file"], code)
    same(error["data"]["location"]["line"], 4)
    same(await value(agent, "(my-sys:answer)"), "=> :THREE")
    error_of(await agent.call("code_reload_system", {"system": "no-such-system"}), "SYSTEM_NOT_FOUND")


@check
async def a_fasl_of_the_workspace_is_loaded_and_no_other(agent):
    source = write("fasls/some.lisp", "(defun cl-user::hr-from-fasl () :fasl)\n")
    # Another client may have loaded it into this image before.
    await value(agent, f'(progn (compile-file "{source}") (fmakunbound (quote cl-user::hr-from-fasl)) 1)')
    report = await reloaded(agent, "code_load_fasl", {"path": "fasls/some.fasl"})
    same(report["new"], ["function COMMON-LISP-USER::HR-FROM-FASL"])
    same(await value(agent, "(cl-user::hr-from-fasl)"), "=> :FASL")
    error_of(await agent.call("code_load_fasl", {"path": "fasls/some.lisp"}), "NOT_A_FASL")
    error_of(await agent.call("code_load_fasl", {"path": "fasls/none.fasl"}), "FILE_NOT_FOUND")
    for outside in ["/etc/passwd", "../../../../../../../../etc/passwd"]:
        error_of(await agent.call("code_load_fasl", {"path": outside}), "OUTSIDE_WORKSPACE")
    link = os.path.join(WORKSPACE, "fasls/link.fasl")
    if not os.path.islink(link):
        os.symlink("/etc/passwd", link)
    error_of(await agent.call("code_load_fasl", {"path": "fasls/link.fasl"}), "OUTSIDE_WORKSPACE")


@check
async def reloads_are_undone_one_after_another(agent):
    for number in range(3):
        await reloaded(agent, "code_compile_string", {"code": f"(defun hr-undo () {number})"})
    for number in [1, 0]:
        await reloaded(agent, "code_undo", {})
        same(await value(agent, "(hr-undo)", package="CL-USER"), f"=> {number}")


@check
async def what_was_compiled_is_there_again_after_a_restart(agent):
    await reloaded(agent, "code_compile_string", {"code": "(defun hr-kept () :kept)"})
    await reloaded(agent, "code_compile_string", {"code": "(defun hr-undone () :undone)"})
    await reloaded(agent, "code_undo", {})
    status = await agent.call("image", {"action": "status"})
    same(facts(status)["image"]["state"], "ready")
    restarted = await agent.call("image", {"action": "restart"})
    assert not restarted.get("isError"), text(restarted)
    again = await value(agent, "(list (hr-kept) (fboundp 'hr-undone))", package="CL-USER")
    assert again.startswith("=> (:KEPT NIL)"), again


@check
async def the_image_is_interrupted(agent):
    await value(agent, "(defvar *hr-loops* nil) (setf *hr-loops* nil)", package="CL-USER")
    endless = asyncio.ensure_future(agent.call("evaluate-lisp", {"code": "(setf cl-user::*hr-loops* t) (loop)", "timeout": 5 * PATIENCE}))
    other = await agent.another()

    async def is_looping():
        return await value(other, "cl-user::*hr-loops*") == "=> T"

    await eventually(is_looping, "the loop never began")
    interrupted = await agent.call("image", {"action": "interrupt"})
    same(facts(interrupted)["interrupted"], 1)
    same(facts(await endless)["status"], "interrupted")
