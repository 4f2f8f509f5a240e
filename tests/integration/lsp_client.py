"""As much of an editor as is needed to ask a language server about one file."""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

Message = dict[str, Any]

_WAIT_SECONDS = 60.0


class LanguageServer:
    """A language server on its standard input and output."""

    def __init__(self, command: Sequence[str | Path], settings: Message) -> None:
        """Start the server.

        Args:
            command: what to run.
            settings: the editor's settings, by section; the server asks for them.
        """
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._settings = settings
        self._ids = count(1)
        self._incoming: queue.Queue[Message] = queue.Queue()
        self._answers: dict[int, Message] = {}
        self._diagnostics: dict[str, list[Message]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        """Introduce the editor."""
        capabilities = {
            "workspace": {"configuration": True},
            "textDocument": {
                "completion": {"completionItem": {"documentationFormat": ["plaintext"]}},
                "hover": {"contentFormat": ["plaintext"]},
                "publishDiagnostics": {},
            },
        }
        self._request(
            "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}
        )
        self._notify("initialized", {})
        self._notify("workspace/didChangeConfiguration", {"settings": self._settings})
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._stdin, self._stdout):
            stream.close()

    def open(self, file: Path) -> list[Message]:
        """Show a file to the server and return its diagnostics."""
        uri = file.as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": file.read_text()}
        self._notify("textDocument/didOpen", {"textDocument": document})
        self._handle_until(lambda: uri in self._diagnostics)
        return self._diagnostics[uri]

    def ask(self, method: str, file: Path, line: int, column: int) -> Any:
        """Return the answer to a question about a position; lines and columns count from 0."""
        position = {"line": line, "character": column}
        document = {"uri": file.as_uri()}
        return self._request(
            f"textDocument/{method}", {"textDocument": document, "position": position}
        )

    def _request(self, method: str, params: Message) -> Any:
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": params})
        self._handle_until(lambda: number in self._answers)
        answer = self._answers.pop(number)
        assert "error" not in answer, answer
        return answer["result"]

    def _handle_until(self, done: Callable[[], bool]) -> None:
        while not done():
            message = self._incoming.get(timeout=_WAIT_SECONDS)
            if "method" in message:
                self._handle(message)
            else:
                self._answers[message["id"]] = message

    def _handle(self, message: Message) -> None:
        params = message.get("params") or {}
        if message["method"] == "textDocument/publishDiagnostics":
            self._diagnostics[params["uri"]] = params["diagnostics"]
        elif message["method"] == "workspace/configuration":
            result = [self._settings.get(item["section"]) for item in params["items"]]
            self._send({"id": message["id"], "result": result})
        elif "id" in message:
            self._send({"id": message["id"], "result": None})

    def _notify(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._stdin.flush()

    def _read(self) -> None:
        while header := self._stdout.readline():
            name, _, length = header.partition(b":")
            if name.lower() == b"content-length":
                while self._stdout.readline().strip():
                    pass
                self._incoming.put(json.loads(self._stdout.read(int(length))))
