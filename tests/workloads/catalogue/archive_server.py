"""An archive on this machine: an HTTP server that serves files, and misbehaves on request."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = gzip.compress(
    b"; MaxProcs: 8\n" + b"1 0 0 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n" * 4000, mtime=0
)
"""What stands for a log of the archive: packed, a few kilobytes."""

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


def whole(
    handler: BaseHTTPRequestHandler, body: bytes, *, said: int | None = None, **headers: str
) -> None:
    """Send a body, with the length that is said of it."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body) if said is None else said))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def truncated(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Announce more than is sent."""
    whole(handler, body[: len(body) // 2], said=len(body))


def truncated_unannounced(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Send a half without a word about how long it is."""
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])


def encoded(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Say of the packed file that its content is encoded, as some servers do."""
    whole(handler, body, Content_Encoding="gzip", Content_Type="text/plain")


def sorry(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Send a page in place of the file."""
    whole(handler, b"<html>The file has moved.</html>")


def absent(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Answer that there is no such file."""
    handler.send_error(404)


def stalled(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Send a half, then nothing, until the other side goes."""
    whole(handler, body[: len(body) // 2], said=len(body))
    handler.wfile.flush()
    handler.server.gone.wait(60)  # type: ignore[attr-defined]


def slow(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Send the file in pieces, over about a second."""
    whole(handler, b"", said=len(body))
    step = len(body) // 10 + 1
    for begin in range(0, len(body), step):
        handler.wfile.write(body[begin : begin + step])
        handler.wfile.flush()
        time.sleep(0.1)


class Archive:
    """A server that runs: where it is, how it answers, and which paths were asked for."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.address = f"http://127.0.0.1:{server.server_address[1]}/workload"
        self.answer: Answer = whole
        self.body = LOG
        self.asked: list[str] = []


@contextmanager
def archive() -> Iterator[Archive]:
    """Run a server while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place.asked.append(self.path)
            with suppress(OSError):  # whoever asked has gone
                place.answer(self, place.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.gone = threading.Event()  # type: ignore[attr-defined]
    place = Archive(server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield place
    finally:
        server.gone.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()
        thread.join()
