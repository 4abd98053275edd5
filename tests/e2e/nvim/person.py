"""What a person does in Neovim, key by key in a real terminal, with an agent beside. What is seen is kept in tests/out/nvim.

    person.py NVIM PLACE OUT     # PLACE: an empty directory; the environment is run.sh's. $ONLY: a pattern, the steps whose names match

Each step begins in an editor with the workspace's texts and the image with its system. One that fails is tried once more, from a workspace, an image
and an editor that are new, and is then told as flaky.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback

from agent import Agent
from terminal import Terminal

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.realpath(os.path.join(HERE, "../../../editors/neovim"))
STEPS = []
# The price of two goods, before and after an agent's change.
OLD, NEW = "63/10", "70497/10000"


def step(function):
    STEPS.append(function)
    return function


class Person:
    """The person's workspace, terminal and agent."""

    def __init__(self, nvim, place, out):
        self.nvim, self.workspace = nvim, os.path.join(place, "shop")
        self.fill()
        config = os.path.join(place, "config")
        os.makedirs(os.path.join(config, "nvim"))
        with open(os.path.join(config, "nvim/init.lua"), "w") as init:
            # The README's configuration, and quiet.
            init.write(f"vim.opt.runtimepath:append('{PLUGIN}')\nvim.lsp.enable('consort')\nvim.o.swapfile = false\nvim.o.background = 'dark'\n")
        self.env = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "CONSORT_", "TMP", "HOME", "PATH"))}
        self.env |= {"XDG_CONFIG_HOME": config, "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        os.makedirs(os.path.join(config, "consort"), exist_ok=True)
        with open(os.path.join(config, "consort/config.toml"), "w") as settings:
            settings.write('[debug]\non_error = "report"\n')
        self.screen = Terminal(os.path.join(place, "tmux"), out)
        self.agent = Agent(self.workspace, os.environ | self.env)

    def fill(self):
        """The workspace as it was at first."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        shutil.copytree(os.path.join(HERE, "workspace"), self.workspace)
        os.mkdir(os.path.join(self.workspace, ".git"))

    def ready(self):
        """An editor with the system in its image."""
        self.open("package.lisp")
        self.load("shop")

    def load(self, system):
        """The system, by the person's command; what is said of it may be said over, so the image is asked."""
        self.screen.command("Consort load " + system)
        self.screen.until(f"{system} to be loaded", lambda: system in (self.status()["image"].get("facts") or {}).get("systems", []))
        self.screen.press("Escape")

    def anew(self):
        """Another editor, image and workspace, whatever state they were in."""
        self.screen.end()
        self.consort("stop")
        self.fill()
        self.ready()

    def until_file(self, name, text):
        """Until TEXT is written in the file."""
        there = os.path.join(self.workspace, name)
        self.screen.until(f"{text!r} in {name}", lambda: os.path.exists(there) and text in self.file(name))

    def consort(self, *arguments):
        return subprocess.run([os.environ["CONSORT_BIN"], *arguments], cwd=self.workspace, env=os.environ | self.env, capture_output=True, text=True, check=False)

    def status(self):
        """What `consort status` says; nothing while there is no host to say it."""
        done = self.consort("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {"image": {"state": "none", "pid": None, "image": None}}

    def open(self, file):
        """Start Neovim on a file, and wait until it takes keys and Lisp is there."""
        self.screen.start(self.nvim, file, cwd=self.workspace, env=self.env)
        self.screen.see(file)
        self.screen.until("the keys", lambda: "consort-eval" in _maps(self.screen))
        self.screen.press("Escape")
        self.screen.until("an image", lambda: self.status()["image"]["state"] == "ready")

    def edit(self, file):
        """Another file, in the window that is there, with nothing above it."""
        self.screen.press("Escape")
        self.screen.command(f"silent! wall | silent! only | silent! cclose | exe bufloaded('{file}') ? 'buffer {file}' : 'edit {file}'")
        self.screen.see(file + " ")

    def go(self, text):
        """The cursor to the last place in the file where TEXT begins."""
        quoted = text.replace("'", "''")
        self.screen.command(f"call cursor(line('$'), 999) | call search('\\V{quoted}', 'b')")

    def restore(self, name):
        """The text that the file of this editor had at first."""
        shutil.copy(os.path.join(HERE, "workspace", name), os.path.join(self.workspace, name))
        self.screen.command("edit!")

    def file(self, name):
        with open(os.path.join(self.workspace, name)) as file:
            return file.read()


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
    person.go("(progn (format")
    see.type("\\ee")
    see.see("⇒ 1, :TWO", "  one", "  two")
    see.keep("inline-value")
    person.go("(total '(:tea :cake))")
    # The result belongs to a text that is edited, and goes with it.
    see.type("f:")
    see.type("xu")
    see.see("1 change", without=["⇒ " + OLD])


def _maps(see):
    see.press("Escape")
    see.command("nmap <buffer> \\ee")
    return see.text()


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
    see.type("Go(progn (format t \"begun~%\") (finish-output) (loop (sleep 1)))")
    see.press("Escape")
    see.type("\\ee")
    see.see(" s · \\i stops", "  begun")
    see.keep("running")
    see.type("\\i")
    see.see("1 interrupted", without=[" s · \\i stops"])
    see.command("edit!")
    # A value beyond the window is said.
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
    # Keys that are typed on are no answer.
    see.type("\\ee")
    see.type("kj0")
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
    # Nothing is asked any longer about code that is gone.
    see.type("(read-line)")
    see.press("Enter")
    see.see("Lisp reads a line:")
    os.kill(person.status()["image"]["pid"], signal.SIGKILL)
    see.see("SHOP>", without=["Lisp reads a line:"])
    see.press("Escape")
    see.command("bwipeout!")
    see.until("another image", lambda: person.status()["image"]["state"] == "ready")
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
def mistakes_are_marked_at_their_characters(person):
    see = person.screen
    person.edit("mistakes.lisp")
    want = [(4, "heigth"), (10, "not-written-yet")]
    see.until("the marks", lambda: see.marked() == want)
    # Unused names are faint, as Neovim shows them, and they alone.
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
    see.see("(declare (ignore name))")
    see.until("no mark on it", lambda: see.faint(6) == [])
    see.command("w")
    person.until_file("mistakes.lisp", "(declare (ignore name))")
    see.keep("quick-fix-done")


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
def a_profile_leads_to_the_function(person):
    see = person.screen
    person.edit("scratch.lisp")
    person.go("(fib 38)")
    see.type("\\p")
    see.see(" Profile: processor time ", "⇒ 39088169", "self   total  function", "SHOP::FIB", "Calls", "████")
    see.keep("profile")
    see.press("Enter")
    see.see("shop.lisp ", "19,1", without=["Profile:"])


@step
def the_repl_takes_several_lines(person):
    see = person.screen

    def prompted(prompt):
        """Whether a prompt stands there behind which nothing was typed."""
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
    # Lines of a form stand below its first.
    first, second = [line for line in see.text().split("\n") if "(list 1" in line or ":two))" in line][:2]
    assert second.index("(format") == first.index("1"), (first, second)
    see.press("C-n", "C-n", "C-n")
    see.type("(in-package :cl-user)")
    see.press("Enter")
    see.until("the package", lambda: prompted("CL-USER>"))
    # Output stands there before the value.
    see.type("(progn (format t \"one~%two~%\") (finish-output) (sleep 60))")
    see.press("Enter")
    see.see("\none\ntwo\n")
    see.press("C-c")
    see.see("interrupted")
    # Text that is typed while something runs goes behind the next prompt.
    see.type("(sleep 1)")
    see.press("Enter")
    see.type(":ahead")
    see.see("CL-USER> :ahead")
    see.press("Enter")
    see.see("\n:AHEAD\n")
    see.press("Escape")
    see.command("bwipeout!")
    # History stays.
    see.type("\\s")
    see.see("SHOP>")
    see.press("C-p", "C-p", "C-p", "C-p")
    see.see("SHOP> (in-package :cl-user)")
    see.press("Escape")
    see.command("bwipeout!")


def asked(person, answer, *wanted):
    """Wait until the question stands on the screen; a call that is answered without it says how."""
    def there():
        if not answer.empty():
            raise AssertionError(f"answered before the person was asked: {person.agent.result(answer)}")
        return all(one in person.screen.text() for one in wanted)

    person.screen.until(f"asked {wanted!r}", there)


def ask(person):
    """The agent wants to replace a function; the person sees it, and the code."""
    answer = person.agent.call(
        "code_replace_function", function="shop:price",
        new_code='(defun price (item)\n  "What ITEM costs, with tax."\n  (* 1119/1000 (ecase item (:tea 3) (:cake 4))))')
    asked(person, answer, "Claude Code 2.1 asks, until ", "Replace the function shop:price", "(* 1119/1000 (ecase item", "\\a answers")
    return answer


def to_the_question(person):
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
    # Ordinary typing, with every key that has ever answered a question in it.
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
    see.see("asks, until", "\\a answers")
    assert answer.empty(), person.agent.result(answer)
    # `:only` closes windows, and answers nothing.
    see.command("only")
    see.see("asks, until", "\\a answers")
    see.keep("agent-asks-while-typing")
    # The code never stands where the cursor is.
    see.type("gg")
    see.until("the question in the lower half", lambda: _row(see, "asks, until") > 12)
    see.see("(in-package :shop)")
    see.type("GzbH")
    see.until("the question still there", lambda: _row(see, "asks, until") > 12)
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
    see.see("1 redefined")
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
    see.see("no agent has replaced a function of a file here")
    see.type("\\u")
    see.see("1 redefined")
    person.edit("scratch.lisp")


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
    # The next edit meets no warning.
    see.type("Go;; by the person")
    see.press("Escape")
    see.command("w")
    person.until_file("scratch.lisp", ";; by the person")
    assert ";; by an agent" in person.file("scratch.lisp")
    # A text with unsaved changes stays.
    see.type("o;; unsaved")
    see.press("Escape")
    with open(path, "w") as file:
        file.write(text)
    see.command("Consort status")  # an answer of the server: what was written was seen long ago
    see.see(" Consort ", "SBCL")
    see.type("q")
    see.see(";; unsaved", ";; by the person")
    see.command("edit!")
    see.see("(fib 38)", without=[";; unsaved", ";; by an agent"])


@step
def code_in_a_package_that_is_not_there_says_what_to_type(person):
    see = person.screen
    person.edit("shop.lisp")
    see.type("ggO(in-package :not-there)")
    see.press("Enter")
    see.type("(car nil)")
    see.press("Escape")
    see.type("\\ee")
    see.see("Consort: NOT-THERE does not exist yet: \\eb")
    see.command("edit!")


@step
def a_failed_test_is_shown_at_its_line(person):
    see = person.screen
    person.edit("tests.lisp")
    person.load("shop/tests")
    see.see("Run test")  # code lenses, above what defines a test
    person.go("cake-is-dear")
    see.type("\\t")
    see.see("the test failed", "[Quickfix List]", "CAKE-IS-DEAR")
    see.until("the failure in the line of its test", lambda: "■ (SHOP:PRICE :CAKE) evaluated to 4" in next(
        (row for row in see.text().split("\n") if "(test cake-is-dear" in row), ""))
    see.keep("test-failed")
    see.command("cclose")
    # Corrected, it is run as it stands, and not as it was loaded.
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
    act("(first '(1)", "\\R", "(first '(1))")
    see.command("edit!")
    # Counts, `.` and registers are as they are for Vim's own.
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
def an_image_that_is_killed_comes_back(person):
    see = person.screen
    person.edit("shop.lisp")
    before = person.status()["image"]["pid"]
    os.kill(before, signal.SIGKILL)

    def again():
        image = person.status()["image"]
        return image["state"] == "ready" and image["pid"] != before

    see.until("another image", again)
    person.edit("scratch.lisp")
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + OLD)  # the system was loaded again
    see.keep("recovered")


@step
def neovim_is_started_again_and_the_image_is_as_it_was(person):
    see = person.screen
    person.edit("shop.lisp")
    see.command("Consort eval (defparameter shop::*seen* 42)")
    see.see("SHOP::*SEEN*", " Value ")
    see.type("q")
    image = person.status()["image"]["image"]
    see.command("qa!")
    see.until("its end", lambda: not see.running())
    person.open("shop.lisp")
    see.command("Consort eval shop::*seen*")
    see.see("⇒ 42")
    assert person.status()["image"]["image"] == image
    see.type("q")


@step
def it_is_readable_on_a_light_background(person):
    see = person.screen
    see.command("set background=light")
    see.ground = "light"
    person.edit("scratch.lisp")
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + OLD)
    person.go("(total '(:tea :coffee))")
    see.type("\\ee")
    see.see("✗")
    see.keep("light-inline")
    see.type("\\ev")
    see.see(" Error ")
    see.keep("light-backtrace")
    see.type("q")
    person.edit("shop.lisp")
    person.go("with-discount (10")
    see.type("\\mm")
    see.see(" Macroexpansion ")
    see.keep("light-expansion")
    see.type("q")
    answer = ask(person)
    see.keep("light-agent-asks")
    to_the_question(person)
    see.type("d")
    assert person.agent.result(answer).isError
    see.command("Consort status")
    see.see(" Consort ", "SBCL", "Claude Code 2.1 (agent)", "(editor)")
    see.keep("light-status")
    see.type("q")
    see.command("Consort log")
    see.see("What ran", "Claude Code 2.1", "(defun price (item)")
    see.keep("light-log")
    see.type("q")
    see.ground = "dark"
    see.command("set background=dark")


