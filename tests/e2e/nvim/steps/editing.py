"""Editing: macro expansion, structure, indentation, completion, and a file that another program
writes meanwhile."""

import os

from . import step


@step
def a_macro_is_expanded_further_and_back(person):
    see = person.screen
    person.edit("shop.lisp")
    person.go("with-discount (10")
    see.type("\\mm")
    see.see(" Macroexpansion ", "(let ((sum (progn (reduce", "(when (plusp 10)", "+ expands at the cursor")
    see.keep("expansion")
    see.command("call search('(when')")
    see.type("+")
    see.see("(if (plusp 10)", without=["(when (plusp 10)"])
    see.keep("expansion-further")
    see.type("-")
    see.see("(when (plusp 10)", without=["(if (plusp 10)"])
    see.type("q")
    see.see("(in-package :shop)", without=["Macroexpansion"])


@step
def structure_is_edited_around_strings_and_characters(person):
    see = person.screen
    person.edit("tricky.lisp")

    def act(at, keys, *want):
        person.go(at)
        see.type(keys)
        see.see(*want)

    act('(char "a)(b"', "\\>", '(list (char "a)(b" 1 #\\)) ; the ) of nobody')
    see.keep("structure")
    act('(char "a)(b"', "\\<", '(list (char "a)(b" 1) #\\) ; the ) of nobody')
    act("(first '(1))", "\\>", '(list (first \'(1) "(") #\\( :taken)')
    act("(first '(1)", "\\>", '(list (first \'(1) "(" #\\() :taken)')
    act("(first '(1)", "\\S", "(list first '(1) \"(\" #\\( :taken)")
    act("char \"a", "dif", "(list () #\\) ; the ) of nobody")
    see.command("edit!")
    person.go("(first '(1)")
    see.type("\\R")
    see.see("(first '(1))", without=["(list (first"])
    see.command("edit!")
    # Counts, `.` and registers work as for Vim's own commands.
    see.type("ggO(a (b c) d e f)")
    see.press("Escape")
    see.type("gg0fc2\\>")
    see.see("(a (b c d e) f)")
    see.type(".")
    see.see("(a (b c d e f))")
    see.type("u0fd\"x\\k")
    see.see("(a (b c  e) f)")
    see.type("A ")
    see.press("C-r")
    see.type("x")
    see.press("Escape")
    see.see("(a (b c  e) f) d")
    see.command("edit!")


@step
def a_new_line_is_indented_by_enter_as_by_formatting(person):
    see = person.screen
    person.edit("shop.lisp")
    see.type("Go")
    see.press("Enter")
    see.type("(with-discount (3)")
    see.press("Enter")
    see.type("(list 1")
    see.press("Enter")
    see.type("2))")
    see.press("Escape")
    lines = "(with-discount (3)\n  (list 1\n\t2))\n"  # 'expandtab' is off
    for number, keys in enumerate(("", "gg=G", "gggqG")):
        see.type(keys)
        see.command(f"write! typed-{number}")
        person.until_file(f"typed-{number}", lines)
        assert person.file(f"typed-{number}") == person.file("typed-0")
    see.command("edit!")
    see.see("(in-package :shop)", without=["(with-discount (3)"])


@step
def completion_behind_a_package_offers_what_it_exports(person):
    see = person.screen
    person.edit("scratch.lisp")
    see.type("Go(shop:")
    see.press("C-x", "C-o")
    shown = see.see("shop:price", "shop:total", "shop:with-discount")
    assert shown.count("shop:") == 4, shown  # one of them is typed
    see.keep("completion")
    see.press("C-e")
    see.type("to")
    see.press("C-x", "C-o")
    see.see("(shop:total", without=["shop:price"])
    see.press("C-y", "Escape")
    see.command("edit!")
    see.see("(fib 38)", without=["shop:total"])


@step
def a_file_that_another_program_writes_is_read_again(person):
    see = person.screen
    person.edit("scratch.lisp")
    path = os.path.join(person.workspace, "scratch.lisp")
    text = person.file("scratch.lisp")
    with open(path + ".new", "w") as file:
        file.write(text + "\n;; by an agent\n")
    os.rename(path + ".new", path)
    see.see(";; by an agent", "is read again")
    # The next edit raises no warning.
    see.type("Go;; by the person")
    see.press("Escape")
    see.command("w")
    person.until_file("scratch.lisp", ";; by the person")
    assert ";; by an agent" in person.file("scratch.lisp")
    # A text with unsaved changes stays. Another file of the directory is read again after it.
    see.command("split package.lisp")
    see.see("package.lisp ", "(defpackage :shop")
    see.press("C-w")
    see.type("po;; unsaved")
    see.press("Escape")
    see.see(";; unsaved")
    for name, words in [("scratch.lisp", text), ("package.lisp", person.file("package.lisp") + ";; written later\n")]:
        with open(os.path.join(person.workspace, name), "w") as file:
            file.write(words)
    see.see(";; written later", ";; unsaved")
    see.command("edit!")
    see.see("(fib 38)", without=[";; unsaved", ";; by an agent"])
    person.edit("package.lisp")
    person.restore("package.lisp")
    see.see("(defpackage :shop", without=[";; written later"])
