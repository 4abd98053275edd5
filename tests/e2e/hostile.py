"""A fresh clone whose consort.toml wants programs and code of its own to run. Each program or file that runs leaves a mark."""

import os
import subprocess

PROGRAM = "#!/bin/sh\necho program >>\"$(dirname \"$0\")/ran\"\nexec sbcl \"$@\"\n"
INIT = '(with-open-file (out (merge-pathnames (make-pathname :name "ran" :type :unspecific) *load-truename*) :direction :output :if-exists :append :if-does-not-exist :create) (write-line "init" out))\n'
SOURCE = "(defun greet (name)\n  (no-such-function name))\n\n(+ 1 2)\n"
# Two keys that need trust, and nothing else.
WANTS = '[lisp]\ncommand = ["./lisp.sh"]\ninit_file = "init.lisp"\n'
# One of them: an image for another program is compiled anew, which takes long.
WANTS_LESS = '[lisp]\ninit_file = "init.lisp"\n'


class Clone:
    def __init__(self, directory):
        self.directory = directory
        os.makedirs(os.path.join(directory, ".git"))
        for name, text in [("lisp.sh", PROGRAM), ("init.lisp", INIT), ("greet.lisp", SOURCE), ("consort.toml", WANTS)]:
            self.write(name, text)
        os.chmod(os.path.join(directory, "lisp.sh"), 0o755)

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w") as file:
            file.write(text)

    def ran(self):
        """Returns what has run of the clone: the lines `program` and `init`."""
        try:
            with open(os.path.join(self.directory, "ran")) as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def consort(self, *arguments, env=None, **more):
        return subprocess.run([os.environ["CONSORT_BIN"], *arguments], cwd=self.directory, env=env, capture_output=True, text=True, check=False, **more)

    def trust(self, env=None):
        """Trusts the clone, as the person does, after it has reduced what it wants."""
        self.write("consort.toml", WANTS_LESS)
        done = self.consort("trust", "--yes", env=env)
        assert done.returncode == 0 and 'lisp.init_file = "init.lisp"' in done.stdout, done
