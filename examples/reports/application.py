"""An app for tendril in plain Python: a report for every order.

Nothing here is tendril's own: a server on PORT, one POST per message, 200 when
the work is on disk. The headers of the worker daemon say which message it is,
so that doing one twice does no harm.
"""

import csv
import json
import os
import re
import signal
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

OUT = Path(os.environ.get("REPORTS_DIR", "out"))
LARGEST_BODY = 1024 * 1024  # what a queue takes
MESSAGE_ID = re.compile(r"[A-Za-z0-9-]{1,100}")


def log(line: str):
    """Print a line at once. print would write its end apart, after another thread's line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class BadOrder(ValueError):
    """The message is not an order; trying again will not help."""


def read_order(body: bytes) -> tuple[str, list[tuple[str, int, int]]]:
    """Return the customer and the lines (article, count, cents) of an order."""
    try:
        order = json.loads(body)
        lines = [(text(l["article"]), int(l["count"]), int(l["cents"])) for l in order["lines"]]
        return text(order["customer"]), lines
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        raise BadOrder(f"the body is not an order: {err!r}") from err


def text(value) -> str:
    """Return value as text that a file can hold; half a character is none."""
    return str(value).encode("utf-8").decode("utf-8")


def write_report(path: Path, customer: str, lines: list[tuple[str, int, int]]) -> int:
    """Write the report whole or not at all, and return the total in cents."""
    total = sum(count * cents for _, count, cents in lines)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, newline="", encoding="utf-8") as f:
        try:
            out = csv.writer(f)
            out.writerow(["customer", "article", "count", "cents"])
            for line in lines:
                out.writerow([customer, *line])
            out.writerow([customer, "total", "", total])
            f.flush()
            os.fsync(f.fileno())  # 200 lets the message be deleted
            os.replace(f.name, path)
        except BaseException:
            os.unlink(f.name)
            raise
    return total


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # so that connections are used again
    wbufsize = -1  # head and body of an answer in one packet: apart, each answer takes 40 ms
    timeout = 3  # seconds after which a silent connection is closed; tendril keeps unused ones for 1

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > LARGEST_BODY:
            self.close_connection = True
            return self.answer(413, f"the body is longer than {LARGEST_BODY} bytes or does not say how long it is")
        body = self.rfile.read(int(length))
        message = self.headers.get("X-Aws-Sqsd-Msgid", "")
        if not MESSAGE_ID.fullmatch(message):  # it becomes a file name
            return self.answer(400, "no message id in X-Aws-Sqsd-Msgid: orders come from a worker daemon")
        attempt = self.headers.get("X-Aws-Sqsd-Receive-Count")
        tenant = self.headers.get("X-Aws-Sqsd-Attr-Tenant", "nobody in particular")
        # The message id names the file: a second attempt writes the same one.
        path = OUT / f"{message}.csv"
        if path.exists():
            log(f"{path.name}: done before, attempt {attempt}")
            return self.answer(200, "done before")
        try:
            customer, lines = read_order(body)
        except BadOrder as err:
            log(f"{message}: {err}")
            return self.answer(422, str(err))
        total = write_report(path, customer, lines)
        log(f"{path.name}: {len(lines)} lines, {total / 100:.2f} for {tenant}")
        self.answer(200, "written")

    def do_GET(self):
        self.answer(200, f"{len(list(OUT.glob('*.csv')))} reports")

    def answer(self, status: int, text: str):
        data = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass  # one line per order is enough


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # connections that may wait; with the usual 5 some of 50 at once are lost
    daemon_threads = False  # a stop lets requests finish


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    server = Server(("127.0.0.1", int(os.environ.get("PORT", "5000"))), Handler)
    for ending in (signal.SIGTERM, signal.SIGINT):
        # shutdown waits for the loop below, so it needs a thread of its own.
        signal.signal(ending, lambda *_: threading.Thread(target=server.shutdown).start())
    log(f"reports: listening on {server.server_port}, writing to {OUT}")
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
