"""A workspace for each test, its host stopped afterwards, and pytest-lsp's client with versions of documents and waiting added."""

import asyncio
import os
import pathlib
import subprocess
import time

import pytest
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

CONSORT = os.environ["CONSORT_BIN"]
# The time limit for something that must come, in seconds; run.sh sets it by the machine's speed. No
# test asserts that anything comes sooner.
PATIENCE = int(os.environ.get("CONSORT_TEST_PATIENCE", "120000")) / 1000


class Client(LanguageClient):
    """Remembers every publication, in order."""

    def __init__(self):
        super().__init__(converter_factory=default_converter)
        self.published: list[types.PublishDiagnosticsParams] = []
        self.changed = asyncio.Condition()
        self.images: list = []
        features = dict(DEFAULT_CLIENT_FEATURES)
        features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = remember_publication
        features[types.WINDOW_SHOW_MESSAGE] = remember_message
        features["consort/imageState"] = remember_image
        register_lsp_features(self, features)

    async def eval_until(self, code, value):
        """Evaluates CODE until its first value prints as VALUE."""
        end = time.monotonic() + PATIENCE
        while (answer := await self.eval(code))["values"] != [value]:
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.05)
        else:
            return
        pytest.fail(f"{code} never became {value}: {answer}")

    async def wait_until(self, holds, what):
        """Waits until HOLDS returns something true, looking again at each publication and message."""

        async def loop():
            while not (result := holds()):
                async with self.changed:
                    await self.changed.wait()
            return result

        try:
            return await asyncio.wait_for(loop(), PATIENCE)
        except TimeoutError:
            seen = [(p.version, summary(p.diagnostics)) for p in self.published[-3:]]
            pytest.fail(f"waited {PATIENCE:.0f} s in vain: {what}; last published: {seen}; messages: {self.messages[-3:]}; images: {self.images[-3:]}")

    async def told(self, uri, version, accept):
        """Returns the diagnostics that were last published for URI, once they are VERSION's and ACCEPT them.

        Findings of structure come first, the compiler's after them, so the first publication may be incomplete: Client.pull waits for all.
        """

        def latest():
            mine = [p for p in self.published if p.uri == uri]
            return mine and mine[-1].version == version and accept(mine[-1].diagnostics) and mine[-1]

        return (await self.wait_until(latest, f"no acceptable diagnostics of {uri} version {version}")).diagnostics

    async def expect(self, uri, version, expected):
        """Waits for exactly these diagnostics, as `summary` has them."""
        return await self.told(uri, version, lambda items: summary(items) == expected)

    async def command(self, name, argument):
        params = types.ExecuteCommandParams(command=name, arguments=[argument])
        return await asyncio.wait_for(self.workspace_execute_command_async(params), PATIENCE)

    async def eval(self, code, **more):
        return await self.command("consort.eval", {"code": code, **more})

    def start_eval(self, code, id):
        """Begins an evaluation with a given request id, so that it can be cancelled."""
        params = types.ExecuteCommandParams("consort.eval", [{"code": code}])
        return asyncio.wrap_future(self.protocol.send_request("workspace/executeCommand", params, msg_id=id))

    def open(self, uri, text, version=1):
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri=uri, language_id="commonlisp", version=version, text=text))
        )

    def replace(self, uri, version, text):
        """Sends one change of the whole document."""
        self.change(uri, version, types.TextDocumentContentChangeWholeDocument(text=text))

    def edit(self, uri, version, start, end, text):
        """Sends one incremental change; START and END are (line, character)."""
        where = types.Range(types.Position(*start), types.Position(*end))
        self.change(uri, version, types.TextDocumentContentChangePartial(range=where, text=text))

    def change(self, uri, version, *changes):
        document = types.VersionedTextDocumentIdentifier(version=version, uri=uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(text_document=document, content_changes=list(changes)))

    async def pull(self, uri):
        """Returns the pulled diagnostics."""
        params = types.DocumentDiagnosticParams(text_document=types.TextDocumentIdentifier(uri=uri))
        return (await asyncio.wait_for(self.text_document_diagnostic_async(params), PATIENCE)).items


async def remember_publication(client: Client, params: types.PublishDiagnosticsParams):
    async with client.changed:
        client.published.append(params)
        client.changed.notify_all()


async def remember_message(client: Client, params: types.ShowMessageParams):
    async with client.changed:
        client.messages.append(params)
        client.changed.notify_all()


async def remember_image(client: Client, params):
    async with client.changed:
        client.images.append(params)
        client.changed.notify_all()


class Workspace:
    """A directory that is a workspace, and the clients that were started in it."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.clients: list[Client] = []

    def uri(self, name):
        return (self.path / name).as_uri()

    async def connect(self, encodings=None, initialize=True, options=None) -> Client:
        client = Client()
        await client.start_io(CONSORT, "lsp", cwd=self.path)
        self.clients.append(client)
        if initialize:
            general = types.GeneralClientCapabilities(position_encodings=encodings) if encodings else None
            client.answer = await client.initialize_session(
                types.InitializeParams(
                    capabilities=types.ClientCapabilities(
                        general=general,
                        text_document=types.TextDocumentClientCapabilities(
                            diagnostic=types.DiagnosticClientCapabilities(),
                            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True, related_information=True)
                        ),
                        window=types.WindowClientCapabilities(work_done_progress=True),
                    ),
                    initialization_options=options,
                    root_uri=self.path.as_uri(),
                    workspace_folders=[types.WorkspaceFolder(uri=self.path.as_uri(), name="test")],
                )
            )
        return client

    def consort(self, *args):
        return subprocess.run([CONSORT, *args], cwd=self.path, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture
async def workspace(tmp_path):
    (tmp_path / ".git").mkdir()
    workspace = Workspace(tmp_path)
    yield workspace
    for client in workspace.clients:
        server = client._server
        if server.returncode is None:
            server.kill()
            await server.wait()
        await client.stop()
    stopped = await asyncio.to_thread(workspace.consort, "stop")
    assert stopped.returncode == 0, stopped.stderr


@pytest.fixture
async def client(workspace):
    client = await workspace.connect()
    # While the image starts, pulled diagnostics have only those of the structure.
    await client.eval("1")
    yield client
    await client.shutdown_session()
    assert client._server.returncode == 0


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("failed") + terminalreporter.getreports("error"):
        # By the name of the function only: the parameters in brackets mean something else to -k.
        name = report.nodeid.split("::")[-1].split("[")[0]
        terminalreporter.write_line(f"alone: CONSORT_BIN=$PWD/target/debug/consort scripts/isolated tests/e2e/lsp/run.sh -k {name}")


def summary(items):
    """Diagnostics as tuples that read well in a failure."""
    return sorted((d.range.start.line, d.range.start.character, d.range.end.line, d.range.end.character, d.code) for d in items)
