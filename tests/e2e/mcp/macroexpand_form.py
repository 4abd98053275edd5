"""The contract of macroexpand-form: its examples, its table of errors, and the rules."""

from jsonschema import Draft202012Validator

from contract import check, facts, same, text, value

NOT_A_CALL = "\n\n(Form is not a macro call)"


async def expanded(agent, form, **more):
    result = await agent.call("macroexpand-form", {"form": form, **more})
    return result


async def expansion(agent, form, heading, **more):
    """Returns the expansion of a form that has one, without its heading."""
    result = await expanded(agent, form, **more)
    assert not result.get("isError"), text(result)
    head, _, rest = text(result).partition(":\n\n")
    same(head, f"Expansion of {heading}")
    same(facts(result)["expansion"], rest.removesuffix(NOT_A_CALL))
    same(facts(result)["form"], heading)
    same(facts(result)["expanded"], not rest.endswith(NOT_A_CALL))
    return rest


async def refused(agent, form, **more):
    """Returns the text of an answer that is an error."""
    result = await expanded(agent, form, **more)
    assert result["isError"], text(result)
    assert facts(result)["error"]["message"] in text(result), result
    assert facts(result)["expanded"] is False and "expansion" not in facts(result), result
    return text(result)


def plain(code):
    return " ".join(code.split())


@check
async def macroexpand_form_is_declared_as_its_contract_says(agent):
    tool = next(tool for tool in await agent.tools() if tool["name"] == "macroexpand-form")
    properties = tool["inputSchema"]["properties"]
    same(tool["inputSchema"]["required"], ["form"])
    same(properties["form"]["type"], "string")
    same(properties["full"]["type"], "boolean")
    assert tool["description"].startswith("Expand a macro form to see the generated code."), tool["description"]
    assert tool["annotations"]["readOnlyHint"] and not tool["annotations"]["destructiveHint"]


@check
async def the_examples_of_macroexpand_form_have_their_shape(agent):
    defun = await expansion(agent, "(defun foo (x) (1+ x))", "(DEFUN FOO (X) (1+ X))")
    assert defun.startswith("(progn") and "'foo" in defun and "(block foo (1+ x))" in defun, defun
    assert "sb-impl::%defun" in defun and "eval-when (:compile-toplevel)" in defun, defun
    push = await expansion(agent, "(push item list)", "(PUSH ITEM LIST)", full=True)
    assert "(setq list (cons " in push, push
    loop = await expansion(
        agent, "(loop for i from 1 to 10 collect (* i i))", "(LOOP FOR I FROM 1 TO 10 COLLECT (* I I))"
    )
    assert loop.startswith("(block nil\n") and "(let ((i 1))" in loop and "#:" in loop and "(tagbody" in loop, loop
    form = '(with-open-file (s "test.txt") (read s))'
    opened = await expansion(agent, form, '(WITH-OPEN-FILE (S "test.txt") (READ S))')
    assert '(open "test.txt")' in opened and "(unwind-protect" in opened and "(read s)" in opened, opened
    same(text(await expanded(agent, "(+ 1 2)")), "Expansion of (+ 1 2):\n\n(+ 1 2)\n\n(Form is not a macro call)")


@check
async def a_step_expands_the_outermost_macro_and_full_all_of_them(agent):
    form = "(when a (unless b (push c d)))"
    step = await expansion(agent, form, "(WHEN A (UNLESS B (PUSH C D)))")
    assert "(unless b" in step and "(if a" in step, step
    assert step == await expansion(agent, form, "(WHEN A (UNLESS B (PUSH C D)))", full=False)
    full = await expansion(agent, form, "(WHEN A (UNLESS B (PUSH C D)))", full=True)
    assert "unless" not in full and "push" not in full and "(setq d " in full, full
    inner = await expansion(agent, "(list (when a b))", "(LIST (WHEN A B))", full=True)
    same(plain(inner), "(list (if a b))" if "progn" not in inner else "(list (if a (progn b)))")
    assert (await expansion(agent, "(list (when a b))", "(LIST (WHEN A B))")).endswith(NOT_A_CALL)
    local = "(macrolet ((m (x) `(first ,x))) (flet ((when (x) x)) (when (m '(when a)))))"
    hidden = facts(await expanded(agent, local, full=True))["expansion"]
    same(plain(hidden), "(flet ((when (x) x)) (when (first '(when a))))")