def attempt(person, run, word):
    """Whether the step passes; if not, the word with its name, why, with the screen, and how it is
    run alone."""
    try:
        run(person)
        return True
    except Exception:
        print(word, run.__name__.replace("_", " "))
        traceback.print_exc(file=sys.stdout)
        if person.screen.running():
            person.screen.keep("failed-" + run.__name__)
            print(f"the screen: tests/out/nvim/failed-{run.__name__}.txt")
        print(f"alone: CONSORT_BIN=$PWD/target/debug/consort scripts/isolated tests/e2e/nvim/run.sh person {run.__name__}", flush=True)
        return False


def main():
    nvim, place, out = sys.argv[1:]
    # Also when the run is ended from outside, terminal, editor and host are.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    only = re.compile(os.environ.get("ONLY", ""))
    person, passed, failed, flaky = Person(nvim, place, out), 0, 0, 0
    try:
        with person.agent:
            begun = False
            for run in STEPS:
                if not only.search(run.__name__):
                    continue
                if not begun:
                    person.ready()
                    begun = True
                good = attempt(person, run, "AGAIN")
                if not good:
                    person.agent.anew()
                    person.anew()
                    if good := attempt(person, run, "FAIL"):
                        flaky += 1
                    else:  # the next step begins with nothing of this one
                        person.agent.anew()
                        person.anew()
                passed, failed = passed + good, failed + (not good)
                if good:
                    print("ok  ", run.__name__.replace("_", " "), flush=True)
    finally:
        if person.screen.running():
            person.screen.press("Escape")
            person.screen.command("qa!")
        person.screen.end()
        person.consort("stop")
    if flaky:
        print(f"{flaky} flaky")
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
