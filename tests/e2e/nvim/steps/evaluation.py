"""Evaluation in the editor: values, errors, code that runs or reads, profiles."""

import os
import signal

from session import OLD

from . import step


@step
def a_value_stands_at_the_end_of_its_line(person):
    see = person.screen
    person.edit("package.lisp")
    person.go("(defpackage")
    see.type("\\er")
    see.see("⇒ #<PACKAGE \"SHOP\">")
    person.edit("scratch.lisp")
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("(total '(:tea :cake))  ⇒ " + OLD)
    # On the operator, the call is meant.
    see.type("f x")
    see.see("(total'(", without=["⇒ " + OLD])
    see.type("u")
    person.go("total '(:tea :cake))")
    see.type("l\\ee")
    see.see("(total '(:tea :cake))  ⇒ " + OLD)
    person.go("(progn (format")
    see.type("\\ee")
    see.see("⇒ 1, :TWO", "  one", "  two")
    see.keep("inline-value")
    person.go("(total '(:tea :cake))")
    # The result disappears when its text is edited.
    see.type("f:")
    see.type("xu")
    see.see("1 change", without=["⇒ " + OLD])


@step
def an_error_is_followed_to_its_source(person):
    see = person.screen
    person.edit("scratch.lisp")
    person.go("(total '(:tea :coffee))")
    see.type("\\ee")
    see.see("✗", ":COFFEE fell through", "…")
    see.until("what does not fit to end so", lambda: see.line_of("✗").endswith("…"))
    see.keep("error-inline")
    see.type("\\ev")
    see.see(" Error ", "0  (SHOP:PRICE :COFFEE)", "(SHOP:TOTAL (:TEA :COFFEE))", "<CR> goes to the function", "Wanted one of (:TEA :CAKE).")
    see.keep("error-backtrace")
    see.press("Enter")
    see.see("shop.lisp ", " 3,1 ", without=["<CR> goes"])
    see.keep("error-source")


@step
def a_backtrace_leads_to_the_text_that_is_being_edited(person):
    see = person.screen
    person.edit("shop.lisp")
    see.type("Go(price :coffee)")
    see.press("Escape")
    see.type("\\ee")
    see.see("✗", ":COFFEE fell through")
    see.type("\\ev")
    see.see(" Error ", "0  (SHOP:PRICE :COFFEE)")
    see.press("Enter")
    see.see(" 3,1 ", without=[" Error ", "E37"])
    see.command("edit!")
    # The function that signals is not shown as the program's first frame.
    see.command("Consort eval (progn (defun shop::fail () (error \"no way\")) (shop::fail))")
    see.see(" Error ", "SIMPLE-ERROR: no way", "0  (SHOP::FAIL)", without=["(ERROR \"no way\")"])
    see.type("q")


@step
def what_runs_shows_so_and_is_stopped(person):
    see = person.screen
    person.edit("scratch.lisp")
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + OLD)
    see.type("Go(progn (format t \"begun~%\") (finish-output) (loop (sleep 1)))")
    see.press("Escape")
    see.type("\\ee")
    see.see(" s · \\i stops", "  begun")
    # A form behind it waits, and says so; it keeps its value when it is cancelled.
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("(total '(:tea :cake))  … queued · \\i stops", " s · \\i stops", "  begun")
    see.keep("running")
    see.type("\\i")
    see.see("2 interrupted", "⇒ " + OLD + "  · cancelled, not evaluated again", without=["\\i stops"])
    see.command("edit!")
    # A value at a line outside of the window is shown as a message.
    see.type("ggO(list :far")
    see.press("Enter")
    for _ in range(60):
        see.press("Enter")
    see.type(")")
    see.press("Escape")
    see.type("gg0\\ee")
    see.see("Consort: ⇒ (:FAR)")
    see.command("edit!")


@step
def code_that_reads_asks(person):
    see = person.screen
    person.edit("scratch.lisp")
    see.type("Go(list (progn (princ \"How many? \") (read)) :asked)")
    see.press("Escape")
    # Keys typed before the question is shown are no answer.
    see.type("\\eekj0")
    see.see("\nHow many?")
    see.keep("input")
    see.type("42")
    see.press("Enter")
    see.see("⇒ (42 :ASKED)")
    see.type("\\ee")
    see.see("\nHow many?")
    see.press("Escape")
    see.see("✗", "END-OF-FILE")
    see.command("edit!")
    see.type("\\s")
    see.see("SHOP>")
    see.type("(progn (princ \"Name? \") (string-upcase (read-line)))")
    see.press("Enter")
    see.see("\nName?")
    see.type("ada")
    see.press("Enter")
    see.see("\nName? ada\n", "\n\"ADA\"")
    # A question of code that has ended is removed.
    see.type("(read-line)")
    see.press("Enter")
    see.see("Lisp reads a line:")
    before = person.status()["image"]["pid"]
    os.kill(before, signal.SIGKILL)
    see.see("SHOP>", without=["Lisp reads a line:"])
    see.press("Escape")
    see.command("bwipeout!")
    person.another_image(before)
    person.load("shop")


@step
def what_differs_from_the_image_has_a_sign(person):
    see = person.screen
    person.edit("shop.lisp")
    see.until("no sign", lambda: "┊" not in see.text())
    person.go("(:tea 3)")
    see.type("f3r5")
    see.see("┊ (defun price (item)", "┊     (:tea 5)")
    see.keep("differs")
    see.type("\\el")
    see.see("1 form evaluated", without=["┊"])
    see.command("edit!")
    see.see("┊ (defun price (item)")
    see.type("\\el")
    see.see("1 form evaluated", without=["┊"])


@step
def code_in_a_package_that_is_not_there_says_what_to_type(person):
    see = person.screen
    person.edit("shop.lisp")
    see.type("ggO(in-package :not-there)")
    see.press("Enter")
    see.type("(car nil)")
    see.press("Escape")
    see.type("\\ee")
    see.see("Consort: no package NOT-THERE yet: \\eb")
    see.command("edit!")


@step
def a_profile_leads_to_the_function(person):
    see = person.screen
    person.edit("scratch.lisp")
    person.go("(fib 38)")
    see.type("\\p")
    see.see(" Profile: processor time ", "⇒ 39088169", "self   total  function", "SHOP::FIB", "Calls", "████")
    see.keep("profile")
    see.press("Enter")
    see.see("shop.lisp ", "19,1", without=["Profile:"])