@check
async def expansions_are_printed_for_their_package(agent):
    await value(agent, "(unless (find-package :e2e-expand) (make-package :e2e-expand :use '(:cl)))")
    await value(agent, "(defmacro e2e-expand::twice (form) `(progn ,form ,form))")
    here = await expansion(agent, "(twice (f cl-user::x))", "(TWICE (F COMMON-LISP-USER::X))", package="E2E-EXPAND")
    same(here, "(progn (f common-lisp-user::x) (f common-lisp-user::x))")
    there = await expansion(agent, "(e2e-expand::twice e2e-expand::x)", "(E2E-EXPAND::TWICE E2E-EXPAND::X)")
    same(there, "(progn e2e-expand::x e2e-expand::x)")
    lower = await expanded(agent, "(twice 1)", package="e2e-expand")
    assert not lower.get("isError"), text(lower)


@check
async def a_long_form_is_abbreviated_in_the_heading_and_pretty_below(agent):
    form = f"(when a {' '.join(f'(function-{i} argument)' for i in range(40))})"
    result = await expanded(agent, form)
    heading = text(result).split("\n")[0]
    assert heading.startswith("Expansion of (WHEN A (FUNCTION-0 ARGUMENT)") and heading.endswith("...:"), heading
    assert len(heading) < 110 and len(text(result).split("\n")) > 40, text(result)


@check
async def what_cannot_be_read_is_told(agent):
    same(await refused(agent, "(defun"), "Error reading form: end of file on #<STRING-INPUT-STREAM>")
    assert (await refused(agent, ")")).startswith("Error reading form: "), "an unmatched parenthesis"
    assert (await refused(agent, "")).startswith("Error reading form: end of file"), "nothing at all"
    same(await refused(agent, "(no-such-package:f 1)"), "Package NO-SUCH-PACKAGE not found")
    same(await refused(agent, "#.(error \"read\") (", package="NO-SUCH-PACKAGE"), "Package NO-SUCH-PACKAGE not found")
    assert (await refused(agent, "(cl:no-such-symbol)")).startswith("Error reading form: "), "an unknown symbol"


@check
async def what_a_macro_signals_is_the_answer(agent):
    told = await refused(agent, "(loop for)")
    assert told.startswith("[ERROR] SB-INT:SIMPLE-PROGRAM-ERROR\n"), told
    await value(agent, '(defmacro e2e-signals () (error "Not ~A" :today))')
    same(await refused(agent, "(e2e-signals)"), "[ERROR] SIMPLE-ERROR\nNot TODAY")
    same(await refused(agent, "(list (e2e-signals))", full=True), "[ERROR] SIMPLE-ERROR\nNot TODAY")


@check
async def expanding_never_touches_the_image(agent):
    await value(agent, "(defvar *e2e-seen* 0)")
    await value(agent, "(defmacro e2e-seeing () (incf *e2e-seen*) (intern \"E2E-MADE\") (defun e2e-made-too () 1) ''done)")
    before = await value(agent, "*e2e-seen*")
    same(await expansion(agent, "(e2e-seeing)", "(E2E-SEEING)"), "'done")
    await expansion(agent, "(list e2e-not-interned (e2e-seeing))", "(LIST E2E-NOT-INTERNED (E2E-SEEING))", full=True)
    same(await value(agent, "*e2e-seen*"), before)
    for name in ["E2E-MADE", "E2E-NOT-INTERNED"]:
        same(await value(agent, f'(values (find-symbol "{name}"))'), "=> NIL")
    same(await value(agent, "(fboundp 'e2e-made-too)"), "=> NIL")


@check
async def a_macro_that_never_ends_costs_one_answer(agent):
    await value(agent, "(defmacro e2e-never () (loop))")
    await value(agent, "(defmacro e2e-deaf () (sb-sys:without-interrupts (loop)))")
    told = await refused(agent, "(e2e-never)", timeout=2)
    assert told.startswith("[ERROR] TIMEOUT\n") and "never ends" in told, told
    told = await refused(agent, "(e2e-deaf)", timeout=1)
    assert "stopped" in told, told
    same(await value(agent, "(+ 1 2)"), "=> 3")


@check
async def the_answers_of_macroexpand_form_are_as_its_schema_says(agent):
    schema = next(tool["outputSchema"] for tool in await agent.tools() if tool["name"] == "macroexpand-form")
    for arguments in [{"form": "(when a b)"}, {"form": "1"}, {"form": "("}, {"form": "(loop for)"}, {"form": "x", "package": "NONE"}, {"from": 1}, {"form": "(+ 1 2) (when a b)"}]:
        result = await agent.call("macroexpand-form", arguments)
        Draft202012Validator(schema).validate(facts(result))
        assert text(result), arguments
