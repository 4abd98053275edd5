#!/usr/bin/env python3
"""Rename a sample of local names in real systems through `consort lsp`, and judge each renaming.

  CONSORT_BIN=target/debug/consort scripts/isolated tests/rename/sample.py [--count N] [--seed S] [--sources DIR] SYSTEM...

A copy of each system's sources is the workspace, and the system is loaded there. Of all names in lambda lists and binding forms N are drawn.
Each is renamed to a name that is new, the edits are applied, and two things must hold:
  1. renaming back gives the same bytes;
  2. with --check, the check of the file gives the same diagnostics as before, but for the name.
A refusal is counted apart, with its reason. The exit code tells whether anything but a refusal was found.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

SOURCES = "/usr/share/common-lisp/source"
NEW = "renamed-by-the-sample"
# The beginnings of bindings; the name behind it is drawn. The server decides what is local.
BINDING = re.compile(r"\((?:let\*?|flet|labels|dolist|dotimes|multiple-value-bind|destructuring-bind|lambda|with-slots|do\*?)\s+\(+\s*([a-z%*+-][a-z0-9%*+-]*)"
                     r"|\((?:defun|defmacro|defmethod)\s+\S+\s+(?::\w+\s+)?\(+([a-z%-][a-z0-9%-]*)"
                     r"|\((?:defun|defmacro|defmethod)\s+\S+\s+(?::\w+\s+)?\([^()]*&(?:key|optional|rest|body)\s+\(*([a-z%-][a-z0-9%-]*)"
                     r"|\bfor\s+\(*([a-z%-][a-z0-9%-]*)|\bwith\s+([a-z%-][a-z0-9%-]*)\s*=", re.I)


class Server:
    """`consort lsp`, asked one thing at a time."""

    def __init__(self, binary, root):
        self.process = subprocess.Popen([binary, "lsp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0
        self.ask("initialize", {"processId": os.getpid(), "rootUri": root.as_uri(), "capabilities": {
            "general": {"positionEncodings": ["utf-32"]}, "workspace": {"workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}}}},
            "workspaceFolders": [{"uri": root.as_uri(), "name": "w"}]})
        self.tell("initialized", {})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.number and "method" not in message:
                return message
            if "id" in message:
                self.send({"id": message["id"], "result": [None] if message["method"] == "workspace/configuration" else None})

    def read(self):
        length = None
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length is None:
            sys.exit("consort lsp ended")
        return json.loads(self.process.stdout.read(length))

    def command(self, name, argument):
        return self.ask("workspace/executeCommand", {"command": name, "arguments": [argument]})

    def close(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        self.process.wait()


def position(text, offset):
    line = text.count("\n", 0, offset)
    return {"line": line, "character": offset - (text.rfind("\n", 0, offset) + 1)}


def offset_of(starts, place):
    return starts[place["line"]] + place["character"]


def apply(text, edits):
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    for edit in sorted(edits, key=lambda edit: (edit["range"]["start"]["line"], edit["range"]["start"]["character"]), reverse=True):
        start, end = offset_of(starts, edit["range"]["start"]), offset_of(starts, edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


class Document:
    def __init__(self, server, path):
        self.server, self.path, self.version = server, path, 1
        self.text = path.read_text(encoding="utf-8", errors="strict")
        self.original = self.text
        server.tell("textDocument/didOpen", {"textDocument": {"uri": path.as_uri(), "languageId": "lisp", "version": 1, "text": self.text}})

    def replace(self, text):
        self.version += 1
        self.text = text
        self.server.tell("textDocument/didChange", {"textDocument": {"uri": self.path.as_uri(), "version": self.version},
                                                    "contentChanges": [{"text": text}]})

    def rename(self, offset, new):
        answer = self.server.ask("textDocument/rename", {"textDocument": {"uri": self.path.as_uri()}, "position": position(self.text, offset), "newName": new})
        if "error" in answer:
            return None, answer["error"]["message"]
        changes = (answer["result"] or {}).get("documentChanges", [])
        own = [edit for change in changes if change["textDocument"]["uri"] == self.path.as_uri() for edit in change["edits"]]
        others = [change for change in changes if change["textDocument"]["uri"] != self.path.as_uri()]
        if others:
            return None, "not local"
        return own, None

    def diagnostics(self, form=None):
        answer = self.server.ask("textDocument/diagnostic", {"textDocument": {"uri": self.path.as_uri()}})
        items = (answer.get("result") or {}).get("items", [])
        plain = lambda text: re.sub(NEW + r"|%s" % NEW.upper(), "NAME", text, flags=re.I)
        return collections.Counter((item.get("code"), plain(item["message"])) for item in items)


def neutral(counter, name):
    plain = lambda text: re.sub(r"(?<![\w-])%s(?![\w-])" % re.escape(name), "NAME", text, flags=re.I)
    return collections.Counter({(code, plain(message)): count for (code, message), count in counter.items()})


def judge(document, name, offset, counts, wrong, checked):
    label = f"{document.path.name}:{position(document.text, offset)['line'] + 1}: {name}"
    before = document.text
    edits, why = document.rename(offset, NEW)
    if edits is None and why.startswith("There is no name here"):
        counts["prose"] += 1  # a comment or a string
        return
    if edits is None:
        counts["refused"] += 1
        wrong.append(("refused", label, why))
        return
    if any("annotationId" in edit for edit in edits):
        counts["unsure"] += 1
    after = apply(before, edits)
    if after == before:
        return wrong.append(("nothing", label, "no change"))
    found = neutral(document.diagnostics(), name) if checked else None
    document.replace(after)
    if checked:
        now = neutral(document.diagnostics(), name)
        if now != found:
            wrong.append(("DIAGNOSTICS", label, f"{list((now - found).items())[:2]} {list((found - now).items())[:2]}"))
    back_at = after.lower().find(NEW)
    edits, why = document.rename(back_at, name)
    if edits is None:
        wrong.append(("BACK", label, why))
    elif (back := apply(after, edits)) != before:
        line = next((number for number, (one, other) in enumerate(zip(before.split("\n"), back.split("\n"))) if one != other), 0)
        wrong.append(("BYTES", label, f"{before.split(chr(10))[line].strip()!r} came back as {back.split(chr(10))[line].strip()!r}"))
    else:
        counts["good"] += 1
    document.replace(before)


def sites(text):
    for match in BINDING.finditer(text):
        for group in range(1, (match.lastindex or 0) + 1):
            if match.group(group) and match.group(group).lower() not in ("nil", "t") and not match.group(group).startswith("*"):
                yield match.start(group), match.group(group)


def sample(binary, system, sources, count, seed, checked):
    found = sources / system
    if not found.is_dir():
        sys.exit(f"there is no {found}")
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place).resolve() / "w"
        shutil.copytree(found, root)
        server = Server(binary, root)
        code = f'(progn (require :asdf) (push #p"{root}/" (symbol-value (find-symbol "*CENTRAL-REGISTRY*" "ASDF"))) (funcall (find-symbol "LOAD-SYSTEM" "ASDF") "{system.removeprefix("cl-") if system != "cl-ppcre" else system}") :loaded)'
        loaded = server.command("consort.eval", {"code": code})
        if (loaded.get("result") or {}).get("status") != "ok":
            sys.exit(f"{system} was not loaded: {json.dumps(loaded)[:2000]}")
        documents = []
        for path in sorted(root.rglob("*.lisp")):
            try:
                documents.append(Document(server, path))
            except UnicodeDecodeError:
                continue
        places = [(document, offset, name) for document in documents for offset, name in sites(document.text)]
        chosen = random.Random(seed).sample(places, min(count, len(places)))
        counts, wrong = collections.Counter(), []
        for number, (document, offset, name) in enumerate(chosen, 1):
            judge(document, name, offset, counts, wrong, checked)
            if sys.stderr.isatty():
                print(f"\r{system} {number}/{len(chosen)}", end="", file=sys.stderr)
        server.close()
        subprocess.run([binary, "stop"], cwd=root, stdout=subprocess.DEVNULL)
    bad = [one for one in wrong if one[0] != "refused"]
    print(f"{system}: {len(chosen)} of {len(places)} names: {counts['good']} renamed and back ({counts['unsure']} unsure), {counts['refused']} refused, {counts['prose']} in comments and strings, {len(bad)} wrong")
    for kind, label, why in wrong:
        print(f"  {kind} {label}: {why}")
    return len(bad)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sources", type=pathlib.Path, default=pathlib.Path(SOURCES))
    parser.add_argument("--check", action="store_true", help="compare the diagnostics too, which takes long")
    parser.add_argument("systems", nargs="+")
    arguments = parser.parse_args()
    binary = os.environ["CONSORT_BIN"]
    sys.exit(1 if sum(sample(binary, system, arguments.sources, arguments.count, arguments.seed, arguments.check) for system in arguments.systems) else 0)


if __name__ == "__main__":
    main()
