# SPDX-License-Identifier: Apache-2.0
"""Receivers of OTLP for the tests of prof-send. They are strict: a request that breaks a rule of
the protocol is noted in `wrong`. They misbehave on order: `plan` says what to do with each
request."""
import base64
import concurrent.futures
import contextlib
import gzip
import http.server
import random
import socket
import ssl
import struct
import subprocess
import threading
import time
from email.utils import formatdate

import grpc
import h2.config
import h2.connection
import h2.errors
import h2.events

SERVICE = "opentelemetry.proto.collector.profiles.v1development.ProfilesService"
GRPC_PATH = f"/{SERVICE}/Export"
HTTP_PATH = "/v1development/profiles"


def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A protobuf field: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def partial(rejected, message):
    """An ExportProfilesServiceResponse with a partial success."""
    return field(1, field(1, rejected) + field(2, message.encode()))


def retry_info(seconds, nanos=0):
    """A google.rpc.Status with a RetryInfo, for grpc-status-details-bin."""
    delay = field(1, field(1, seconds) + field(2, nanos))
    detail = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, delay)
    return field(1, 8) + field(3, detail)


def spare_port():
    """Below the ports that the kernel gives to connections: a receiver that ends may start again on
    its port, which nobody else gets meanwhile."""
    while True:
        port = random.randrange(15000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Receiver:
    """The base of all receivers. plan: what to do with the first requests, in order; later ones are
    accepted."""

    def __init__(self, plan=()):
        self.plan, self.taken, self.wrong, self.times = list(plan), [], [], []
        self.headers = []
        self.lock = threading.Lock()

    def next_step(self):
        with self.lock:
            self.times.append(time.monotonic())
            return self.plan.pop(0) if self.plan else None

    def check(self, good, what):
        if not good:
            self.wrong.append(what)

    def wait(self, n, seconds=20):
        """Waits until n requests were accepted."""
        until = time.monotonic() + seconds
        while len(self.taken) < n and time.monotonic() < until:
            time.sleep(0.01)
        return len(self.taken) >= n


class GrpcReceiver(Receiver):
    """gRPC by grpcio, an implementation that is not ours. A step gets the context, and returns the
    response or aborts."""

    def __init__(self, plan=(), tls=None, port=0, host="127.0.0.1"):
        super().__init__(plan)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4),
                                  options=[("grpc.so_reuseport", 0)])
        handler = grpc.unary_unary_rpc_method_handler(self.export)
        self.server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(SERVICE, {"Export": handler})])
        address = f"{host}:{port or spare_port()}"
        self.port = (self.server.add_secure_port(address, tls) if tls
                     else self.server.add_insecure_port(address))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def export(self, request, context):
        step = self.next_step()
        self.headers.append(dict(context.invocation_metadata()))
        if step:
            response = step(context)
            if response is None:
                return b""
        else:
            response = b""
        with self.lock:
            self.taken.append(request)
        return response

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(0).wait()


class HttpReceiver(Receiver):
    """By http.server. A step gets the handler, and answers by itself. True: the request counts as
    taken."""

    def __init__(self, plan=(), path=HTTP_PATH, tls=None, port=0):
        super().__init__(plan)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver.serve(self)

            def log_message(self, *_):
                pass

        self.path = path
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port or spare_port()),
                                                      Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.headers.append({k.lower(): v for k, v in handler.headers.items()})
        # A proxy passes on the whole URL.
        self.check(handler.path.removeprefix(self.url) == self.path, f"path {handler.path}")
        self.check(handler.headers["Content-Type"] == "application/x-protobuf", "content type")
        self.check(handler.headers["Expect"] is None, "an Expect")
        if handler.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        else:
            self.check(handler.headers["Content-Encoding"] is None, "content encoding")
        step = self.next_step()
        if step and not step(handler):
            return
        with self.lock:
            self.taken.append(body)
        if not step:
            reply(handler, 200)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def reply(handler, status, body=b"", **headers):
    handler.send_response(status)
    handler.send_header("Content-Type", "application/x-protobuf")
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def status(code, body=b"", takes=False, **headers):
    """A step of HttpReceiver: this status."""
    def step(handler):
        reply(handler, code, body, **headers)
        return takes
    return step


