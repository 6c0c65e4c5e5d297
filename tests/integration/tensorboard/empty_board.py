"""Fake TensorBoard without data: answers everything with an empty object."""

import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"{}\n")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
