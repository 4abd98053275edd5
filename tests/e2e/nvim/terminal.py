"""A person at a terminal: sends keys, and reads the screen. The terminal is tmux's, each time with a server of its own."""

import os
import subprocess
import time

import screen

COLUMNS, ROWS = 100, 32
# The time limit for something that must come, in seconds; run.sh sets it by the machine's speed. No
# test asserts that anything comes sooner.
PATIENCE = float(os.environ.get("CONSORT_TEST_PATIENCE", "120000")) / 1000


class Terminal:
    def __init__(self, socket, out):
        self.place, self.socket, self.starts = socket, socket, 0
        self.out, self.ground = out, "dark"
        os.makedirs(out, exist_ok=True)

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *arguments], check=True, capture_output=True, text=True).stdout

    def start(self, *command, cwd, env):
        # The server before may be ending, and would end the new session too.
        self.starts += 1
        self.socket = f"{self.place}{self.starts}"
        settings = [item for name, value in env.items() for item in ("-e", f"{name}={value}")]
        self.tmux("start-server", ";", "set-option", "-s", "escape-time", "0", ";", "set-option", "-g", "status", "off", ";",
                  "set-option", "-g", "default-terminal", "tmux-256color", ";", "set-option", "-g", "remain-on-exit", "off", ";",
                  "new-session", "-d", "-s", "person", "-x", str(COLUMNS), "-y", str(ROWS), "-c", cwd, *settings, *command)

    def running(self):
        """Returns true if the program in the terminal has not ended."""
        done = subprocess.run(["tmux", "-S", self.socket, "has-session", "-t", "person"], check=False, capture_output=True)
        return done.returncode == 0

    def end(self):
        """Closes the terminal, as a window is closed."""
        try:
            self.tmux("kill-server")
        except subprocess.CalledProcessError:
            pass  # the server has ended with its last program

    def press(self, *keys):
        """Sends keys by their names (`Enter`, `Escape`, `C-n`)."""
        for key in keys:
            # As terminals with the extended protocol send it: a lone byte 27 and the key behind it,
            # read together by a program that was kept waiting, would be one key with Alt.
            if key == "Escape":
                self.tmux("send-keys", "-t", "person", "-H", "1b", "5b", "32", "37", "75")
            else:
                self.tmux("send-keys", "-t", "person", key)

    def type(self, text):
        """Types TEXT."""
        self.tmux("send-keys", "-t", "person", "-l", "--", text)

    def command(self, text):
        """Enters an Ex command."""
        self.type(":" + text)
        self.press("Enter")

    def ansi(self):
        return self.tmux("capture-pane", "-p", "-e", "-N", "-t", "person")

    def text(self):
        return self.tmux("capture-pane", "-p", "-t", "person")

    def until(self, what, condition):
        """Waits until CONDITION() is true, and returns its value; a failure shows the screen."""
        end = time.monotonic() + PATIENCE
        while not (result := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"waited {PATIENCE:.0f} s in vain: {what}\n{self.text() if self.running() else 'the program has ended'}")
            time.sleep(0.05)
        return result

    def see(self, *wanted, without=()):
        """Waits until all of WANTED is on the screen, and none of WITHOUT; returns the screen as text."""
        def there():
            text = self.text()
            return text if all(one in text for one in wanted) and not any(one in text for one in without) else None

        return self.until(f"seen {wanted!r}" + (f" without {without!r}" if without else ""), there)

    def line_of(self, wanted):
        """Returns the only line on the screen with WANTED in it."""
        lines = [line for line in self.text().split("\n") if wanted in line]
        assert len(lines) == 1, f"{wanted!r} stands in {len(lines)} lines\n{self.text()}"
        return lines[0].rstrip()

    def marked(self):
        """Returns (row on the screen, text) of each underlined run."""
        return screen.marked(self.ansi())

    def faint(self, row):
        """Returns the texts in a row of the screen that have the colour of comments (in Neovim's own colours)."""
        return [text for _, _, text, style in screen.runs(screen.cells(self.ansi())[row]) if style.fg == "#9b9ea4"]

    def keep(self, name):
        """Writes the screen to files in tests/out."""
        ansi = self.ansi()
        # Another run in this work tree may be removing the directory.
        os.makedirs(self.out, exist_ok=True)
        base = os.path.join(self.out, name)
        with open(base + ".ansi", "w") as file:
            file.write(ansi)
        with open(base + ".txt", "w") as file:
            file.write(self.text())
        with open(base + ".svg", "w") as file:
            file.write(screen.svg(ansi, COLUMNS, ROWS, self.ground, name))
