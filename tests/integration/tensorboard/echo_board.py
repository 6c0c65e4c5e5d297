"""Fake TensorBoard process that echoes requests and returns what a test wants.

The folder of its event files tells it how to start: after a file ``go`` is there where there is a file ``waits``.
"""

import argparse
import http.server
import json
import os
import threading
from urllib.parse import parse_qs, urlsplit


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        wanted = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if "break" in wanted:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        said = {"method": self.command, "path": self.path, "headers": headers, "body": body.decode()}
        content = json.dumps(said).encode()
        self.send_response(int(wanted.get("status", 200)))
        self.send_header("Content-Type", wanted.get("type", "application/json"))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Set-Cookie", "theirs=1; Path=/")
        self.send_header("Location", "//elsewhere.example.com/")
        self.send_header("Content-Security-Policy", wanted.get("policy", "script-src 'unsafe-inline'"))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Keep-Alive", "timeout=5")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self) -> None:
        self.do_GET()

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_values: object) -> None:
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--prefix")
parser.add_argument("--end-with")
parser.add_argument("folder")
given = parser.parse_args()
while os.path.exists(os.path.join(given.folder, "waits")) and not os.path.exists(os.path.join(given.folder, "go")):
    threading.Event().wait(0.02)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
