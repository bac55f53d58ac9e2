"""An app for tendril in plain Python: a report for every order.

Nothing here is tendril's own: a server on PORT, one POST per message, 200 when
the work is on disk. The headers of the worker daemon say which message it is,
so that doing one twice does no harm.
"""

import csv
import json
import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

OUT = Path(os.environ.get("REPORTS_DIR", "out"))


class BadOrder(ValueError):
    """The message is no order; trying again will not help."""


def read_order(body: bytes) -> tuple[str, list[tuple[str, int, int]]]:
    """Return the customer and the lines (article, count, cents) of an order."""
    try:
        order = json.loads(body)
        lines = [(str(l["article"]), int(l["count"]), int(l["cents"])) for l in order["lines"]]
        return str(order["customer"]), lines
    except (ValueError, KeyError, TypeError) as err:
        raise BadOrder(f"the body is no order: {err!r}") from err


def write_report(path: Path, customer: str, lines: list[tuple[str, int, int]]) -> int:
    """Write the report whole or not at all, and return the total in cents."""
    total = sum(count * cents for _, count, cents in lines)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, newline="") as f:
        out = csv.writer(f)
        out.writerow(["customer", "article", "count", "cents"])
        for line in lines:
            out.writerow([customer, *line])
        out.writerow([customer, "total", "", total])
    os.replace(f.name, path)
    return total


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # so that connections are used again

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = self.headers["X-Aws-Sqsd-Msgid"]
        attempt = self.headers["X-Aws-Sqsd-Receive-Count"]
        tenant = self.headers.get("X-Aws-Sqsd-Attr-Tenant", "nobody in particular")
        # The message id names the file: a second attempt writes the same one.
        path = OUT / f"{message}.csv"
        if path.exists():
            print(f"{path.name}: done before, attempt {attempt}", flush=True)
            return self.answer(200, "done before")
        try:
            customer, lines = read_order(body)
        except BadOrder as err:
            print(f"{message}: {err}", flush=True)
            return self.answer(422, str(err))
        total = write_report(path, customer, lines)
        print(f"{path.name}: {len(lines)} lines, {total / 100:.2f} for {tenant}", flush=True)
        self.answer(200, "written")

    def do_GET(self):
        self.answer(200, f"{len(list(OUT.glob('*.csv')))} reports")

    def answer(self, status: int, text: str):
        data = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass  # one line per order is enough


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    port = int(os.environ.get("PORT", "5000"))
    print(f"reports: listening on {port}, writing to {OUT}", flush=True)
    try:
        ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
