"""``analyze open``, as a user runs it: the link, and what is served under it."""

import gzip
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from analyze.viewer.link import Moment, link_to, safe_name
from tests.conftest import RunAnalyze

VIEWER = "https://ui.perfetto.dev"
ANALYZE = Path(sys.executable).parent / "analyze"


class Opened:
    """A running ``analyze open``, and the link that it printed."""

    def __init__(self, program: "subprocess.Popen[str]", port: int) -> None:
        self.program, self.port = program, port
        assert program.stdout is not None
        self.first, _, link = (program.stdout.readline() for _ in range(3))
        assert link, f"it ended with {self.first!r}"
        self.link = link.strip()
        self.asked = parse_qs(urlsplit(self.link).fragment.partition("?")[2])
        self.path = urlsplit(self.asked["url"][0]).path

    def request(
        self, method: str = "GET", path: str | None = None, **headers: str
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path or self.path, headers=named)
        response = connection.getresponse()
        return response, response.read()

    def read(self) -> tuple[HTTPResponse, bytes]:
        """Read the trace as the viewer does."""
        return self.request(Origin=VIEWER)

    def lines_until(self, words: str) -> list[str]:
        """Return what it prints up to the line with ``words``."""
        assert self.program.stdout is not None
        lines = [self.program.stdout.readline()]
        while words not in lines[-1]:
            assert lines[-1], f"it ended without saying {words!r}: {lines}"
            lines.append(self.program.stdout.readline())
        return lines

    def end(self) -> tuple[int, str]:
        """Wait for the end of the program; return its exit code and what it printed last."""
        assert self.program.stdout is not None
        code = self.program.wait(timeout=60)
        return code, self.program.stdout.read()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


