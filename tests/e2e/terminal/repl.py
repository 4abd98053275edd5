"""`consort repl` in a real terminal (tmux's), key by key.

    repl.py PLACE OUT     # PLACE: an empty directory; the environment is run.sh's. $ONLY: a pattern, the steps whose names match

Each step begins with an empty prompt in a program that was just started, and ends it by Ctrl-D. The image is the same for all.
"""

import os
import re
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../nvim"))

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from hostile import Clone
from terminal import Terminal

STEPS = []
FAILS = """(defun fails (n) (restart-case (error "boom ~A" n) (use-other (value) :report "Use another." :interactive (lambda () (list (read))) (list :used value))))"""


def step(function):
    STEPS.append(function)
    return function


class Person:
    """The person's workspace and terminal."""

    def __init__(self, place, out):
        self.workspace = os.path.join(place, "work")
        os.makedirs(os.path.join(self.workspace, ".git"))
        self.place, self.screen = place, Terminal(os.path.join(place, "tmux"), out)
        self.env = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "CONSORT_", "TMP", "HOME", "PATH"))}
        self.env |= {"LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def start(self, *prefix, prompt="CL-USER> "):
        self.screen.start(*prefix, os.environ["CONSORT_BIN"], "repl", cwd=self.workspace, env=self.env)
        self.prompt(prompt)

    def prompt(self, prompt="CL-USER> "):
        """Waits for a prompt with nothing behind it."""
        self.screen.until(f"the prompt {prompt!r}", lambda: self.last() == prompt.rstrip())

    def last(self):
        """Returns the last line that is not empty."""
        return next((line.rstrip() for line in reversed(self.screen.text().split("\n")) if line.strip()), "")

    def line(self, wanted):
        """Waits for a line that is only WANTED, and not typed behind a prompt."""
        self.screen.until(f"the line {wanted!r}", lambda: any(line.rstrip() == wanted for line in self.screen.text().split("\n")))

    def completes(self, wanted):
        """Presses Tab until WANTED is shown: a busy machine may not have the index of names at the first Tab."""
        def shown():
            self.screen.press("Tab")
            end = time.monotonic() + 3
            while time.monotonic() < end:
                if wanted in self.screen.text():
                    return True
                time.sleep(0.05)
            return False

        self.screen.until(f"the completion {wanted!r}", shown)

    def enter(self, text):
        self.screen.type(text)
        self.screen.press("Enter")

    def end_of_input(self):
        """Presses Ctrl-D behind a prompt. Without one the terminal itself would take the key."""
        self.screen.until("a prompt", lambda: re.fullmatch(r"[^ ]+( \[\d+\])?>", self.last()))
        self.screen.press("C-d")

    def leave(self):
        self.end_of_input()
        self.screen.until("the program to end", lambda: not self.screen.running())

    def end(self):
        self.screen.end()

    def consort(self, *arguments):
        return subprocess.run([os.environ["CONSORT_BIN"], *arguments], cwd=self.workspace, env=os.environ | self.env, capture_output=True, text=True, check=False)


@step
def an_entry_has_the_lines_that_it_needs(person):
    person.enter("(defun twice (x)")
    person.enter("(* 2 x))")
    person.line("=> TWICE")
    # The second line was indented.
    person.line("  (* 2 x))")
    person.enter("(list (twice 21) *)")
    person.line("=> (42 TWICE)")
    person.enter("1 (values 2 3) (values)")
    person.line("; no values")
    person.screen.see("=> 1\n=> 2\n=> 3\n")
    person.enter("(loop for i below 101 collect :i)")
    person.screen.see("...)\n; abridged; (print *) prints all of it\n")
    person.enter("(car '(a) ))")
    person.screen.see("closes nothing")
    person.prompt()


@step
def what_cannot_be_read_is_shown_as_a_check_shows_it(person):
    person.enter("(list (no-such-package:f 1))")
    person.screen.see("error[unknown-package]: Package NO-SUCH-PACKAGE does not exist; a package is there", "^^^^^^^^^^^^^^^^^")
    person.prompt()
    # Code that reads has its own stop.
    person.enter('(read-from-string "no-such-package:f")')
    person.prompt("CL-USER [1]> ")
    person.enter("no-such-package:f")
    person.screen.see("Package NO-SUCH-PACKAGE does not exist.", without=["Stream: #<STRING-INPUT-STREAM>\nCL-USER [1]>"])
    person.enter(":abort")
    person.prompt()


@step
def code_at_a_stop_is_read_in_the_package_that_the_prompt_names(person):
    person.enter("(defpackage :shelf (:use :cl))")
    person.screen.see('=> #<PACKAGE "SHELF">')
    person.enter("(in-package :shelf)")
    person.prompt("SHELF> ")
    person.enter('(defun put-in (book) (list (cerror "Go on." "no room for ~A" book) book))')
    person.line("=> PUT-IN")
    person.enter("(in-package :cl-user)")
    person.prompt()
    person.enter("(list (shelf::put-in :dune))")
    person.prompt("SHELF [1]> ")
    person.enter("(list book (fboundp 'put-in))")
    person.screen.see("=> (:DUNE #<FUNCTION SHELF::PUT-IN")
    # A name of the frame's package is completed there.
    person.screen.type("(put-i")
    person.completes("SHELF [1]> (put-in")
    person.screen.press("C-c")
    # A warning of the code is told with it, not with the evaluation that is stopped.
    person.enter('(progn (warn "a shelf of ~A" 3) 4)')
    person.screen.see("WARNING: a shelf of 3\n=> 4")
    # Code that fails there stops in the same package.
    person.enter("(car book)")
    person.prompt("SHELF [2]> ")
    person.enter(":abort")
    person.prompt("SHELF [1]> ")
    person.enter(":abort")
    person.screen.see("SIMPLE-ERROR: no room for DUNE", without=["SIMPLE-ERROR: no room for DUNE\n  WARNING"])
    person.prompt()


@step
def a_command_that_means_nothing_here_is_said(person):
    person.enter(":bt")
    person.line("Nothing is stopped: :bt is for the debugger, which opens at an error.")
    person.enter(":hepl")
    person.screen.see("=> :HEPL\n; :help lists the commands\n")
    person.enter(FAILS)
    person.line("=> FAILS")
    person.enter("(fails 5)")
    person.prompt("CL-USER [1]> ")
    person.enter(":hepl")
    person.screen.see("=> :HEPL\n; :help lists the commands\nCL-USER [1]>")
    person.enter("0")
    person.screen.see("Arguments of the restart, as Lisp forms (none: empty):")
    person.enter("(+ 1")
    person.screen.see("error[unbalanced-list]: This list is never closed")
    person.prompt("CL-USER [1]> ")
    person.enter(":abort")
    person.prompt()
    # The words of newcomers.
    person.enter("quit")
    person.screen.see("quit\n; :help lists the commands, :quit leaves\nUNBOUND-VARIABLE: ")
    person.prompt("CL-USER [1]> ")
    person.enter("exit")
    person.screen.see("exit\n; :help lists the commands, :abort ends the program, :quit then leaves\nUNBOUND-VARIABLE: ")
    person.prompt("CL-USER [2]> ")
    person.enter(":abort")
    person.enter(":abort")
    person.prompt()
    person.enter("(defvar *stays* :stays)")
    person.line("=> *STAYS*")
    person.enter("(quit)")
    person.screen.until("the end", lambda: not person.screen.running())
    person.start()
    person.enter("*stays*")
    person.line("=> :STAYS")
    person.prompt()


@step
def the_history_is_there_after_a_restart(person):
    person.enter("(list :remembered 1)")
    person.line("=> (:REMEMBERED 1)")
    person.leave()
    person.start()
    person.screen.press("C-r")
    person.screen.type("remem")
    person.screen.see("(list :remembered 1)")
    person.screen.press("Enter")
    person.line("=> (:REMEMBERED 1)")
    assert oct(os.stat(os.path.join(os.environ["XDG_STATE_HOME"], "consort/repl-history")).st_mode & 0o777) == "0o600"


@step
def tab_completes(person):
    person.enter("(defun frobnicate-it (x) (list x))")
    person.line("=> FROBNICATE-IT")
    person.screen.type("(frobn")
    person.completes("(frobnicate-it")
    person.enter(" 4)")
    person.line("=> (4)")
    person.screen.type("(multiple-value-")
    person.screen.press("Tab", "Tab")
    person.screen.see("multiple-value-bind", "multiple-value-call")
    person.screen.press("C-c")
    person.prompt()


@step
def an_error_has_restarts_that_a_digit_invokes(person):
    person.enter(FAILS)
    person.line("=> FAILS")
    person.enter("(fails 5)")
    person.prompt("CL-USER [1]> ")
    person.screen.see("SIMPLE-ERROR: boom 5", "0: [USE-OTHER] Use another.", "* 0: FAILS")
    person.screen.keep("restarts")
    person.enter("(list :twice (* 2 n))")
    person.line("=> (:TWICE 10)")
    person.enter(":locals")
    person.line("  N     = 5")
    # Output comes before the value.
    person.enter('(progn (format t "~A~%" :printed) :value)')
    person.screen.see("PRINTED\n=> :VALUE")
    # An error in code at a stop is a stop of its own, from which one comes back.
    person.enter("(car n)")
    person.prompt("CL-USER [2]> ")
    person.screen.see("TYPE-ERROR", "Go back to the stop at level 1.")
    person.enter("(list :deeper (fails 8))")
    person.prompt("CL-USER [3]> ")
    person.enter("0 :inner")
    person.line("=> (:DEEPER (:USED :INNER))")
    person.prompt("CL-USER [2]> ")
    person.enter(":abort")
    person.prompt("CL-USER [1]> ")
    person.enter("(list :back n)")
    person.line("=> (:BACK 5)")
    person.enter("99")
    person.screen.see("There is no restart 99")
    person.enter("0")
    person.screen.see("Arguments of the restart, as Lisp forms (none: empty):")
    person.enter("(+ n 2)")
    person.line("=> (:USED 7)")
    person.enter("(fails 6)")
    person.prompt("CL-USER [1]> ")
    person.enter("0 :given")
    person.line("=> (:USED :GIVEN)")
    # A break that is continued; then the ways back to the top level.
    person.enter('(progn (break "here") :went-on)')
    person.prompt("CL-USER [1]> ")
    person.enter(":continue")
    person.line("=> :WENT-ON")
    person.enter('(error "first")')
    person.prompt("CL-USER [1]> ")
    person.enter(":abort")
    person.prompt()
    person.enter('(error "second")')
    person.prompt("CL-USER [1]> ")
    person.screen.press("C-d")
    person.prompt()
    person.enter("(list :still 1)")
    person.line("=> (:STILL 1)")


@step
def ctrl_c_interrupts_the_evaluation_and_not_the_program(person):
    person.enter('(progn (format t "~A~%" :looping) (loop))')
    person.line("LOOPING")
    person.screen.press("C-c")
    person.line("; interrupted")
    person.enter("(list :alive 1)")
    person.line("=> (:ALIVE 1)")
    # The same for code at a stop, here in the frame of the form alone.
    person.enter('(error "stopped")')
    person.prompt("CL-USER [1]> ")
    person.enter('(progn (format t "~A~%" :round-again) (loop))')
    person.line("ROUND-AGAIN")
    person.screen.press("C-c")
    person.line("cancelled")
    person.enter(":abort")
    person.prompt()


@step
def code_that_reads_asks_here(person):
    person.enter('(progn (format t "~A? " :name) (list :hello (read-line)))')
    person.line("NAME?")
    person.enter("Ada (x")
    person.line('=> (:HELLO "Ada (x")')
    person.enter('(if (y-or-n-p "Sure") :yes :no)')
    person.screen.see("Sure (y or n)")
    person.enter("y")
    person.line("=> :YES")
    person.enter('(progn (format t "~A? " :end) (read-line nil nil :eof))')
    person.line("END?")
    person.screen.press("C-d")
    person.line("=> :EOF")


@step
def what_is_typed_ahead_waits(person):
    person.enter('(progn (format t "~A~%" :begun) (sleep 1) (list :slow 1))')
    person.line("BEGUN")
    person.enter("(list :ahead 1)")
    person.enter("(list :ahead 2)")
    for line in ["=> (:SLOW 1)", "=> (:AHEAD 1)", "=> (:AHEAD 2)"]:
        person.line(line)
    person.prompt()


@step
def packages_and_output(person):
    person.enter("(defpackage :counter (:use :cl)) (in-package :counter)")
    person.prompt("COUNTER> ")
    person.enter('(progn (format t "~C[31mred" (code-char 27)) (values))')
    person.screen.see("\\u{1b}[31mred")
    person.prompt("COUNTER> ")
    person.enter("(in-package :cl-user)")
    person.prompt()


@step
def a_host_that_ended_is_said_and_replaced(person):
    person.enter("(in-package :keyword)")
    person.prompt("KEYWORD> ")
    person.consort("stop")
    person.enter("(list :again 1)")
    person.screen.see("The Consort host has ended")
    person.line("=> (:AGAIN 1)")
    person.prompt()


def a_dumb_terminal_has_lines(person):
    person.start("/usr/bin/env", "TERM=dumb")
    person.enter("(list 1")
    person.enter("      2)")
    person.line("=> (1 2)")
    person.enter('(error "dumb")')
    person.prompt("CL-USER [1]> ")
    person.enter(":abort")
    person.prompt()
    person.leave()


def a_hostile_clone_runs_nothing_until_it_is_trusted(person):
    clone, env = Clone(os.path.join(person.place, "clone")), os.environ | person.env

    def start(*arguments):
        # The last output of a program that has ended stays until a key is pressed.
        person.screen.start("/bin/sh", "-c", '"$@"; echo ended; read -r _', "sh", os.environ["CONSORT_BIN"], *arguments, cwd=clone.directory, env=person.env)

    def leave():
        # A key that comes while the line editor gives the terminal back is discarded.
        person.line("ended")
        person.screen.press("Enter")
        person.screen.until("the program to end", lambda: not person.screen.running())

    try:
        for command, answer in [(["check", "greet.lisp"], "NO-SUCH-FUNCTION"), (["eval", "(+ 1 2)"], "=> 3"), (["doctor"], "SBCL 2")]:
            done = clone.consort(*command, env=env)
            assert answer in done.stdout and clone.ran() == [], (done, clone.ran())
            notices = [line for line in (done.stdout + done.stderr).splitlines() if "consort trust" in line]
            assert len(notices) == 1, done
        start("repl")
        person.prompt()
        person.screen.see("consort trust")
        person.enter("(+ 1 2)")
        person.line("=> 3")
        person.end_of_input()
        leave()
        assert clone.ran() == [], clone.ran()
        # Enter alone refuses.
        start("trust")
        person.screen.see('lisp.command = ["./lisp.sh"]', "Do you trust it? [y/N]")
        person.screen.keep("hostile-trust")
        person.screen.press("Enter")
        person.screen.see("It is not trusted")
        leave()
        assert clone.consort("trust", "--list", env=env).returncode == 1
        clone.write("consort.toml", '[lisp]\ninit_file = "init.lisp"\n')
        start("trust")
        person.screen.see("Do you trust it? [y/N]")
        person.enter("y")
        person.screen.see("is trusted with this")
        leave()
        start("repl")
        person.prompt()
        person.enter("(+ 1 2)")
        person.line("=> 3")
        person.end_of_input()
        leave()
        assert clone.ran() == ["init"], clone.ran()
    finally:
        clone.consort("stop", env=env)


def attempt(person, run, started):
    """Runs a step; returns true if it passes. Prints the outcome, for a failure with the reason and the screen."""
    try:
        if started:
            person.start()
        run(person)
        if started:
            person.leave()
        print("ok  ", run.__name__.replace("_", " "), flush=True)
        return True
    except Exception:
        print("FAIL", run.__name__.replace("_", " "))
        traceback.print_exc(file=sys.stdout)
        if person.screen.running():
            person.screen.keep("failed-" + run.__name__)
        person.end()
        print(f"alone: CONSORT_BIN=$PWD/target/debug/consort scripts/isolated tests/e2e/terminal/run.sh {run.__name__}", flush=True)
        return False


def main():
    place, out = sys.argv[1:]
    # A run that is ended by a signal ends its terminal and host, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    only = re.compile(os.environ.get("ONLY", ""))
    person, passed, failed = Person(place, out), 0, 0
    try:
        for run in [*STEPS, a_dumb_terminal_has_lines, a_hostile_clone_runs_nothing_until_it_is_trusted]:
            if not only.search(run.__name__):
                continue
            good = attempt(person, run, run in STEPS)
            passed, failed = passed + good, failed + (not good)
    finally:
        person.end()
        person.consort("stop")
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
