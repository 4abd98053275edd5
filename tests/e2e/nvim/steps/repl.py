"""The REPL: entries of several lines, history, output and interrupts."""

from . import step


@step
def the_repl_takes_several_lines(person):
    see = person.screen

    def prompted(prompt):
        """Returns true if a prompt is on the screen with nothing typed behind it."""
        return any(line.rstrip() == prompt for line in see.text().split("\n"))

    person.edit("shop.lisp")
    see.type("\\s")
    see.see("SHOP>")  # the package of the file
    see.type("(in-package :cl-user)")
    see.press("Enter")
    see.see("CL-USER>")
    see.type("(list 1")
    see.press("Enter")
    see.type("(format nil \"~a\" :two))")
    see.see("CL-USER> (list 1", "(format nil \"~a\" :two))", without=["(1 \"TWO\")"])
    see.press("Enter")
    see.see("(1 \"TWO\")")
    see.type("(in-package :shop)")
    see.press("Enter")
    see.until("the package", lambda: prompted("SHOP>"))
    see.type("(price :gold)")
    see.press("Enter")
    see.see(":GOLD fell through", "0 (SHOP:PRICE :GOLD)")
    see.press("C-p", "C-p", "C-p")
    see.until("the lines of before", lambda: see.text().count("(list 1") == 2)
    see.keep("repl")
    # The lines of an entry are aligned below its first.
    first, second = [line for line in see.text().split("\n") if "(list 1" in line or ":two))" in line][:2]
    assert second.index("(format") == first.index("1"), (first, second)
    see.press("C-n", "C-n", "C-n")
    see.type("(in-package :cl-user)")
    see.press("Enter")
    see.until("the package", lambda: prompted("CL-USER>"))
    # Output is shown before the value is there.
    see.type("(progn (format t \"one~%two~%\") (finish-output) (sleep 60))")
    see.press("Enter")
    see.see("\none\ntwo\n")
    see.press("C-c")
    see.see("interrupted")
    # Text that is typed during an evaluation goes behind the next prompt.
    see.type("(sleep 1)")
    see.press("Enter")
    see.type(":ahead")
    see.see("CL-USER> :ahead")
    see.press("Enter")
    see.see("\n:AHEAD\n")
    see.press("Escape")
    see.command("bwipeout!")
    see.see(without=["SHOP>", "CL-USER>"])
    # The history outlasts the REPL's buffer.
    see.type("\\s")
    see.until("the package", lambda: prompted("SHOP>"))
    see.press("C-p", "C-p", "C-p", "C-p")
    see.see("SHOP> (in-package :cl-user)")
    see.press("Escape")
    see.command("bwipeout!")
