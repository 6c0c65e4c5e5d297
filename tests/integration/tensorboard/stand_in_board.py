"""Owns a stand-in for the process of a TensorBoard: it answers at once, and can stop answering."""

import argparse
import http.server
import os
import subprocess
import sys


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
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
os.makedirs(given.folder, exist_ok=True)
with open(os.path.join(given.folder, "helper"), "w") as file:
    file.write(str(helper.pid))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
