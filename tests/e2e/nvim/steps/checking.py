"""Findings in a text: diagnostics, quick fixes and failed tests."""

from . import step


@step
def mistakes_are_marked_at_their_characters(person):
    see = person.screen
    person.edit("mistakes.lisp")
    want = [(4, "heigth"), (10, "not-written-yet")]
    see.until("the marks", lambda: see.marked() == want)
    # Only unused names are faint, as Neovim shows them.
    see.until("what is faint", lambda: see.faint(2) == ["height"] and see.faint(6) == ["name"])
    see.keep("mistakes")
    person.go("heigth")
    see.press("C-w")
    see.type("d")
    see.see("ndefined variable", "heigth")
    see.keep("mistakes-message")
    see.press("Escape")


@step
def a_quick_fix_is_chosen_and_saved(person):
    see = person.screen
    person.edit("mistakes.lisp")
    person.go("name)")
    see.type("gra")
    shown = see.see("Code actions", "ignored")
    see.keep("quick-fix")
    number = next(line.strip().split(":")[0] for line in shown.split("\n") if "ignored" in line)
    see.type(number)
    see.press("Enter")
    see.see("(declare (ignore name))", without=["Code actions"])
    see.until("no mark on it", lambda: see.faint(6) == [])
    see.command("w")
    person.until_file("mistakes.lisp", "(declare (ignore name))")
    see.keep("quick-fix-done")


@step
def a_failed_test_is_shown_at_its_line(person):
    see = person.screen
    person.edit("tests.lisp")
    person.load("shop/tests")
    see.see("Run test")  # code lenses, above definitions of tests
    person.go("cake-is-dear")
    see.type("\\t")
    see.see("the test failed", "[Quickfix List]", "CAKE-IS-DEAR")
    see.until("the failure in the line of its test", lambda: "■ (SHOP:PRICE :CAKE) evaluated to 4" in next(
        (row for row in see.text().split("\n") if "(test cake-is-dear" in row), ""))
    see.keep("test-failed")
    see.command("cclose")
    # A test runs as it is in the text, not as it was loaded.
    person.go("(= 5")
    see.type("f5r4\\t")
    see.see("the test passed", without=["■"])
    see.type("u\\t")
    see.see("the test failed")
    see.command("cclose")
    person.go("tea-is-cheap")
    see.command("Consort lens")
    see.see("the test passed", without=["■"])


@step
def a_test_says_what_the_image_does_not_have(person):
    see = person.screen
    person.edit("tests.lisp")
    person.load("shop/tests")
    person.edit("shop.lisp")
    person.go("4)))")
    see.type("\\er")  # Consort knows the definition
    see.see("⇒ PRICE")
    see.type("r5")
    # A run of a system, and a load, have what is saved.
    see.command("Consort test shop/tests")
    see.see("1 of 2 tests failed; shop.lisp is unsaved: :wall, then repeat")
    see.command("cclose | Consort load shop")
    see.see("shop is loaded; shop.lisp is unsaved: :wall, then repeat")
    see.command("Consort reload shop")
    see.see("changed; shop.lisp is unsaved: :wall, then repeat")
    # A test alone has what was evaluated.
    person.edit("tests.lisp")
    person.go("cake-is-dear")
    see.type("\\t")
    see.see("the test failed; shop.lisp is newer than the image: \\el in it")
    see.command("cclose")
    person.edit("shop.lisp")
    see.type("\\el")
    see.see("1 form evaluated")
    person.edit("tests.lisp")
    see.type("\\t")
    see.see("the test passed")
    person.edit("shop.lisp")
    person.restore("shop.lisp")
    person.load("shop")
    see.type("\\eb")
    person.settled()
    see.command("Consort clear")
