"""Steps of a person in Neovim, key by key in a real terminal, with an agent beside. The screens that
they keep are in tests/out/nvim.

    person.py NVIM PLACE OUT     # PLACE: an empty directory; the environment is run.sh's.
                                 # $ONLY: a pattern, the steps whose names match

Each step begins in an editor with the workspace's texts and the image with its system. A step that
fails is tried once more, with a new workspace, image and editor, and is reported as flaky if it
passes then.
"""

import os
import re
import signal
import sys
import traceback

from session import Person
from steps import appearance, approval, checking, editing, evaluation, repl, restarts, steps_of

SUBJECTS = [evaluation, checking, editing, repl, approval, restarts, appearance]
STEPS = [step for subject in SUBJECTS for step in steps_of(subject)]


def attempt(person, run, word):
    """Runs a step, and returns true if it passes. Otherwise prints WORD with the step's name, the
    reason, the file with the screen, and the command that runs the step alone."""
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
    # A run that is ended from outside ends its terminal, editor and host, too.
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
                    else:  # the next step begins from a clean state
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
