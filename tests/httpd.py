#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""httpd.py - an HTTP server that misbehaves on request, for tests.

httpd.py DIR [CERT KEY]: listens on 127.0.0.1, on a port that the kernel
chooses; writes "PORT\n" to DIR/port when it does, and every request as a line
"PATH [HEADER=VALUE ...]" to DIR/requests. With CERT and KEY (PEM) a second
port, in DIR/tls-port, speaks TLS. Ends when its standard input does.

What a path does; N, S and such are the parts of the path:
  /bytes/N             N bytes, each its offset modulo 251
  /gz/N                the same, compressed, as Content-Encoding: gzip
  /file/NAME           DIR/NAME
  /slow/N/S            N bytes "x", one each S seconds
  /stall/N             N of 1000000 bytes, then silence
  /silent              no answer at all
  /endless             bytes without end
  /status/CODE         that status, with a body
  /status/CODE/HEADER/VALUE
  /times/K/CODE/AFTER/KEY   K times status CODE with Retry-After (unless it is
                       "-"), then "done"; counted by KEY
  /cut/N/AT/KEY/HOW    N bytes as /bytes, but the first answer ends after AT.
                       HOW: plain (no ranges), etag, weak, modified, changed
                       (etag, but the second time another one), wrong (206 of
                       other bytes), chunked (plain, no length), again (every
                       answer ends AT bytes on)
  /drop/K/KEY          K times the connection is closed without an answer
  /redirect/K          K redirects, then "here"
  /to?URL              a redirect to URL
  /headers             the request's header lines
  /together/KEY        "N": most requests of KEY that were open at a time
"""
import email.utils
import gzip
import http.server
import os
import ssl
import sys
import threading
import time
import urllib.parse

top = sys.argv[1]
lock = threading.Lock()
seen = {}  # counts by key
open_now = {}
open_most = {}


def count(key):
    with lock:
        seen[key] = seen.get(key, 0) + 1
        return seen[key]


PERIOD = bytes(i % 251 for i in range(251 * 1024))


def pattern(start, end):
    """Bytes start..end-1 of the pattern, in pieces."""
    while start < end:
        at = start % 251
        n = min(end - start, len(PERIOD) - at)
        yield PERIOD[at:at + n]
        start += n


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def log_message(self, *_):
        pass

    def reply(self, body, code=200, headers=(), reason=None):
        self.send_response(code, reason)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang(self):
        self.wfile.flush()
        self.close_connection = True
        # until the peer goes away
        self.connection.settimeout(60)
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass

    def head(self, length, code=200, headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def do_GET(self):
        line = self.path
        for name in ("Range", "If-Range", "Authorization", "Accept",
                     "Accept-Encoding", "User-Agent"):
            if self.headers.get(name):
                line += f" {name}={self.headers[name]}"
        with lock, open(os.path.join(top, "requests"), "a") as f:
            f.write(line + "\n")
        parts = urllib.parse.urlsplit(self.path).path.strip("/").split("/")
        try:
            getattr(self, "get_" + parts[0])(*parts[1:])
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def get_bytes(self, n):
        self.head(n)
        for piece in pattern(0, int(n)):
            self.wfile.write(piece)

    def get_gz(self, n):
        self.reply(gzip.compress(b"".join(pattern(0, int(n))), mtime=0),
                   headers=[("Content-Encoding", "gzip")])

    def get_file(self, name):
        with open(os.path.join(top, name), "rb") as f:
            self.reply(f.read())

    def get_slow(self, n, s):
        self.head(n)
        for _ in range(int(n)):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(float(s))

    def get_stall(self, n):
        self.head(1000000)
        self.wfile.write(b"x" * int(n))
        self.hang()

    def get_silent(self):
        self.hang()

    def get_endless(self):
        self.head(None)
        self.close_connection = True
        while True:
            self.wfile.write(PERIOD)

    def get_status(self, code, name=None, value=None):
        self.reply(b"the body of an error page\n", int(code),
                   [(name, value)] if name else ())

    def get_times(self, k, code, after, key):
        if count(key) <= int(k):
            self.reply(b"not now\n", int(code),
                       [("Retry-After", after)] if after != "-" else ())
        else:
            self.reply(b"done")

    def get_cut(self, n, at, key, how):
        n, at = int(n), int(at)
        tries = count(key)
        headers = []
        if how in ("etag", "changed", "wrong", "again"):
            name = "v2" if how == "changed" and tries > 1 else "v1"
            headers = [("ETag", f'"{name}"')]
        elif how == "weak":
            headers = [("ETag", 'W/"v1"')]
        elif how == "modified":
            headers = [("Last-Modified", email.utils.formatdate(1e9, usegmt=True))]
        if how not in ("plain", "chunked"):
            headers.append(("Accept-Ranges", "bytes"))
        start, code = 0, 200
        asked, if_range = self.headers.get("Range"), self.headers.get("If-Range")
        if asked and if_range == (headers[0][1] if headers else None):
            start = int(asked[len("bytes="):-1])
            code = 206
            off = 1 if how == "wrong" else 0
            headers.append(("Content-Range", f"bytes {start + off}-{n - 1}/{n}"))
        end = n if tries > 1 and how != "again" else min(start + at, n)
        if how == "chunked" and tries == 1:
            self.head(None, 200, [("Transfer-Encoding", "chunked")])
            self.wfile.write(b"%x\r\n" % n)
        else:
            self.head(n - start, code, headers)
        for piece in pattern(start, end):
            self.wfile.write(piece)
        self.close_connection = True

    def get_drop(self, k, key):
        if count(key) <= int(k):
            self.close_connection = True
        else:
            self.reply(b"done")

    def get_redirect(self, k):
        if int(k) == 0:
            self.reply(b"here")
        else:
            self.reply(b"moved", 302, [("Location", f"/redirect/{int(k) - 1}")])

    def get_to(self):
        self.reply(b"moved", 302, [("Location", self.path.split("?", 1)[1])])

    def get_headers(self):
        self.reply(str(self.headers).encode())

    def get_together(self, key):
        with lock:
            open_now[key] = open_now.get(key, 0) + 1
            open_most[key] = max(open_most.get(key, 0), open_now[key])
        time.sleep(0.05)
        with lock:
            most = open_most[key]
            open_now[key] -= 1
        self.reply(b"%d" % most)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_):  # a client that went away, or refused us
        pass


class TLSServer(Server):
    def __init__(self, address, handler, cert, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        super().__init__(address, handler)

    def finish_request(self, request, client_address):
        # on the thread of the connection: a client that says nothing holds up
        # itself only
        request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)
        request.close()


def serve(server, name):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = os.path.join(top, name)
    with open(path + ".new", "w") as f:
        f.write(f"{server.server_address[1]}\n")
    os.rename(path + ".new", path)


if len(sys.argv) > 2:
    serve(TLSServer(("127.0.0.1", 0), Handler, sys.argv[2], sys.argv[3]),
          "tls-port")
serve(Server(("127.0.0.1", 0), Handler), "port")
sys.stdin.buffer.read()
