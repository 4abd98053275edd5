"""Renaming over the real image: it follows the user's macros, and is refused where it would change another binding."""

import asyncio

import pytest
from conftest import PATIENCE
from lsprotocol import types
from pygls.exceptions import JsonRpcException

MACROS = """(defpackage :rn (:use :cl)) (in-package :rn)
(defmacro with-both ((one two) &body body) `(let ((,one 1) (,two 2)) ,@body))
(defmacro do-each ((list &rest names) &body body) `(dolist (all ,list) (destructuring-bind ,names all ,@body)))
(defvar *special* 1)"""


async def rename(client, uri, text, new, version):
    """Returns TEXT after the name at its ^ was renamed."""
    offset = text.index("^")
    text = text.replace("^", "")
    client.open(uri, text) if version == 1 else client.replace(uri, version, text)
    line = text.count("\n", 0, offset)
    at = types.Position(line, offset - (text.rfind("\n", 0, offset) + 1))
    params = types.RenameParams(types.TextDocumentIdentifier(uri), new_name=new, position=at)
    edit = await asyncio.wait_for(client.text_document_rename_async(params), PATIENCE)
    lines = text.split("\n")
    for change in sorted(edit.changes[uri], key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
        row = lines[change.range.start.line]
        lines[change.range.start.line] = row[: change.range.start.character] + change.new_text + row[change.range.end.character :]
    return "\n".join(lines)


async def test_macros_of_the_user_tell_what_they_bind(client, workspace):
    await client.eval(MACROS)
    uri, package = workspace.uri("a.lisp"), "(in-package :rn)\n"
    for version, (text, expected) in enumerate(
        [
            ("(with-both (x y^)\n  (list x y 'y))", "(with-both (x new)\n  (list x new 'y))"),
            ("(do-each (l a^ (b)) (print (list a b)))", "(do-each (l new (b)) (print (list new b)))"),
            ("(defun f (x &key y^) (with-both (a b) (list x y a b)))", "(defun f (x &key ((:y new))) (with-both (a b) (list x new a b)))"),
        ],
        1,
    ):
        assert await rename(client, uri, package + text, "new", version) == package + expected
    refusals = [
        ("(defun f (x^) (list x *special*))", "*special*", "is a special variable"),
        ("(with-both (x^ y) (list x y))", "y", "cannot be called"),
    ]
    for version, (text, new, why) in enumerate(refusals, 4):
        with pytest.raises(JsonRpcException) as refused:
            await rename(client, uri, package + text, new, version)
        assert why in refused.value.message, refused.value.message


async def test_a_package_is_renamed_by_its_prefix(client, workspace):
    uri = workspace.uri("p.lisp")
    text = "(defpackage :rp (:use :cl) (:export #:f))\n(in-package :rp)\n(defun f () 'rp^::f)\n(rp:f)"
    expected = "(defpackage :new (:use :cl) (:export #:f))\n(in-package :new)\n(defun f () 'new::f)\n(new:f)"
    assert await rename(client, uri, text, "new", 1) == expected
    with pytest.raises(JsonRpcException) as refused:
        await rename(client, uri, text, "cl-user", 2)
    assert "is a package of Lisp itself" in refused.value.message
