"""Serve the jobs of dbt Cloud that dbt-jobs-as-code reads, on loopback.

Run: python dbt_service.py FILE SECONDS: a JSON list of jobs, and the latency of each response.
Prints its port. A job has no environment variables of its own.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

PAGE = 100
JOBS = json.loads(Path(sys.argv[1]).read_bytes())
LATENCY = float(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    """Answers pages of jobs, and no variables."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer after the latency."""
        time.sleep(LATENCY)
        where = urlsplit(self.path)
        answer: dict[str, object] = {"data": {}}
        if where.path.endswith("/jobs/"):
            offset = int(parse_qs(where.query).get("offset", ["0"])[0])
            shown = {"limit": PAGE, "offset": offset}
            answer = {
                "data": JOBS[offset : offset + PAGE],
                "extra": {"filters": shown, "pagination": {"total_count": len(JOBS)}},
            }
        body = json.dumps(answer).encode()
        # One packet: a second one would wait for the acknowledgement of the first.
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        self.wfile.write(f"{head}\r\n\r\n".encode() + body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
