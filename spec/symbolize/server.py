"""A server of debug files that does not behave.

server.py MODE FILE FOLDER: listens on a loopback port, writes it to FOLDER/port, and FOLDER/asked
when somebody connected.  Modes: wrong (answers any request with FILE), slow (FILE, a few bytes a
second), cut (half of what it announced), silent (takes connections and says nothing), endless
(sends FILE again and again).
"""

import http.server
import os
import sys
import time

mode, path, folder = sys.argv[1:]
data = open(path, "rb").read()


def mark(name, text=""):
    with open(os.path.join(folder, name + ".new"), "w") as out:
        out.write(text)
    os.rename(os.path.join(folder, name + ".new"), os.path.join(folder, name))


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        mark("asked")
        if mode == "silent":
            time.sleep(3600)
        self.send_response(200)
        if mode != "endless":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if mode == "wrong":
            self.wfile.write(data)
        elif mode == "endless":
            while True:
                self.wfile.write(data)
        elif mode == "cut":
            self.wfile.write(data[: len(data) // 2])
        else:
            for byte in data:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.1)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
mark("port", str(server.server_address[1]))
server.serve_forever()
