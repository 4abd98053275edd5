"""`source_location` by its contract (hot-reload), `describe-symbol` and `apropos`."""

import os

from contract import check, evaluate, facts, text

SOURCE = """(defpackage :e2e-shop (:use :cl) (:export #:price #:*rate* #:total))
(in-package :e2e-shop)

(defvar *rate* 2 "What it costs.")
#+no-such-feature (defun total (x) x)
(defun total (items)
  "The sum."
  (reduce #'+ items :key #'price))
(define-compiler-macro total (&whole form items) (declare (ignore items)) form)
(defgeneric price (item))
(defmethod price ((item number)) (* item *rate*))
(defmethod price :around ((item integer)) (call-next-method))
(defmacro with-rate ((rate) &body body) `(let ((*rate* ,rate)) ,@body))
(defclass item () ((cost :accessor cost)))
(defstruct box width)
(define-condition too-dear (error) ())
(deftype amount () '(integer 0))
(defun (setf total) (new items) (list new items))
"""


async def loaded(agent):
    path = os.path.join(os.environ["CONSORT_WORKSPACE"], "e2e-shop.lisp")
    with open(path, "w") as out:
        out.write(SOURCE)
    result = await evaluate(agent, f'(load "{path}")')
    assert not result["isError"], text(result)
    return os.path.realpath(path)


@check
async def every_definition_is_found(agent):
    path = await loaded(agent)
    for symbol, kind, line in [
        ("e2e-shop:total", "function", 6),
        ("E2E-SHOP::TOTAL", "compiler-macro", 9),
        ("e2e-shop:price", "method", 11),
        ("e2e-shop::with-rate", "macro", 13),
        ("e2e-shop:*rate*", "variable", 4),
        ("e2e-shop::item", "class", 14),
        ("e2e-shop::box", "structure", 15),
        ("e2e-shop::too-dear", "condition", 16),
        ("e2e-shop::amount", "type", 17),
        ("(setf e2e-shop:total)", "setf", 18),
        ("e2e-shop", "package", 1),
        (":e2e-shop", None, 1),
        ("e2e-shop:price", "function", 10),
    ]:
        arguments = {"symbol": symbol, **({"kind": kind} if kind else {})}
        result = await agent.call("source_location", arguments)
        assert not result["isError"], text(result)
        found = facts(result)["definitions"]
        here = [one for one in found if one["line"] == line]
        assert here, (symbol, kind, found)
        assert os.path.realpath(here[0]["file"]) == path
        assert here[0]["column"] == 1 and here[0]["snippet"] == SOURCE.splitlines()[line - 1] or line == 6, here
        assert f"{here[0]['file']}:{line}:1" in text(result), text(result)
    # Methods with their qualifiers and specializers; a name whose package was left out, and one
    # that is read in a package.
    result = await agent.call("source_location", {"symbol": "price", "package": "E2E-SHOP"})
    names = [one["name"] for one in facts(result)["definitions"]]
    assert names[0] == "price" and {"price (number)", "price :around (integer)"} <= set(names), names
    alone = await agent.call("source_location", {"symbol": "too-dear"})
    assert facts(alone)["definitions"], text(alone)


@check
async def a_definition_is_found_where_its_file_has_it_now(agent):
    path = await loaded(agent)
    with open(path, "w") as out:
        out.write(";; a line\n;; and another\n" + SOURCE)
    result = await agent.call("source_location", {"symbol": "e2e-shop:*rate*"})
    assert facts(result)["definitions"][0]["line"] == 6, text(result)
    os.remove(path)
    result = await agent.call("source_location", {"symbol": "e2e-shop:*rate*"})
    assert "line" not in facts(result)["definitions"][0] and "cannot be read" in text(result), text(result)


