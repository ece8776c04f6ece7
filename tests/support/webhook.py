"""A webhook that denies everything. It runs alone in a pod that has only Python."""

import json
import socket
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer

PORT = 8443
CERTIFICATE = "/tls"  # where its certificate and key are mounted


class Webhook(BaseHTTPRequestHandler):
    """Denies each review; the message names the webhook and the object."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        message = f"{socket.gethostname()} does not want {request['name']}"
        verdict = {"uid": request["uid"], "allowed": False, "status": {"message": message}}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({**review, "response": verdict}).encode())


def main() -> None:
    server = HTTPServer(("", PORT), Webhook)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(f"{CERTIFICATE}/tls.crt", f"{CERTIFICATE}/tls.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
