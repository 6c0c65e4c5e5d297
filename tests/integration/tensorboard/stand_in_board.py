"""Fake TensorBoard process: answers at once, and can stop answering."""

import argparse
import ctypes
import http.server
import os
import platform
import subprocess
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_there = self.path.startswith(given.prefix) and not os.path.exists(os.path.join(given.folder, "stuck"))
        self.send_response(200 if is_there else 404)
        self.end_headers()

    def log_message(self, *_values: object) -> None:
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--prefix")
parser.add_argument("--end-with")
parser.add_argument("folder")
given = parser.parse_args()
if os.environ.get("STAND_IN") == "fails":
    print("no such plugin", file=sys.stderr)
    sys.exit(1)
helper = subprocess.Popen(
    [sys.executable, "-c", "import threading; threading.Event().wait(600)"], stdout=subprocess.DEVNULL
)
os.makedirs(given.folder, exist_ok=True)
with open(os.path.join(given.folder, "helper"), "w") as file:
    file.write(str(helper.pid))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
serving = threading.Thread(target=server.serve_forever)
serving.start()
print(server.server_address[1], flush=True)
while serving.is_alive():
    if os.path.exists(os.path.join(given.folder, "half dead")):  # as every process with threads is, for a moment
        os.remove(os.path.join(given.folder, "half dead"))
        ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # ends this thread alone
    serving.join(0.02)
