"""Positions in each encoding, incremental changes, and diagnostics that are never stale."""

import asyncio
import random

import pytest
from conftest import PATIENCE, summary
from lsprotocol import types

Encoding = types.PositionEncodingKind


def width(text, encoding):
    if encoding == Encoding.Utf8:
        return len(text.encode())
    return len(text.encode("utf-16-le")) // 2 if encoding == Encoding.Utf16 else len(text)


@pytest.mark.parametrize("offered", [[Encoding.Utf8], [Encoding.Utf16], [Encoding.Utf32, Encoding.Utf16], None])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_ranges_in_the_encoding_that_was_agreed_on(workspace, offered, newline):
    client = await workspace.connect(encodings=offered)
    encoding = client.answer.capabilities.position_encoding or Encoding.Utf16
    assert encoding in (offered or [Encoding.Utf16])
    uri, before = workspace.uri("a.lisp"), '  (list "é𝄞日" '
    client.open(uri, newline.join(["(defun f ()", f"{before}(missing-one)))", "\f", "(defun g () 1)", ""]))
    column = width(before + "(", encoding)
    expected = [(1, column, 1, column + len("missing-one"), "undefined-function")]
    await client.expect(uri, 1, expected)

    # The same place, reached by an edit in that encoding: 𝄞 goes, and one more name comes after it.
    start = width('  (list "é', encoding)
    client.edit(uri, 2, (1, start), (1, start + width("𝄞", encoding)), "")
    column -= width("𝄞", encoding)
    client.edit(uri, 3, (1, column), (1, column + len("missing")), "absent")
    expected = [(1, column, 1, column + len("absent-one"), "undefined-function")]
    await client.expect(uri, 3, expected)
    await client.shutdown_session()


async def test_a_thousand_random_changes_leave_the_same_text(workspace, client):
    rng, uri = random.Random(20), workspace.uri("random.lisp")
    text, version = "(defun one () 1)\n(defun two () 2)\n", 1
    client.open(uri, text)
    for version in range(2, 1002):
        lines = text.split("\n")
        first = rng.randrange(len(lines))
        last = rng.randrange(first, min(len(lines), first + 2))
        start = rng.randrange(width(lines[first], Encoding.Utf16) + 1)
        end = rng.randrange(start if first == last else 0, width(lines[last], Encoding.Utf16) + 1)

        def offset(line, units):
            # A surrogate pair cannot be split: the position inside it means the one before it (as
            # LSP lets a server choose), so avoid it.
            chars = 0
            while width(lines[line][:chars], Encoding.Utf16) < units:
                chars += 1
            return width(lines[line][:chars], Encoding.Utf16), sum(len(l) + 1 for l in lines[:line]) + chars

        (start, from_), (end, to) = offset(first, start), offset(last, end)
        if to < from_:
            end, to = start, from_
            last = first
        new = rng.choice(["", "(", ")", "x", "\n", "𝄞", '"', ";", "|", "#|", "|#", "(list 1)\n", "é"])
        text = text[:from_] + new + text[to:]
        client.edit(uri, version, (first, start), (last, end), new)
    edited = await client.pull(uri)
    other = workspace.uri("typed-at-once.lisp")
    client.open(other, text)
    assert summary(edited) == summary(await client.pull(other))
    # The final text is still checked: one that must have findings has them.
    client.replace(uri, version + 1, "(defun one () (gone))")
    await client.expect(uri, version + 1, [(0, 15, 0, 19, "undefined-function")])


async def test_diagnostics_carry_versions_that_never_go_back(workspace, client):
    uri = workspace.uri("typing.lisp")
    client.open(uri, "")
    for version in range(2, 60):
        client.replace(uri, version, f"(defun f{version} () (g{version}))")
    (item,) = await client.expect(uri, 59, [(0, 15, 0, 18, "undefined-function")])
    assert "G59" in item.message.upper()
    assert summary(await client.pull(uri)) == summary([item])
    versions = [p.version for p in client.published if p.uri == uri]
    assert versions == sorted(versions), versions