@check
async def what_cannot_be_found_is_said_as_the_contract_says_it(agent):
    result = await agent.call("source_location", {"symbol": "x", "package": "UNKNOWN-PACKAGE"})
    assert result["isError"] and text(result) == "Package UNKNOWN-PACKAGE not found", text(result)
    error = facts(result)["error"]
    assert (error["code"], error["message"], error["data"]["type"]) == (-32000, text(result), "PACKAGE_NOT_FOUND"), error
    result = await agent.call("source_location", {"symbol": "e2e-there-is-none"})
    assert not result["isError"] and facts(result)["definitions"] == [], text(result)
    assert "There is no symbol" in text(result), text(result)
    result = await agent.call("source_location", {"symbol": "car", "kind": "colour"})
    assert result["isError"] and "compiler-macro" in text(result), text(result)
    # Nor is it there afterwards.
    seen = await evaluate(agent, '(find-symbol (format nil "E2E-~A" "THERE-IS-NONE"))')
    assert text(seen).strip().startswith("=> NIL"), text(seen)


@check
async def a_symbol_is_described(agent):
    await loaded(agent)
    result = await agent.call("describe-symbol", {"symbol": "e2e-shop:price"})
    described = facts(result)
    assert "generic function" in described["kinds"] and described["lambda_list"] == "(e2e-shop:price item)", described
    result = await agent.call("describe-symbol", {"symbol": "total", "package": "e2e-shop"})
    described = facts(result)
    assert described["documentation"][0]["text"] == "The sum.", described
    assert described["callees"] == ["price"] or "price" in described["callees"], described
    assert described["definitions"][0]["line"] == 6, described
    result = await agent.call("describe-symbol", {"symbol": "e2e-shop:*rate*", "callers": True})
    described = facts(result)
    assert described["value"] == "2" and any("price (number)" in one for one in described["callers"]), described
    for part in ["Value: 2", "What it costs.", "Used by:", "e2e-shop.lisp:4:1"]:
        assert part in text(result), text(result)
    result = await agent.call("describe-symbol", {"symbol": "e2e-shop:*rate*", "kinds": ["references"]})
    assert any(one.startswith("price (number) references  (") for one in facts(result)["callers"]), text(result)
    result = await agent.call("describe-symbol", {"symbol": "e2e-shop:*rate*", "kinds": ["eats"]})
    assert result["isError"] and "The kinds are calls, macroexpands" in text(result), text(result)
    result = await agent.call("describe-symbol", {"symbol": "x", "package": "UNKNOWN-PACKAGE"})
    assert result["isError"] and text(result) == "Package UNKNOWN-PACKAGE not found", text(result)


@check
async def a_name_has_its_page(agent):
    result = await agent.call("clhs", {"symbol": "with-slots"})
    assert facts(result)["url"].endswith("/Body/m_w_slts.htm") and "HyperSpec: http" in text(result), text(result)
    result = await agent.call("clhs", {"symbol": "sb-ext:run-program"})
    assert facts(result)["manual"] == "SBCL manual", text(result)
    result = await agent.call("clhs", {"symbol": "no-such-name"})
    assert result["isError"] and "has a page about no-such-name" in text(result), text(result)


@check
async def names_are_found_by_a_part_of_them(agent):
    await loaded(agent)
    result = await agent.call("apropos", {"pattern": "rate", "package": "E2E-SHOP"})
    names = {one["name"]: one for one in facts(result)["symbols"]}
    assert names.keys() == {"e2e-shop:*rate*", "e2e-shop::with-rate"} and facts(result)["total"] == 2, names
    assert names["e2e-shop::with-rate"]["lambda_list"] == "(e2e-shop::with-rate (rate) &body body)", names
    result = await agent.call("apropos", {"pattern": "", "package": "E2E-SHOP", "external": True})
    assert {one["name"] for one in facts(result)["symbols"]} == {"e2e-shop:*rate*", "e2e-shop:price", "e2e-shop:total"}, text(result)
    result = await agent.call("apropos", {"pattern": "multiple-value-b", "limit": 1})
    assert "multiple-value-bind" in text(result), text(result)
