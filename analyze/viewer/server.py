"""A server for one file, on this machine, for one web page.

Another page must not get at the trace, nor another machine: it listens on the loopback interface,
under a path that nobody can guess, answers the viewer's origin alone, and refuses other names for
this machine, which a page could point here (DNS rebinding).
"""

import secrets
import shutil
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Event
from typing import Any

from analyze.errors import AnalyzeError

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_TOKEN_BYTES = 16
_MAX_CONNECTIONS = 32
_REQUEST_SECONDS = 5
"""For a request to arrive. Browsers open connections ahead of need, and those take up places."""

_ANSWER_SECONDS = 60
"""For a reader that stops to go on."""

_BLOCK_BYTES = 1 << 16
_CONTENT_TYPES = {".gz": "application/gzip", ".json": "application/json"}


class TraceServer(ThreadingHTTPServer):
    """Serves one file once it is offered.

    Attributes:
        origin: the page that may read the file.
        file: the file, once it is offered.
        path: the one path that is answered.
        was_read: set when the page has read the file to its end.
    """

    daemon_threads = True

    def __init__(self, port: int, origin: str) -> None:
        """Take the port.

        Args:
            port: of this machine; 0 is any that is free.
            origin: scheme, host and port of the page that may read the file.

        Raises:
            AnalyzeError: the port is in use.
        """
        self.origin = origin
        self.file: Path | None = None
        self.path = ""
        self.was_read = Event()
        self._slots = BoundedSemaphore(_MAX_CONNECTIONS)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise AnalyzeError(
                f"port {port} of this machine cannot be used: {error.strerror}; end what uses it"
                " (another `analyze open`, a trace_processor), or upload the trace by hand"
            ) from None

    @property
    def names(self) -> frozenset[str]:
        """What a browser may call this server in the ``Host`` header."""
        return frozenset(f"{name}:{self.server_port}" for name in _NAMES)

    def offer(self, file: Path, name: str) -> str:
        """Serve ``file`` under ``name`` from now on; return its address."""
        self.path = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}/{name}"
        self.file = file
        return f"http://{HOST}:{self.server_port}{self.path}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in a thread of its own; refuse it when there are too many."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, and let go of its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a connection that broke off: the viewer asks again."""


class _Handler(BaseHTTPRequestHandler):
    server: TraceServer
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_OPTIONS(self) -> None:
        """Answer what a browser asks before it lets a public page read from this machine."""
        if self._is_refused():
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
        if self.headers.get("Access-Control-Request-Private-Network") == "true":
            self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def end_headers(self) -> None:
        headers = getattr(self, "headers", None)  # none yet where the request line is wrong
        if headers is not None and headers.get("Origin") == self.server.origin:
            self.send_header("Access-Control-Allow-Origin", self.server.origin)
        self.send_header("Vary", "Origin")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def version_string(self) -> str:
        """Say what this is, and not which Python runs it."""
        return "kinetolint"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing: requests are anybody's text."""

    def _is_refused(self) -> bool:
        """Refuse what is not the viewer asking for the file; return whether that was so."""
        if self.headers.get("Host", "").lower() not in self.server.names:
            self.send_error(HTTPStatus.FORBIDDEN, "Unknown host")
        elif self.headers.get("Origin", self.server.origin) != self.server.origin:
            self.send_error(HTTPStatus.FORBIDDEN, "Unknown origin")
        elif self.server.file is None or not _is_same(self.path, self.server.path):
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            return False
        return True

    def _answer(self, *, with_body: bool) -> None:
        if self._is_refused() or self.server.file is None:
            return
        try:
            file = self.server.file.open("rb")
        except OSError:
            self.send_error(HTTPStatus.GONE)
            return
        with file:
            size = file.seek(0, 2)
            file.seek(0)
            self.send_response(HTTPStatus.OK)
            suffix = self.server.file.suffix
            self.send_header("Content-Type", _CONTENT_TYPES.get(suffix, "application/octet-stream"))
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if with_body:
                self.connection.settimeout(_ANSWER_SECONDS)
                shutil.copyfileobj(file, self.wfile, _BLOCK_BYTES)
                self.wfile.flush()
                self._note_reader()

    def _note_reader(self) -> None:
        """Take notice that the viewer has the file; a browser always says which page asks."""
        if self.headers.get("Origin") == self.server.origin:
            self.server.was_read.set()


def _is_same(asked: str, path: str) -> bool:
    """Compare in a time that does not tell how much was right."""
    return secrets.compare_digest(asked.encode(errors="replace"), path.encode())