async def test_a_missing_parenthesis_is_told_while_the_image_is_busy(workspace, client):
    await client.eval("(defvar *busy* nil) (defvar *go* nil)")
    busy = client.start_eval("(setf *busy* t) (loop until *go* do (sleep 0.01) finally (return :done))", "busy")
    other = await workspace.connect()
    await other.eval_until("*busy*", "T")
    uri = workspace.uri("open.lisp")
    client.open(uri, "(defun f (x)\n  (list x)\n\n(defun g () 1)\n")
    items = await client.told(uri, 1, lambda items: any(d.severity == types.DiagnosticSeverity.Error for d in items))
    assert any(d.range.start == types.Position(0, 0) for d in items), summary(items)
    assert not busy.done(), "the evaluation was to be busy all the while"
    await other.eval("(setf *go* t)")
    assert (await asyncio.wait_for(busy, PATIENCE))["values"][0] == ":DONE"
    await other.shutdown_session()


async def test_closing_clears(workspace, client):
    uri = workspace.uri("closing.lisp")
    client.open(uri, "(defun f () (g))")
    await client.told(uri, 1, len)
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await client.wait_until(lambda: not [p for p in client.published if p.uri == uri][-1].diagnostics, "not cleared")


async def test_pull_and_push_agree(workspace, client):
    uri = workspace.uri("both.lisp")
    client.open(uri, "(defun f (x) (g))\n(defun h () (car 1 2))\n")
    pulled = await client.pull(uri)
    assert len(pulled) == 3, summary(pulled)
    pushed = await client.expect(uri, 1, summary(pulled))
    report = await asyncio.wait_for(client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(previous_result_ids=[])), PATIENCE)
    assert any(summary(item.items) == summary(pushed) for item in report.items if item.uri == uri), report.items


async def test_a_check_sees_what_was_evaluated_and_defines_nothing(workspace, client):
    uri = workspace.uri("definitions.lisp")
    await client.eval("(defun known (x) x)")
    client.open(uri, "(defmacro half-typed () `(known 1))\n(defun f () (half-typed))\n(defun g () (known))\n")
    items = await client.pull(uri)
    assert [(d.range.start.line, d.range.end.line) for d in items] == [(2, 2)], summary(items)
    assert "argument" in items[0].message
    found = await client.eval('(list (find-symbol "HALF-TYPED") (fboundp (intern "F")))')
    assert found["values"][0] == "(NIL NIL)"


SYSTEM = """(defsystem "parts" :serial t :components ((:file "package") (:file "use")))"""


async def test_a_system_that_is_not_loaded_is_one_finding_and_loading_it_helps(workspace, client):
    (workspace.path / "parts.asd").write_text(SYSTEM)
    (workspace.path / "package.lisp").write_text("(defpackage :parts (:use :cl))\n(in-package :parts)\n(defun part (n) n)\n(defmacro twice (x) `(list ,x ,x))\n")
    use = "(in-package :parts)\n\n(defun all () (twice (part 1)))\n(defun few () (part))\n"
    (workspace.path / "use.lisp").write_text(use)
    uri = workspace.uri("use.lisp")
    client.open(uri, use)
    items = await client.pull(uri)
    assert [d.severity for d in items] == [types.DiagnosticSeverity.Information], summary(items)
    assert "parts" in items[0].message

    token = "load"
    client.progress_reports[token] = []
    params = types.ExecuteCommandParams("consort.loadSystem", [{"system": "parts"}], work_done_token=token)
    await asyncio.wait_for(client.workspace_execute_command_async(params), PATIENCE)
    kinds = [getattr(report, "kind", None) or report["kind"] for report in client.progress_reports[token]]
    assert kinds[0] == "begin" and kinds[-1] == "end", kinds
    # The file has not changed: its findings change because the image has.
    (item,) = await client.told(uri, 1, lambda items: [d.range.start.line for d in items] == [3])
    assert "argument" in item.message
