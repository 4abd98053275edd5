"""A person's session: a workspace, an editor in a terminal, and an agent on the same image."""

import json
import os
import shutil
import subprocess

from agent import Agent
from terminal import PATIENCE, Terminal

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.realpath(os.path.join(HERE, "../../../editors/neovim"))
# The price of two goods, before and after an agent's change.
OLD, NEW = "63/10", "70497/10000"


class Person:
    """The person's workspace, terminal and agent."""

    def __init__(self, nvim, place, out):
        self.nvim, self.workspace = nvim, os.path.join(place, "shop")
        self.place, self.starts, self.asked = place, 0, 0
        self.fill()
        config = os.path.join(place, "config")
        os.makedirs(os.path.join(config, "nvim"))
        with open(os.path.join(config, "nvim/init.lua"), "w") as init:
            # The README's configuration, without swap files and with a known background.
            init.write(f"vim.opt.runtimepath:append('{PLUGIN}')\nvim.lsp.enable('consort')\nvim.o.swapfile = false\nvim.o.background = 'dark'\n")
        self.env = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "CONSORT_", "TMP", "HOME", "PATH"))}
        self.env |= {"XDG_CONFIG_HOME": config, "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        os.makedirs(os.path.join(config, "consort"), exist_ok=True)
        with open(os.path.join(config, "consort/config.toml"), "w") as settings:
            settings.write('[debug]\non_error = "report"\n')
        self.screen = Terminal(os.path.join(place, "tmux"), out)
        self.agent = Agent(self.workspace, os.environ | self.env)

    def fill(self):
        """Writes the workspace's first texts."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        shutil.copytree(os.path.join(HERE, "workspace"), self.workspace)
        os.mkdir(os.path.join(self.workspace, ".git"))

    def ready(self):
        """Opens an editor, and loads the system into its image."""
        self.open("package.lisp")
        self.load("shop")

    def load(self, system):
        """Loads a system by the person's command. Another message may overwrite the command's on the
        screen, and the system may be loaded already: all messages since then are read."""
        self.screen.command("messages clear")
        self.settled()
        self.screen.command("Consort load " + system)
        self.screen.until(f"{system} to be loaded", lambda: f"{system} is loaded" in self.expression("execute('messages')"))
        assert system in self.status()["image"]["facts"]["systems"], self.status()
        self.screen.press("Escape")

    def listens(self):
        """Returns the address of the person's editor."""
        return os.path.join(self.place, f"nvim{self.starts}")

    def expression(self, text):
        """Returns the value of a Vim expression in the person's editor."""
        asked = [self.nvim, "--server", self.listens(), "--remote-expr", text]
        return subprocess.run(asked, env=os.environ | self.env, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    def settled(self):
        """Waits until the editor has handled all keys: it shows what a last command prints."""
        self.asked += 1
        self.screen.command(f"echo 'a' . {self.asked} . 'b'")
        self.screen.until("all keys to be handled", lambda: self.screen.text().rstrip().endswith(f"\na{self.asked}b"))

    def anew(self):
        """Replaces the editor, the image and the workspace by new ones."""
        self.screen.end()
        self.consort("stop")
        self.fill()
        self.ready()

    def until_file(self, name, text):
        """Waits until TEXT is written in the file."""
        there = os.path.join(self.workspace, name)
        self.screen.until(f"{text!r} in {name}", lambda: os.path.exists(there) and text in self.file(name))

    def consort(self, *arguments):
        return subprocess.run([os.environ["CONSORT_BIN"], *arguments], cwd=self.workspace, env=os.environ | self.env, capture_output=True, text=True, check=False)

    def status(self):
        """Returns the answer of `consort status`; an image in the state `none` while there is no host."""
        done = self.consort("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {"image": {"state": "none", "pid": None, "image": None}}

    def another_image(self, before):
        """Waits until an image of another process than BEFORE is ready."""
        def there():
            image = self.status()["image"]
            return image["state"] == "ready" and image["pid"] != before

        self.screen.until("another image", there)

    def open(self, file):
        """Starts Neovim on a file, and waits for the plugin's keys and for the image."""
        self.starts += 1
        self.screen.start(self.nvim, "--listen", self.listens(), file, cwd=self.workspace, env=self.env)
        self.screen.see(file)
        self.screen.until("the keys", lambda: "consort-eval" in _maps(self.screen))
        self.screen.press("Escape")
        self.screen.until("an image", lambda: self.status()["image"]["state"] == "ready")

    def edit(self, file):
        """Saves all files, closes all other windows, and shows a file without the values of before."""
        self.screen.press("Escape")
        self.screen.command(f"silent! wall | silent! only | silent! cclose | exe bufloaded('{file}') ? 'buffer {file}' : 'edit {file}' | silent! Consort clear")
        self.screen.see(file + " ", without=["⇒", "✗"])

    def go(self, text):
        """Moves the cursor to the last place in the file where TEXT begins."""
        quoted = text.replace("'", "''")
        self.screen.command(f"call cursor(line('$'), 999) | call search('\\V{quoted}', 'b')")

    def restore(self, name):
        """Gives the file of this editor its first text again."""
        shutil.copy(os.path.join(HERE, "workspace", name), os.path.join(self.workspace, name))
        self.screen.command("edit!")

    def file(self, name):
        with open(os.path.join(self.workspace, name)) as file:
            return file.read()


def _maps(see):
    """Returns the screen, which lists the map of the key that evaluates a form."""
    see.press("Escape")
    see.command("nmap <buffer> \\ee")
    return see.text()