Open = Callable[..., Opened]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    programs = []

    def run(*arguments: str | Path, browser: str = "--no-browser", **environment: str) -> Opened:
        port = free_port()
        folder = tmp_path / "temporary"
        folder.mkdir(exist_ok=True)
        program = subprocess.Popen(
            [ANALYZE, "open", *arguments, browser, "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(folder), **environment},
        )
        programs.append(program)
        return Opened(program, port)

    yield run
    for program in programs:
        program.kill()
        program.communicate()


def test_the_viewer_gets_the_annotated_trace_and_the_place(
    opened: Open, samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path = samples / "synthetic-naive.json.gz"
    page = opened(path)
    assert "finding 1 of 3, COPY101 hidden-memcpy, place 1 of 3: Memcpy DtoD" in page.first
    assert page.link.startswith(f"{VIEWER}/#!/?url=http://127.0.0.1:{page.port}/")
    assert page.path.endswith("/synthetic-naive.annotated.json.gz")
    response, body = page.read()
    assert response.status == 200
    assert response.headers["Access-Control-Allow-Origin"] == VIEWER
    assert response.headers["Content-Type"] == "application/gzip"
    assert response.headers["Content-Length"] == str(len(body))
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    code, rest = page.end()
    assert code == 0
    assert rest.endswith("read by the viewer: synthetic-naive.annotated.json.gz\n")
    run_analyze("annotate", path, "-o", tmp_path / "out.json.gz")
    assert body == (tmp_path / "out.json.gz").read_bytes()
    events = json.loads(gzip.decompress(body))["traceEvents"]
    start, dur, pid, tid = (int(page.asked[key][0]) for key in ("ts", "dur", "pid", "tid"))
    named = {
        e["name"]: e
        for e in events
        if e["ph"] == "X" and (e["pid"], e["tid"], round(e["ts"] * 1000)) == (pid, tid, start)
    }
    assert round(named["COPY101 hidden-memcpy"]["dur"] * 1000) == dur
    first, last = int(page.asked["visStart"][0]), int(page.asked["visEnd"][0])
    assert first < start < start + dur < last
    assert not any((tmp_path / "temporary").iterdir())


def test_only_the_viewer_gets_it(opened: Open, samples: Path) -> None:
    page = opened(samples / "synthetic-naive.json.gz")
    host = f"127.0.0.1:{page.port}"
    refused: list[tuple[int, str, str | None, dict[str, str]]] = [
        (404, "GET", "/", {}),
        (404, "GET", "/status", {"Origin": VIEWER}),
        (404, "GET", page.path + "/", {}),
        (404, "GET", page.path + "?x", {}),
        (404, "GET", "/" + page.path.split("/")[1] + "/", {}),
        (404, "GET", "/../../etc/passwd", {}),
        (403, "GET", None, {"Origin": "https://example.com"}),
        (403, "GET", None, {"Origin": "null"}),
        (403, "OPTIONS", None, {"Origin": "https://ui.perfetto.dev.example.com"}),
        (403, "GET", None, {"Host": f"example.com:{page.port}"}),
        (403, "GET", None, {"Host": "127.0.0.1"}),
        (501, "POST", "/status", {"Origin": VIEWER}),
        (501, "PUT", None, {}),
    ]
    for status, method, path, headers in refused:
        response, body = page.request(method, path, **headers)
        assert response.status == status, (method, path, headers)
        assert "traceEvents" not in body.decode(errors="replace")
        if headers.get("Origin") != VIEWER:
            assert "Access-Control-Allow-Origin" not in response.headers
    preflight, body = page.request(
        "OPTIONS", Origin=VIEWER, Access_Control_Request_Private_Network="true"
    )
    assert (preflight.status, body) == (204, b"")
    assert preflight.headers["Access-Control-Allow-Origin"] == VIEWER
    assert preflight.headers["Access-Control-Allow-Private-Network"] == "true"
    assert "GET" in preflight.headers["Access-Control-Allow-Methods"]
    head, body = page.request("HEAD", Host=f"localhost:{page.port}")
    assert (head.status, body) == (200, b"")
    assert int(head.headers["Content-Length"]) > 1000
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.2", page.port)) != 0  # another interface
    assert page.request()[0].status == 200
    assert page.request(Host=f"LOCALHOST:{page.port}")[0].status == 200
    assert page.program.poll() is None  # nothing of this was the viewer reading the trace
    assert page.request(Host=host, Origin=VIEWER)[0].status == 200
    assert page.end()[0] == 0


def test_connections_that_say_nothing_hold_up_nobody(opened: Open, samples: Path) -> None:
    page = opened(samples / "synthetic-naive.json.gz")
    address = ("127.0.0.1", page.port)
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(address)) for _ in range(40)]
        for connection in idle:
            connection.settimeout(30)
            assert connection.recv(1) == b""  # it is the server that ends the connection
        time.sleep(0.5)  # it lets go of the place after that
        assert page.read()[0].status == 200
        assert page.end()[0] == 0


def test_plain_is_the_file_as_it_is(opened: Open, samples: Path) -> None:
    path = samples / "synthetic-naive.json.gz"
    page = opened(path, "--plain")
    assert page.asked.keys() == {"url"}
    assert page.read()[1] == path.read_bytes()
    assert page.end()[0] == 0
    page = opened(path, "--plain", "--finding", "attn103")
    assert "finding 2 of 3, ATTN103 unfused-attention" in page.first
    assert {"ts", "dur", "visStart", "visEnd"} <= page.asked.keys()
    assert "pid" not in page.asked
    assert page.read()[1] == path.read_bytes()


def test_without_a_finding_the_whole_trace_is_shown(opened: Open, samples: Path) -> None:
    page = opened(samples / "synthetic-naive.json.gz", "--select", "LAUNCH103")
    assert page.asked.keys() == {"url"}
    assert "0 findings" in page.first
    assert page.read()[0].status == 200


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_being_ended_leaves_nothing(
    sent: signal.Signals, opened: Open, samples: Path, tmp_path: Path
) -> None:
    page = opened(samples / "synthetic-naive.json.gz")
    assert any((tmp_path / "temporary").iterdir())
    page.program.send_signal(sent)
    code, rest = page.end()
    assert code == 128 + sent
    assert "Traceback" not in rest
    assert rest.endswith("analyze: interrupted\n") == (sent == signal.SIGINT)
    assert not any((tmp_path / "temporary").iterdir())


