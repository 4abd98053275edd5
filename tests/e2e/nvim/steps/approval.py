"""Approval: an agent asks for an operation, and the person denies or allows it."""

from session import NEW, OLD

from . import step


def asked(person, answer, *wanted):
    """Waits until the question is on the screen. Fails with the answer of a call that is answered
    without a question."""
    def there():
        if not answer.empty():
            raise AssertionError(f"answered before the person was asked: {person.agent.result(answer)}")
        return all(one in person.screen.text() for one in wanted)

    person.screen.until(f"asked {wanted!r}", there)


def ask(person):
    """Has the agent ask to replace a function, and waits for the question with the code."""
    answer = person.agent.call(
        "code_replace_function", function="shop:price",
        new_code='(defun price (item)\n  "What ITEM costs, with tax."\n  (* 1119/1000 (ecase item (:tea 3) (:cake 4))))')
    asked(person, answer, "Claude Code 2.1 asks, until ", "Replace the function shop:price", "(* 1119/1000 (ecase item", "\\a answers")
    return answer


def to_the_question(person):
    """Moves the cursor to the question, which then shows its keys."""
    person.screen.type("\\a")
    person.screen.see("a allow · s allow for this session · d deny · c compare")


@step
def an_agent_is_denied_and_nothing_changes(person):
    see = person.screen
    person.edit("scratch.lisp")
    answer = ask(person)
    to_the_question(person)
    see.type("d")
    result = person.agent.result(answer)
    assert result.isError, result
    see.see("denied: replace the function", without=["asks, until"])
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + OLD)
    see.keep("agent-denied")


@step
def what_a_person_types_answers_nothing(person):
    see = person.screen
    person.edit("scratch.lisp")
    see.type("Go")
    see.press(*["Enter"] * 25)
    see.type(";; one")
    see.see(";; one", "-- INSERT --")
    answer = person.agent.call("code_replace_function", function="shop:price", new_code="(defun price (item) item)")
    asked(person, answer, "Claude Code 2.1 asks, until ", "(defun price (item) item)", ";; one", "<Esc> \\a answers")
    # Ordinary typing, with every key that has ever answered a question.
    see.press("Enter")
    see.type("1234 and so on, allow, deny, yes, no")
    see.press("Enter", "Enter", "Escape")
    see.type(":w")
    see.press("Enter", "Enter")
    person.until_file("scratch.lisp", "1234 and so on, allow, deny, yes, no")
    see.type("ggjjdd")
    see.type("u:w")
    see.press("Enter")
    see.type("n/fib")
    see.press("Enter", "q", "Escape")
    person.settled()
    see.see("asks, until", "\\a answers")
    assert answer.empty(), person.agent.result(answer)
    # `:only` closes the window of the question, and gives no answer.
    see.command("only")
    person.settled()
    see.see("asks, until", "\\a answers")
    see.keep("agent-asks-while-typing")
    # The window of the question never covers the cursor.
    see.type("gg")
    see.until("the question in the lower half", lambda: _row(see, "asks, until") > 12)
    see.see("(in-package :shop)")
    see.type("GzbH")
    see.until("the question still there", lambda: "Bot" in see.text() and _row(see, "asks, until") > 12)
    see.type("L")
    see.until("the question in the upper half", lambda: 0 <= _row(see, "asks, until") < 5)
    see.see(";; one", "1234 and so on")
    to_the_question(person)
    see.type("q")
    see.see("\\a answers")
    assert answer.empty(), person.agent.result(answer)
    to_the_question(person)
    see.type("d")
    assert person.agent.result(answer).isError
    see.see("denied: ", without=["asks, until"])
    person.restore("scratch.lisp")
    see.see("(fib 38)", without=[";; one"])


def _row(see, text):
    """The row of the first line with TEXT on the screen; -1: there is none."""
    return next((row for row, line in enumerate(see.text().split("\n")) if text in line), -1)


@step
def an_agent_is_allowed_and_it_is_undone(person):
    see = person.screen
    person.edit("scratch.lisp")
    answer = ask(person)
    see.keep("agent-asks")
    to_the_question(person)
    see.keep("agent-is-answered")
    see.type("a")
    result = person.agent.result(answer)
    assert not result.isError, result
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + NEW)
    see.keep("agent-allowed")
    see.type("\\u")
    see.see("undone: the function")
    see.type("\\ee")
    see.see("⇒ " + OLD)
    see.keep("agent-undone")


@step
def what_an_agent_replaces_is_compared_and_written_to_its_file(person):
    see = person.screen
    person.edit("scratch.lisp")
    answer = ask(person)
    to_the_question(person)
    see.type("c")
    see.see("-  \"What ITEM costs.\"", "+  (* 1119/1000 (ecase item", "a allow")
    see.keep("agent-compared")
    see.type("c")
    see.see("Replace the function shop:price", without=["-  (ecase item"])
    see.type("a")
    assert not person.agent.result(answer).isError
    see.see("allowed (\\u undoes, :Consort write puts it into shop.lisp)")
    see.command("Consort write")
    see.see("written to shop.lisp, not saved yet", "(* 1119/1000 (ecase item", without=["┊ (defun price"])
    see.keep("agent-written")
    see.type("u")
    see.see("  (ecase item", without=["1119/1000"])
    see.command("Consort write")
    see.see("nothing to write: no agent has replaced")
    see.type("\\u")
    see.see("undone: the function")
    person.edit("scratch.lisp")