def date_in(seconds):
    return formatdate(time.time() + seconds, usegmt=True)


class H2Receiver(Receiver):
    """gRPC implemented here, on the library h2: sees each header, and can break any rule. A step
    gets the receiver's Stream and answers by itself. True: the request counts as taken."""

    def __init__(self, plan=(), port=0):
        super().__init__(plan)
        self.listener = socket.create_server(("127.0.0.1", port or spare_port()))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.open = True

    class Stream:
        def __init__(self, conn, sock, number, headers):
            self.conn, self.sock, self.number, self.headers = conn, sock, number, headers
            self.body, self.left = b"", {}

        def flush(self):
            self.sock.sendall(self.conn.data_to_send())

        def head(self, *more, end=False, http="200"):
            self.conn.send_headers(self.number, [(":status", http),
                                                 ("content-type", "application/grpc"), *more],
                                   end_stream=end)

        def good(self, message=b""):
            self.head()
            self.data(b"\0" + struct.pack(">I", len(message)) + message)
            self.trailers(("grpc-status", "0"))

        def data(self, data, end=False):
            """As much as the peer's window allows."""
            while data:
                n = min(len(data), self.conn.local_flow_control_window(self.number),
                        self.conn.max_outbound_frame_size)
                if not n:
                    self.flush()
                    for _ in H2Receiver.events(self.conn, self.sock):
                        pass
                    continue
                self.conn.send_data(self.number, data[:n])
                data = data[n:]
            if end:
                self.conn.end_stream(self.number)
            self.flush()

        def trailers(self, *more):
            self.conn.send_headers(self.number, more, end_stream=True)
            self.flush()

    @staticmethod
    def events(conn, sock):
        data = sock.recv(65536)
        if not data:
            raise ConnectionError
        yield from conn.receive_data(data)
        sock.sendall(conn.data_to_send())

    def serve(self, sock):
        conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False,
                                                                    header_encoding="utf-8"))
        conn.initiate_connection()
        sock.sendall(conn.data_to_send())
        streams = {}
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError), sock:
            while True:
                for event in self.events(conn, sock):
                    if isinstance(event, h2.events.RequestReceived):
                        streams[event.stream_id] = self.Stream(conn, sock, event.stream_id,
                                                               dict(event.headers))
                    elif isinstance(event, h2.events.DataReceived):
                        streams[event.stream_id].body += event.data
                        conn.acknowledge_received_data(event.flow_controlled_length,
                                                       event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        self.answer(streams.pop(event.stream_id))

    def answer(self, stream):
        h, body = stream.headers, stream.body
        self.headers.append(h)
        self.check(h[":path"] == GRPC_PATH, f"path {h[':path']}")
        self.check(h[":method"] == "POST", "method")
        self.check(h["te"] == "trailers", "te")
        self.check(h["content-type"] == "application/grpc", "content type")
        self.check("grpc-timeout" in h, "no grpc-timeout")
        flag, length = struct.unpack(">?I", body[:5])
        self.check(length == len(body) - 5, "length of the message")
        self.check(flag == (h.get("grpc-encoding") == "gzip"), "the flag of compression")
        step = self.next_step()
        if step and not step(stream):
            return
        with self.lock:
            self.taken.append(gzip.decompress(body[5:]) if flag else body[5:])
        if not step:
            stream.good()

    def accept(self):
        with contextlib.suppress(OSError):
            while self.open:
                sock, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.open = False
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def grpc_error(code, message="", details=b"", trailers_only=True, takes=False):
    """A step of H2Receiver: a gRPC status, in trailers or in the first headers."""
    def step(stream):
        fields = [("grpc-status", str(code))]
        if message:
            fields.append(("grpc-message", message))
        if details:
            fields.append(("grpc-status-details-bin",
                           base64.b64encode(details).decode().rstrip("=")))
        if trailers_only:
            stream.head(*fields, end=True)
            stream.flush()
        else:
            stream.head()
            stream.trailers(*fields)
        return takes
    return step


class Listener:
    """A server on a bare socket. Each connection has a thread, which runs `serve`. came: the number
    of connections."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.came = 0

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                self.came += 1
                threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Proxy(Listener):
    """A proxy that makes tunnels (CONNECT), and passes other requests on."""

    def __init__(self):
        super().__init__()
        self.asked = []

    @staticmethod
    def pump(a, b):
        with contextlib.suppress(OSError):
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)

    def serve(self, client):
        head = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            method, target, _ = head.split(b"\r\n")[0].decode().split()
            self.asked.append((method, target, head))
            if method == "CONNECT":
                host, port = target.rsplit(":", 1)
                server = socket.create_connection((host, int(port)))
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                rest = head.split(b"\r\n\r\n", 1)[1]
            else:
                host, port = target.split("/")[2].split(":")
                server = socket.create_connection((host, int(port)))
                path = "/" + target.split("/", 3)[3]
                rest = head.replace(target.encode(), path.encode(), 1)
            server.sendall(rest)
            threading.Thread(target=self.pump, args=(client, server), daemon=True).start()
            self.pump(server, client)


class Authority:
    """A certificate authority of its own, and what it signed."""

    def __init__(self, folder):
        self.dir = folder
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-days", "2", "-subj", "/CN=test root", "-keyout", "ca.key", "-out", "ca.pem",
                 "-addext", "basicConstraints=critical,CA:TRUE")

    def run(self, *args):
        subprocess.run(["openssl", *args], cwd=self.dir, check=True, capture_output=True)

    def sign(self, name, alternative):
        """NAME.key and NAME.pem."""
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                 f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (self.dir / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
        self.run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                 "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        (self.dir / f"{name}.key").chmod(0o600)
        return self.dir / f"{name}.pem", self.dir / f"{name}.key"

    @property
    def root(self):
        return self.dir / "ca.pem"


def tls_of(certificate, key, clients=None):
    """For HttpReceiver."""
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(certificate, key)
    if clients:
        c.load_verify_locations(clients)
        c.verify_mode = ssl.CERT_REQUIRED
    return c


def grpc_tls_of(certificate, key, clients=None):
    """For GrpcReceiver."""
    return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())],
                                       clients.read_bytes() if clients else None,
                                       clients is not None)


class Names:
    """A name server on port 53 of a loopback address: all names are 127.0.0.1, and none has an IPv6
    address. Over UDP it only says that its answer is too long."""

    ADDRESS = "127.77.0.53"

    def __init__(self):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((self.ADDRESS, 53))
        self.tcp = socket.create_server((self.ADDRESS, 53))
        self.asked = []

    def answer(self, query, cut):
        end = 12 + query[12:].index(0) + 5
        kind, = struct.unpack(">H", query[end - 4:end - 2])
        self.asked.append(("udp" if cut else "tcp", kind))
        found = kind == 1 and not cut
        head = query[:2] + struct.pack(">HHHHH", 0x8380 if cut else 0x8180, 1, found, 0, 0)
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1])
        return head + query[12:end] + record * found

    def serve_udp(self):
        with contextlib.suppress(OSError):
            while True:
                query, peer = self.udp.recvfrom(512)
                if not query:
                    break
                self.udp.sendto(self.answer(query, True), peer)

    def serve_tcp(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.tcp.accept()
                with peer, contextlib.suppress(OSError, struct.error):
                    while True:
                        n, = struct.unpack(">H", peer.recv(2, socket.MSG_WAITALL))
                        a = self.answer(peer.recv(n, socket.MSG_WAITALL), False)
                        peer.sendall(struct.pack(">H", len(a)) + a)

    def __enter__(self):
        for serve in self.serve_udp, self.serve_tcp:
            threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        for s in self.udp, self.tcp:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