def test_keep_serves_until_it_is_ended(opened: Open, samples: Path) -> None:
    page = opened(samples / "synthetic-naive.json.gz", "--keep", "--finding", "3")
    assert "finding 3 of 3, OCC102 occupancy-misreported" in page.first
    assert page.read()[1] == page.read()[1]
    assert page.program.poll() is None
    page.lines_until("still serving")
    page.program.send_signal(signal.SIGINT)
    assert page.end()[0] == 0


def test_a_browser_is_given_the_link(opened: Open, samples: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nexec >/dev/null 2>&1\ncd {tmp_path}\necho "$1" > part\nmv part seen\n'
        "sleep 8\ntouch closed\n"
    )
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    page = opened(samples / "synthetic-naive.json.gz", browser="--browser", BROWSER=str(browser))
    assert "ssh -L" not in "".join(page.lines_until("Serving on"))
    while not (tmp_path / "seen").exists():
        assert page.program.poll() is None
    assert (tmp_path / "seen").read_text().strip() == page.link
    assert page.read()[0].status == 200
    assert page.end()[0] == 0
    assert not (tmp_path / "closed").exists()  # nobody has waited for the browser


def test_without_a_browser_it_says_what_to_do(opened: Open, samples: Path) -> None:
    page = opened(
        samples / "synthetic-naive.json.gz",
        browser="--browser", BROWSER="", DISPLAY="", WAYLAND_DISPLAY="",
    )  # fmt: skip
    page.read()
    code, rest = page.end()
    assert code == 0
    assert f"ssh -L {page.port}:127.0.0.1:{page.port} HOST" in rest
    assert "analyze annotate" in rest


def test_a_port_in_use_is_one_line(samples: Path, run_analyze: RunAnalyze) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        path = samples / "synthetic-naive.json.gz"
        done = run_analyze("open", path, "--no-browser", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"port {port} of this machine cannot be used: Address already in use" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("-",), 2, "standard input cannot be read twice"),
        (("no.json",), 3, "no.json: no such file"),
        (("{naive}", "--finding", "COPY102"), 2, "did you mean COPY101?"),
        (("{naive}", "--finding", "4"), 2, "it has 3 findings: COPY101, ATTN103, OCC102"),
        (("{naive}", "--finding", "0"), 2, "no finding 0"),
        (("{naive}", "--viewer", "ui.perfetto.dev"), 2, "is no address of a page"),
        (("{naive}", "--viewer", "file:///x"), 2, "is no address of a page"),
        (("{naive}", "--viewer", "http://[x"), 2, "is no address of a page"),
        (("{naive}", "--viewer", "http://x:99999"), 2, "is no address of a page"),
    ],
)
def test_what_goes_wrong_is_one_line(
    arguments: tuple[str, ...], code: int, line: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    named = [argument.format(naive=samples / "synthetic-naive.json.gz") for argument in arguments]
    done = run_analyze("open", *named, "--no-browser", "--port", str(free_port()))
    assert (done.returncode, done.stdout) == (code, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_link_is_the_documented_one() -> None:
    url = "http://127.0.0.1:9001/token/name.json.gz"
    assert link_to(url) == f"{VIEWER}/#!/?url={url}"
    short = link_to(url, Moment(5_000_000, 1_000, 0, 10_000_000))
    assert short.endswith("&visStart=4500000&visEnd=5501000&ts=5000000&dur=1000")
    at_the_end = link_to(url, Moment(900, 100, 500, 1_000, 7, 8), "http://localhost:10000/ui")
    assert at_the_end.startswith("http://localhost:10000/ui/#!/?url=")
    assert at_the_end.endswith("&visStart=500&visEnd=1000&ts=900&dur=100&pid=7&tid=8")


def test_names_need_no_quoting() -> None:
    assert safe_name("a b&c=d#é\u202e.json.gz") == "a_b_c_d_.json.gz"
    assert safe_name("worker0.pt.trace.json.zst", ".json.gz") == "worker0.pt.json.gz"
    assert safe_name("", ".json") == "trace.json"
    assert len(safe_name("n" * 5_000)) == 80
