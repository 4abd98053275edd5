"""A hostile clone in Neovim, as a person opens it: one question, nothing runs, and after `consort trust` it works.

    hostile.py NVIM PLACE OUT     # PLACE: an empty directory; the environment is run.sh's
"""

import os
import re
import signal
import sys
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from hostile import Clone
from terminal import Terminal

PLUGIN = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../editors/neovim"))
QUESTION = "Do you trust it?"


class Person:
    def __init__(self, nvim, place, out):
        self.nvim, self.clone = nvim, Clone(os.path.join(place, "clone"))
        config = os.path.join(place, "config")
        os.makedirs(os.path.join(config, "nvim"))
        with open(os.path.join(config, "nvim/init.lua"), "w") as init:
            init.write(f"vim.opt.runtimepath:append('{PLUGIN}')\nvim.lsp.enable('consort')\nvim.o.swapfile = false\n")
        env = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "CONSORT_", "TMP", "HOME", "PATH"))}
        self.env = env | {"XDG_CONFIG_HOME": config, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        self.screen = Terminal(os.path.join(place, "tmux"), out)

    def open(self):
        self.screen.start(self.nvim, "greet.lisp", cwd=self.clone.directory, env=self.env)

    def keys(self):
        """Waits until the plugin's keys are mapped."""
        def there():
            self.screen.press("Escape")
            self.screen.command("nmap <buffer> \\ee")
            return "consort-eval" in self.screen.text()

        self.screen.until("the keys", there)
        self.screen.press("Escape")

    def evaluate(self, number):
        """Evaluates a form at the end of the file, and waits for its value. NUMBER must be another one each time."""
        self.screen.command(f"silent! edit! | call append(line('$'), '(list :a {number})') | call cursor(line('$'), 1)")
        self.screen.type("\\ee")
        self.screen.see(f"(list :a {number})  ⇒ (:A {number})")

    def close(self):
        if self.screen.running():
            self.screen.press("Escape")
            self.screen.command("qa!")
        self.screen.end()

    def end(self):
        self.close()
        self.clone.consort("stop", env=os.environ | self.env)


def one_question_comes_and_nothing_runs(person):
    person.open()
    person.screen.see(QUESTION, 'lisp.command = ["./lisp.sh"]', 'lisp.init_file = "init.lisp"', "1  Trust", "2  Not now", "\\a answers")
    person.screen.keep("hostile-question")
    # Ordinary typing is no answer.
    person.screen.type("1GO(defun f (x)")
    person.screen.press("Enter")
    person.screen.type("1")
    person.screen.press("Enter", "2", "Enter", "Escape")
    person.screen.see("(defun f (x)", QUESTION, "\\a answers")
    assert person.clone.ran() == [], person.clone.ran()
    person.screen.type("\\a2")
    person.screen.see(without=[QUESTION])
    person.keys()
    assert person.clone.ran() == [], person.clone.ran()
    person.evaluate(1)
    person.screen.keep("hostile-not-now")
    assert person.clone.ran() == [], person.clone.ran()
    # The text is checked by the person's own Lisp.
    def checked():
        person.screen.command("lua vim.diagnostic.open_float(nil, { scope = 'buffer', focus = false })")
        return "NO-SUCH-FUNCTION" in person.screen.text()

    person.screen.until("the finding", checked)
    person.screen.press("Escape")
    # The question is not asked again, also for another file.
    person.screen.command("edit init.lisp")
    person.screen.see("init.lisp ")
    person.evaluate(12)
    person.screen.see(without=[QUESTION])
    assert person.clone.ran() == [], person.clone.ran()


def after_trust_it_works(person):
    person.screen.command("edit greet.lisp")
    person.clone.trust(env=os.environ | person.env)
    person.evaluate(2)
    assert person.clone.ran() == ["init"], person.clone.ran()
    person.close()
    # Another editor is not asked either.
    person.open()
    person.keys()
    person.screen.see("greet.lisp ", without=[QUESTION])
    person.evaluate(3)
    person.screen.see(without=[QUESTION])


def main():
    nvim, place, out = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    only = re.compile(os.environ.get("ONLY", ""))
    person, passed, failed = Person(nvim, place, out), 0, 0
    try:
        for run in [one_question_comes_and_nothing_runs, after_trust_it_works]:
            if not only.search("hostile") and not only.search(run.__name__):
                continue
            try:
                run(person)
                passed += 1
                print("ok  ", run.__name__.replace("_", " "), flush=True)
            except Exception:
                failed += 1
                print("FAIL", run.__name__.replace("_", " "))
                traceback.print_exc(file=sys.stdout)
                break
    finally:
        person.end()
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
