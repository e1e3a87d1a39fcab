# SPDX-License-Identifier: Apache-2.0
"""prof-send against strict receivers, which misbehave on order. Only loopback addresses."""
import contextlib
import gzip
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import h2.errors
import pytest

from conftest import BUILD
from receivers import (Authority, GrpcReceiver, H2Receiver, HttpReceiver, Names, Proxy,
                       date_in, field, grpc_error, grpc_tls_of, partial, reply, retry_info, status,
                       tls_of)

SEND = f"{BUILD}/prof-send"
# The tests' own surroundings may have proxies and receivers.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.lower().endswith("_proxy") and not k.startswith("OTEL_")}
A, B, C = b"first", b"second" * 1000, b""
BOTH = [("grpc", GrpcReceiver), ("http/protobuf", HttpReceiver)]


def frames(*requests):
    return b"".join(struct.pack(">I", len(r)) + r for r in requests)


def noise(n, size, seed=1):
    """Requests that no compressor makes smaller."""
    r = random.Random(seed)
    return [r.randbytes(size) for _ in range(n)]


def send(*args, requests=(A,), data=None, env=None, timeout=30, before=(), **kw):
    return subprocess.run([*before, SEND, *map(str, args)],
                          input=frames(*requests) if data is None else data,
                          capture_output=True, timeout=timeout, env={**CLEAN, **(env or {})},
                          check=False, **kw)


def said(p):
    return p.stdout.decode() + p.stderr.decode(errors="replace")


def delivered(p, n, of=None, status=0):
    assert p.returncode == status, said(p)
    of = n if of is None else of
    assert f": {of} request{'s' if of != 1 else ''}, {n} delivered" in p.stdout.decode(), said(p)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    a = Authority(tmp_path_factory.mktemp("ca"))
    a.good = a.sign("good", "IP:127.0.0.1,DNS:localhost")
    a.other = a.sign("other", "DNS:example.org")
    a.client = a.sign("client", "DNS:client")
    return a


# --- what all receivers get ---

@pytest.mark.parametrize("protocol,receiver", [*BOTH, ("grpc", H2Receiver)])
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_requests_arrive_unchanged_and_in_order(protocol, receiver, compression):
    with receiver() as r:
        p = send("--otlp", r.url, "--otlp-protocol", protocol, "--otlp-compression", compression,
                 requests=[A, B, C, A])
        delivered(p, 4)
        assert (r.taken, r.wrong) == ([A, B, C, A], [])
        assert p.stderr == b""


@pytest.mark.parametrize("protocol,receiver", BOTH)
def test_tls_with_a_given_root_and_a_client_certificate(authority, protocol, receiver):
    tls = (grpc_tls_of if receiver is GrpcReceiver else tls_of)(*authority.good, authority.root)
    with receiver(tls=tls) as r:
        to = ["--otlp", r.url.replace("127.0.0.1", "localhost"), "--otlp-protocol", protocol,
              "--otlp-ca", authority.root]
        certificate, key = authority.client
        p = send(*to, "--otlp-cert", certificate, "--otlp-key", key, requests=[A, B])
        delivered(p, 2)
        assert (r.taken, r.wrong) == ([A, B], [])
        p = send(*to, "--drain", "0.3")
        delivered(p, 0, 1, status=1)
        assert r.taken == [A, B]


@pytest.mark.parametrize("protocol,receiver", BOTH)
@pytest.mark.parametrize("case,words", [("name", "no alternative certificate subject name "
                                                   "matches"), ("root", "unable to get local "
                                                                     "issuer certificate")])
def test_a_wrong_name_or_an_unknown_root_gets_no_byte(authority, protocol, receiver, case, words):
    pair = authority.other if case == "name" else authority.good
    tls = (grpc_tls_of if receiver is GrpcReceiver else tls_of)(*pair)
    roots = ["--otlp-ca", authority.root] if case == "name" else []
    with receiver(tls=tls) as r:
        p = send("--otlp", r.url, "--otlp-protocol", protocol, *roots, "--drain", "0.3")
        delivered(p, 0, 1, status=1)
        assert words in said(p)
        assert p.stderr.count(b"\n") == 1
        assert not r.taken


def test_the_path_of_http_can_be_set_and_that_of_grpc_cannot():
    with HttpReceiver(path="/gate/otlp") as r:
        delivered(send("--otlp", r.url + "/gate/otlp", "--otlp-protocol", "http/protobuf"), 1)
        assert (r.taken, r.wrong) == ([A], [])
    p = send("--otlp", "http://127.0.0.1:1/path")
    assert p.returncode == 2 and p.stderr.count(b"\n") == 1
    assert b"has a path, but that of gRPC is fixed" in p.stderr


def test_the_standard_variables_stand_in_for_options(tmp_path, authority):
    with HttpReceiver(path="/base/v1development/profiles") as r:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": r.url + "/base/",
               "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
               "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
               "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20abc,x-two=2"}
        delivered(send(env=env), 1)
        assert (r.taken, r.wrong) == ([A], [])
        assert r.headers[0]["authorization"] == "Bearer abc" and r.headers[0]["x-two"] == "2"
        assert "content-encoding" not in r.headers[0]
        # That of one signal is taken as it is, and counts before the other.
        env["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"] = r.url + "/exact"
        r.path = "/exact"
        delivered(send(env=env), 1)
        assert r.wrong == []
    tls = grpc_tls_of(*authority.good, authority.root)
    certificate, key = authority.client
    with GrpcReceiver(tls=tls) as r:
        delivered(send(env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"127.0.0.1:{r.port}",
                            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority.root),
                            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(certificate),
                            "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(key)}), 1)
    with GrpcReceiver() as r:
        delivered(send(env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"127.0.0.1:{r.port}",
                            "OTEL_EXPORTER_OTLP_INSECURE": "true"}), 1)
    p = send(env={"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    assert p.returncode == 2 and b"OTEL_EXPORTER_OTLP_PROTOCOL: is no protocol" in p.stderr


@pytest.mark.parametrize("variable,protocol,receiver", [("http_proxy", *BOTH[0]),
                                                        ("http_proxy", *BOTH[1]),
                                                        ("https_proxy", *BOTH[0])])
def test_a_proxy_is_used(authority, variable, protocol, receiver):
    secure = variable == "https_proxy"
    with Proxy() as proxy, receiver(tls=grpc_tls_of(*authority.good) if secure else None) as r:
        p = send("--otlp", r.url, "--otlp-protocol", protocol,
                 *(["--otlp-ca", authority.root] if secure else []), requests=[A, B],
                 env={variable: proxy.url})
        delivered(p, 2)
        assert (r.taken, r.wrong) == ([A, B], [])
        method = proxy.asked[0][0]
        assert method == ("POST" if receiver is HttpReceiver else "CONNECT")
        if method == "CONNECT":
            assert b"grpc" not in proxy.asked[0][2].lower()
    # Hosts without a proxy are reached directly.
    with Proxy() as proxy, receiver() as r:
        delivered(send("--otlp", r.url, "--otlp-protocol", protocol,
                       env={"http_proxy": proxy.url, "no_proxy": "127.0.0.1"}), 1)
        assert proxy.asked == []


def test_a_sealed_one_asks_a_server_of_names(tmp_path):
    (tmp_path / "resolv.conf").write_text(f"nameserver {Names.ADDRESS}\noptions timeout:1\n")
    # Modules of libc are never loaded: of these services it asks only DNS.
    (tmp_path / "nsswitch.conf").write_text("hosts: mymachines mdns4 ldap\n")
    mount = (f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && "
             f"mount --bind {tmp_path}/nsswitch.conf /etc/nsswitch.conf && exec \"$@\"")
    with Names() as names, GrpcReceiver() as r:
        p = send("--otlp", f"http://collector.test:{r.port}", "--drain", "10",
                 before=["unshare", "-m", "sh", "-c", mount, "-"])
        delivered(p, 1)
        assert r.taken == [A] and ("udp", 1) in names.asked and ("tcp", 1) in names.asked


# --- failures that pass ---

def waited(r):
    return r.times[1] - r.times[0]


@pytest.mark.parametrize("plan,least", [
    (status(503, retry_after="1"), 1.0),
    (lambda h: status(429, retry_after=date_in(3))(h), 1.0),
    (status(502), 0.2),
    (status(504), 0.2),
], ids=["503 in seconds", "429 by a date", "502", "504"])
def test_http_failures_that_may_pass_are_tried_again(plan, least):
    with HttpReceiver([plan]) as r:
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf")
        delivered(p, 1)
        assert r.taken == [A] and least <= waited(r) < least + 4
        assert b"trying again" in p.stderr and b"takes requests again" in p.stderr


@pytest.mark.parametrize("code", [1, 4, 10, 11, 14, 15])
@pytest.mark.parametrize("trailers_only", [True, False])
def test_grpc_failures_that_may_pass_are_tried_again(code, trailers_only):
    with H2Receiver([grpc_error(code, "not now", trailers_only=trailers_only)]) as r:
        p = send("--otlp", r.url)
        delivered(p, 1)
        assert (r.taken, r.wrong) == ([A], [])
        assert b"not now; trying again" in p.stderr


def test_retry_info_is_honoured_and_makes_exhaustion_pass():
    with H2Receiver([grpc_error(8, "quota", retry_info(1, 200000000)),
                     grpc_error(14, "", retry_info(1))]) as r:
        delivered(send("--otlp", r.url), 1)
        assert r.taken == [A]
        assert waited(r) >= 1.2 and r.times[2] - r.times[1] >= 1


def test_a_status_of_http_stands_for_a_missing_one_of_grpc():
    def http(code):
        def step(stream):
            stream.conn.send_headers(stream.number, [(":status", code)], end_stream=True)
            stream.flush()
        return step
    with H2Receiver([http("503"), http("429")]) as r:
        delivered(send("--otlp", r.url), 1)
        assert len(r.times) == 3
    with H2Receiver([http("401")]) as r:
        p = send("--otlp", r.url)
        delivered(p, 0, 1, status=1)
        assert "UNAUTHENTICATED" in said(p)


def reset_stream(stream):
    stream.conn.reset_stream(stream.number, h2.errors.ErrorCodes.INTERNAL_ERROR)
    stream.flush()


def reset_within_reply(stream):
    stream.head()
    stream.data(b"\0\0")
    stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.sock.close()


def hang_up(handler):
    handler.close_connection = True
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def half_a_reply(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.close_connection = True


@pytest.mark.parametrize("receiver,protocol,step", [
    (H2Receiver, "grpc", reset_stream), (H2Receiver, "grpc", reset_within_reply),
    (HttpReceiver, "http/protobuf", hang_up), (HttpReceiver, "http/protobuf", half_a_reply),
])
def test_a_connection_that_breaks_is_made_again(receiver, protocol, step):
    with receiver([step]) as r:
        delivered(send("--otlp", r.url, "--otlp-protocol", protocol, requests=[A, B]), 2)
        assert r.taken == [A, B]


def slow(seconds):
    def step(handler):
        time.sleep(seconds)
        with contextlib.suppress(OSError):
            reply(handler, 200)
    return step


def test_a_receiver_that_never_answers_costs_one_attempt_its_time():
    with HttpReceiver([slow(3)]) as r:
        t = time.monotonic()
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-timeout", "0.5")
        delivered(p, 1)
        assert b"Operation timed out" in p.stderr and time.monotonic() - t < 3
    with socket.create_server(("127.0.0.1", 0)) as silent:
        t = time.monotonic()
        p = send("--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}", "--drain", "1")
        delivered(p, 0, 1, status=1)
        assert "1 not delivered in time" in said(p) and 0.9 < time.monotonic() - t < 5


@pytest.mark.parametrize("host,words", [("no-such-host.invalid", "Could not resolve host"),
                                        ("127.0.0.1:9", "Connection refused")])
def test_a_dead_name_and_a_dead_port_are_named(host, words):
    p = send("--otlp", f"http://{host}", "--drain", "2")
    delivered(p, 0, 1, status=1)
    # Without any network, a name is not even looked for.
    assert words in said(p) or "Resolving timed out" in said(p)
    assert p.stderr.count(b"\n") == 1


# --- failures that do not pass ---

@pytest.mark.parametrize("code,count", [(400, "refused by the receiver"), (413, "too large"),
                                        (401, "refused"), (404, "refused"), (500, "refused"),
                                        (301, "refused")])
def test_http_failures_for_good_are_counted_and_not_tried_again(code, count):
    with HttpReceiver([status(code, location="http://127.0.0.1:1/")]) as r:
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf", requests=[A, B])
        delivered(p, 1, 2, status=1)
        assert r.taken == [B] and len(r.times) == 2
        assert f", 1 {count}" in said(p) and f"HTTP status {code}; a request is lost" in said(p)


@pytest.mark.parametrize("code", [2, 3, 5, 7, 8, 12, 13, 16, 99])
def test_grpc_failures_for_good_are_counted_and_not_tried_again(code):
    with H2Receiver([grpc_error(code, "no%20way%1b[31m", trailers_only=code % 2 == 0)]) as r:
        p = send("--otlp", r.url, requests=[A, B])
        delivered(p, 1, 2, status=1)
        assert r.taken == [B]
        assert "1 refused by the receiver" in said(p)
        assert "no way\\x1b[31m" in said(p)


def test_partial_success_is_counted_and_never_tried_again():
    answer = partial(3, "bad timestamps")
    with HttpReceiver([status(200, answer, takes=True)]) as r:
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf")
        delivered(p, 1, status=1)
        assert len(r.times) == 1 and "1 of them in part (3 profiles rejected)" in said(p)
        assert "the receiver rejected a part: bad timestamps" in said(p)
    with GrpcReceiver([lambda context: answer]) as r:
        p = send("--otlp", r.url)
        delivered(p, 1, status=1)
        assert len(r.times) == 1 and "(3 profiles rejected)" in said(p)
    with GrpcReceiver([lambda context: partial(0, "old schema")]) as r:
        p = send("--otlp", r.url)
        delivered(p, 1)
        assert "the receiver warns: old schema" in said(p)


def test_replies_of_10_mib_end_the_reading():
    big = b"x" * (10 << 20)

    def grpc_step(stream):
        stream.head()
        with contextlib.suppress(OSError, Exception):
            stream.data(b"\0" + struct.pack(">I", len(big)) + big)
            stream.trailers(("grpc-status", "0"))
    with H2Receiver([grpc_step]) as r:
        p = send("--otlp", r.url, requests=[A, B])
        delivered(p, 1, 2, status=1)
        assert "the reply is larger than 4 MiB" in said(p) and r.taken == [B]

    def http_step(handler):
        with contextlib.suppress(OSError):
            reply(handler, 200, big)
        return True
    with HttpReceiver([http_step]) as r:
        delivered(send("--otlp", r.url, "--otlp-protocol", "http/protobuf", requests=[A, B]), 2)
        assert r.wait(2) and set(r.taken) == {A, B}

    def error_step(handler):
        with contextlib.suppress(OSError):
            reply(handler, 503, big)
    with HttpReceiver([error_step]) as r:
        delivered(send("--otlp", r.url, "--otlp-protocol", "http/protobuf"), 1)
        assert len(r.times) == 2


# --- tokens ---

def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_is_sent_and_never_shown(tmp_path):
    token = write(tmp_path / "token", "# of the gate\nAuthorization: Bearer s3cr3t-value\n\nX-Scope"
                                      "-OrgID:  team 1 \n")
    with GrpcReceiver() as r:
        p = send("--otlp", r.url, "--otlp-header-file", token)
        delivered(p, 1)
        assert r.headers[0]["authorization"] == "Bearer s3cr3t-value"
        assert r.headers[0]["x-scope-orgid"] == "team 1"
    echo = [status(400, field(2, b"no access with Bearer s3cr3t-value"))]
    with HttpReceiver(echo) as r, H2Receiver([grpc_error(7, "s3cr3t-value is wrong")]) as r2:
        p = send("-v", "--otlp-header-file", token, "--otlp", r.url, "--otlp-protocol",
                 "http/protobuf", "--otlp", r2.url)
        assert p.returncode == 1
        assert "s3cr3t" not in said(p) and "no access with ******" in said(p), said(p)


def test_a_token_that_others_could_overhear_is_told(tmp_path):
    token = write(tmp_path / "token", "a: b\n")
    p = send("--otlp", "http://no-such-host.invalid", "--otlp-header-file", token, requests=[])
    assert b"the headers go over the network unencrypted; use https://" in p.stderr
    p = send("--otlp", "http://localhost:1", "--otlp", "https://no-such-host.invalid",
             "--otlp-header-file", token, requests=[])
    assert p.stderr == b""


def test_an_option_behind_an_endpoint_is_only_for_it(tmp_path):
    token = write(tmp_path / "token", "authorization: t\n")
    with GrpcReceiver() as one, GrpcReceiver() as two:
        delivered(send("--otlp", one.url, "--otlp-header-file", token, "--otlp", two.url), 1)
        assert "authorization" in one.headers[0] and "authorization" not in two.headers[0]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_token_that_others_can_read_is_refused(tmp_path, mode):
    token = write(tmp_path / "token", "a: b\n", mode)
    os.chown(token, -1, 1)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", token)
    assert (p.returncode, p.stdout) == (1, b"")
    assert p.stderr.decode() == (f"prof-send: error: {token}: others can read it; "
                                 "run chmod 600\n")


@pytest.mark.parametrize("text,line,words", [
    ("a: b\nsecret-value\n", 2, "is no header"), ("a b: secret-value\n", 1, "has no valid name"),
    ("a: secret-\x01value\n", 1, "has control characters"),
    ("Content-Type: secret-value\n", 1, "sets itself"),
    ("grpc-timeout: secret-value\n", 1, "sets itself"),
    ("\n" * 3 + "a: secret-value\n" * 65, 68, "exceeds the limit of 64"),
])
def test_a_bad_header_file_is_refused_without_showing_it(tmp_path, text, line, words):
    token = write(tmp_path / "token", text)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", token)
    assert (p.returncode, p.stderr.count(b"\n")) == (1, 1)
    assert p.stderr.decode().startswith(f"prof-send: error: {token}: line {line}: "), said(p)
    assert words in said(p) and "secret" not in said(p)


def test_token_files_that_are_missing_or_of_others_are_refused(tmp_path):
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", tmp_path / "none")
    assert p.returncode == 1 and b"does not exist" in p.stderr
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", tmp_path)
    assert p.returncode == 1 and b"is no regular file" in p.stderr
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", fifo)
    assert p.returncode == 1 and b"is no regular file" in p.stderr
    token = write(tmp_path / "token", "a: b\n", 0o640)
    os.chown(token, 12345, 0)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", token)
    assert p.returncode == 1 and b"belongs to another user" in p.stderr


class Live:
    """prof-send that runs on; requests are written when the test likes."""

    def __init__(self, *args, before=(), **kw):
        self.p = subprocess.Popen([*before, SEND, *map(str, args)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN, **kw)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.communicate()

    def give(self, *requests):
        self.p.stdin.write(frames(*requests))
        self.p.stdin.flush()

    def end(self):
        out, err = self.p.communicate(timeout=30)
        return subprocess.CompletedProcess([], self.p.returncode, out, err)


def test_a_token_that_rotates_is_followed(tmp_path):
    token = write(tmp_path / "token", "authorization: one\n")
    with GrpcReceiver() as r, Live("--otlp", r.url, "--otlp-header-file", token) as live:
        def next_token():
            live.give(A)
            assert r.wait(len(r.taken) + 1)
            return r.headers[-1]["authorization"]
        live.give(A)
        assert r.wait(1)
        # By another file under its name, in place, and by a link to another folder's file.
        os.rename(write(tmp_path / "new", "authorization: two\n"), token)
        n = len(r.taken)
        live.give(A)
        assert r.wait(n + 1) and r.headers[-1]["authorization"] == "two"
        token.write_text("authorization: three\n")
        live.give(A)
        assert r.wait(n + 2) and r.headers[-1]["authorization"] == "three"
        # What cannot be used leaves the last one; this is said once.
        token.chmod(0o644)
        live.give(A)
        assert r.wait(n + 3) and r.headers[-1]["authorization"] == "three"
        live.give(A)
        assert r.wait(n + 4)
        token.unlink()
        live.give(A)
        assert r.wait(n + 5) and r.headers[-1]["authorization"] == "three"
        write(token, "authorization: four\n")
        live.give(A)
        assert r.wait(n + 6) and r.headers[-1]["authorization"] == "four"
        p = live.end()
        delivered(p, 7)
        assert p.stderr.count(b"the last contents are still used") == 1, said(p)


# --- queues ---

def test_a_dead_receiver_delays_no_other_one():
    with socket.create_server(("127.0.0.1", 0)) as silent, GrpcReceiver() as good:
        t = time.monotonic()
        p = send("--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}", "--otlp", good.url,
                 "--drain", "1.5", requests=[A, B, C])
        lines = p.stdout.decode().splitlines()
        assert lines[0].endswith("3 requests, 0 delivered, 3 not delivered in time")
        assert lines[1].endswith("3 requests, 3 delivered")
        assert good.times[-1] - t < 1.4 and p.returncode == 1


def test_what_does_not_fit_is_dropped_from_the_front_and_counted():
    requests = noise(40, 100_000)
    with HttpReceiver() as r:
        port = r.port
    # Nobody listens at first: the queue of 1 MiB keeps the newest ten.
    with Live("--otlp", f"http://127.0.0.1:{port}", "--otlp-protocol", "http/protobuf", "-m", "1M",
              "--drain", "1") as live:
        writer = threading.Thread(target=live.give, args=requests)
        writer.start()
        writer.join()
        with HttpReceiver(port=port) as r:
            assert r.wait(5)
            p = live.end()
        n = len(r.taken)
        # The oldest one may be on its way when others are dropped.
        assert r.taken[1:] == requests[1 - n:] and 9 <= n <= 11
        delivered(p, n, 40, status=1)
        assert f"{40 - n} dropped from the full queue" in said(p)


def test_a_large_file_waits_for_a_receiver_that_takes_it():
    requests = noise(40, 100_000)
    with HttpReceiver([slow(0.02)] * 40) as r:
        for i in range(len(r.plan)):
            r.plan[i] = lambda handler: (time.sleep(0.02), reply(handler, 200), True)[2]
        delivered(send("--otlp", r.url, "--otlp-protocol", "http/protobuf", "-m", "1M",
                       requests=requests), 40)
        assert r.taken == requests


# --- the spool ---

@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o700)
    return folder


def test_after_an_outage_everything_arrives(spool):
    requests = noise(5, 1000)
    with GrpcReceiver() as r:
        port, url = r.port, r.url
    p = send("--otlp", url, "--otlp-spool", spool, "--drain", "0.3", requests=requests)
    delivered(p, 0, 5, status=1)
    assert "5 kept in the spool" in said(p) and len(list(spool.iterdir())) == 5
    assert all(f.stat().st_mode & 0o777 == 0o600 for f in spool.iterdir())
    with GrpcReceiver(port=port) as r:
        delivered(send("--otlp", url, "--otlp-spool", spool, requests=[A]), 6)
        assert r.taken == [*requests, A]
    assert not list(spool.iterdir())


def test_a_kill_loses_nothing_and_may_send_one_request_twice(spool):
    requests = noise(30, 2000)
    with HttpReceiver() as r:
        for _ in range(30):
            r.plan.append(lambda handler: (time.sleep(0.03), reply(handler, 200), True)[2])
        args = ["--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-spool", spool]
        with Live(*args) as live:
            live.give(*requests)
            # All are in the spool, or were delivered.
            until = time.monotonic() + 20
            while len(list(spool.glob("*.otlp"))) + len(r.taken) < 30 and time.monotonic() < until:
                time.sleep(0.01)
            assert r.wait(3)
            live.p.kill()
            live.p.wait()
        left = len(list(spool.glob("*.otlp")))
        assert 0 < left < 30
        p = send(*args, requests=[])
        delivered(p, left)
        assert set(r.taken) == set(requests) and len(r.taken) <= 31


def test_torn_and_foreign_files_are_refused_and_counted(spool):
    with HttpReceiver() as r:
        args = ["--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-spool", spool]
    requests = noise(5, 1000)
    send(*args, "--drain", "0.2", requests=requests)
    files = sorted(spool.iterdir())
    files[0].write_bytes(files[0].read_bytes()[:100])
    data = bytearray(files[1].read_bytes())
    data[-1] ^= 1
    files[1].write_bytes(data)
    files[2].write_bytes(b"not ours")
    (spool / (files[3].name + ".part")).write_bytes(b"half")
    (spool / "notes.txt").write_text("mine")
    os.symlink("/etc/passwd", spool / (files[3].name[:17] + "f" * 16 + ".otlp"))
    with HttpReceiver(port=r.port) as r:
        p = send(*args, requests=[A])
        delivered(p, 3, 8, status=1)
        assert "5 damaged" in said(p) and "1 files are not of prof-send" in said(p)
        assert r.taken == [requests[3], requests[4], A]
    assert [f.name for f in spool.iterdir()] == ["notes.txt"]


def test_the_spool_is_bounded_and_keeps_the_newest(spool):
    requests = noise(30, 100_000)
    with HttpReceiver() as r:
        args = ["--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-spool", spool]
    p = send(*args, "--otlp-spool-size", "1M", "--drain", "0.3", requests=requests)
    kept = len(list(spool.iterdir()))
    assert 9 <= kept <= 11
    assert f"{30 - kept} dropped from the full spool, {kept} kept in the spool" in said(p)
    with HttpReceiver(port=r.port) as r:
        delivered(send(*args, requests=[]), kept)
        assert r.taken[1:] == requests[1 - kept:]


def test_a_full_disk_is_said_once_and_memory_serves(spool):
    requests = noise(6, 40_000)
    mount = f"mount -t tmpfs -o size=128k,mode=700 none {spool} && exec \"$@\""
    with HttpReceiver() as r:
        url = r.url
    before = ["unshare", "-m", "sh", "-c", mount, "-"]
    with Live("--otlp", url, "--otlp-protocol", "http/protobuf", "--otlp-spool", spool,
              "--otlp-spool-size", "100M", before=before) as live:
        live.give(*requests)
        time.sleep(0.5)
        with HttpReceiver(port=r.port) as r:
            assert r.wait(6)
            p = live.end()
        delivered(p, 6)
        assert r.taken == requests
        assert said(p).count("No space left on device") == 1
        assert "requests wait in memory; make room on its disk" in said(p)


def test_a_spool_that_others_can_change_or_use_is_refused(spool):
    url = "http://127.0.0.1:1"
    spool.chmod(0o777)
    p = send("--otlp", url, "--otlp-spool", spool)
    assert p.returncode == 1 and b"others may write to it" in p.stderr
    spool.chmod(0o700)
    with Live("--otlp", url, "--otlp-spool", spool) as live:
        live.give(A)
        until = time.monotonic() + 10
        while not list(spool.iterdir()) and time.monotonic() < until:
            time.sleep(0.01)
        p = send("--otlp", url, "--otlp-spool", spool)
        assert p.returncode == 1 and b"another prof-send uses it" in p.stderr
    p = send("--otlp", url, "--otlp-spool", spool / "none")
    assert p.returncode == 1 and b"does not exist" in p.stderr and p.stderr.count(b"\n") == 1


def test_endpoints_share_a_spool_and_those_that_are_gone_are_told(spool):
    with GrpcReceiver() as one, GrpcReceiver() as two:
        urls = one.url, two.url
    ports = one.port, two.port
    p = send("--otlp", urls[0], "--otlp", urls[1], "--otlp-spool", spool, "--drain", "0.2")
    assert len(list(spool.iterdir())) == 2, said(p)
    with GrpcReceiver(port=ports[0]) as r:
        p = send("--otlp", urls[0], "--otlp-spool", spool, requests=[])
        delivered(p, 1)
        assert r.taken == [A] and "1 requests for endpoints that are not given wait" in said(p)
    with GrpcReceiver(port=ports[1]) as r:
        delivered(send("--otlp", urls[1], "--otlp-spool", spool, requests=[]), 1)
        assert r.taken == [A]


# --- the input ---

def test_input_that_is_cut_or_no_requests_is_said():
    with GrpcReceiver() as r:
        p = send("--otlp", r.url, data=frames(A, B)[:-1])
        delivered(p, 1, status=1)
        assert b"standard input: ends within a request" in p.stderr and r.taken == [A]
    with GrpcReceiver() as r:
        p = send("--otlp", r.url, data=frames(A) + struct.pack(">I", (64 << 20) + 1) +
                 b"\0" * ((64 << 20) + 1) + frames(B))
        delivered(p, 2, 3, status=1)
        assert b"larger than 64 MiB" in p.stderr and r.taken == [A, B]
    p = send("--otlp", "http://127.0.0.1:1", data=b"")
    delivered(p, 0)


REFUSED = [
    ([], "--otlp: missing; "),
    (["--otlp", "localhost:4317"], "--otlp: localhost:4317: has neither http"),
    (["--otlp", "ftp://h"], "--otlp: ftp://h: has neither http"),
    (["--otlp", "http://user:pw@h"], "--otlp: the URL has a user or password"),
    (["--otlp", "http://h?token=pw"], "--otlp: the URL has a query"),
    (["--otlp", "http://"], "--otlp: http://: is no URL"),
    (["--otlp", "http://h:99999"], "--otlp: http://h:99999: is no URL"),
    (["--otlp", "http://h" + "x" * 2000], "--otlp: http://hxx"),
    (["--otlp", "http://h", "--otlp", "http://h:80"], "--otlp: http://h:80: is given twice"),
    (["--otlp", "http://h", "--otlp-ca", "/x"], "--otlp-ca: http://h:80 uses no TLS"),
    (["--otlp-key", "/x", "--otlp", "http://h"], "--otlp-key: no endpoint uses TLS"),
    (["--otlp", "https://h", "--otlp-key", "/x"], "--otlp-key: /x: needs --otlp-cert"),
    (["--otlp", "http://h", "--otlp-protocol", "http/json"], "--otlp-protocol: http/json: "),
    (["--otlp", "http://h", "--otlp-timeout", "0"], "--otlp-timeout: 0: "),
    (["--otlp", "http://h", "--otlp-spool-size", "1M"], "--otlp-spool-size: needs --otlp-spool"),
    (["--otlp", "http://h", "--memory-limit", "64M"], "--memory-limit: needs --run-dir"),
    (["--otlp", "http://h", "--run-dir", "/run", "-m", "64M"], "--memory: not together with"),
    (["--otlp", "http://h", "--run-dir", "/run", "--ids", "0:0:0:0:0"], "--ids: has no user of"),
    (["--otlp", "http://h", "file"], "file: not an option"),
    ([a for i in range(17) for a in ("--otlp", f"http://h:{i + 1}")], "--otlp: http://h:17: too "),
]


@pytest.mark.parametrize("args,line", REFUSED, ids=[" ".join(r[0])[:40] for r in REFUSED])
def test_a_wrong_command_line_is_refused_in_one_line(args, line):
    p = send(*args)
    assert (p.returncode, p.stdout, p.stderr.count(b"\n")) == (2, b"", 1), said(p)
    assert p.stderr.decode().startswith(f"prof-send: error: {line}"), said(p)
    assert "pw" not in said(p)


# --- in a deployment ---

class Deployment:
    """prof-send as a launcher starts it, with tests/feed in place of prof-export."""

    def __init__(self, folder, *args, flags=(), uid=None):
        (folder / "export").mkdir(exist_ok=True)
        self.dir, self.args, self.flags, self.uid = folder, args, flags, uid

    def __enter__(self):
        self.life = os.pipe()
        ids = []
        user = os.getuid() if self.uid is None else self.uid
        if self.uid is not None:
            ids = ["--ids", f"0:0:0:0:0:{self.uid}"]
        self.feed = subprocess.Popen([f"{BUILD}/tests/feed", self.dir, str(user), *self.flags],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.p = subprocess.Popen([SEND, "-v", "--run-dir", self.dir, *ids, "--life-fd",
                                   str(self.life[0]), *map(str, self.args)],
                                  pass_fds=[self.life[0]], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=CLEAN)
        os.close(self.life[0])
        return self

    def __exit__(self, *_):
        for p in self.p, self.feed:
            p.kill()
            p.wait()
            for stream in p.stdin, p.stdout, p.stderr:
                if stream:
                    stream.close()
        os.close(self.life[1])

    def give(self, *requests, size=None):
        for r in requests:
            data = gzip.compress(r)
            self.feed.stdin.write(struct.pack("<III", len(data), size or len(r), 10) + data)
        self.feed.stdin.close()

    def end(self):
        out = self.feed.stdout.read().decode()
        _, err = self.p.communicate(timeout=30)
        return self.p.returncode, err.decode(), out


@pytest.mark.parametrize("protocol,receiver", BOTH)
def test_a_deployment_delivers_what_prof_export_sends(tmp_path, protocol, receiver):
    requests = [A, B, *noise(3, 500_000)]
    with receiver() as r, Deployment(tmp_path, "--otlp", r.url, "--otlp-protocol", protocol) as d:
        d.give(*requests)
        code, err, _ = d.end()
        assert code == 0, err
        assert r.taken == requests and r.wrong == []
        assert "5 requests, 5 delivered with 50 samples" in err


def test_a_user_of_its_own_also_has_tokens_and_spool_of_root(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "export").mkdir(mode=0o711)
    token = write(tmp_path / "token", "authorization: one\n")
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    with HttpReceiver() as r:
        url = r.url
    args = ["--otlp", url, "--otlp-protocol", "http/protobuf", "--otlp-header-file", token,
            "--otlp-spool", spool]
    uid = 2000000997  # of runs that the launcher starts: another one each time
    os.chown(tmp_path / "export", 0, 0)
    with Deployment(tmp_path, *args, "--drain", "0.2", uid=uid) as d:
        d.give(A, B)
        code, err, _ = d.end()
        assert code == 1 and "2 kept in the spool" in err, err
        assert spool.stat().st_uid == uid
        assert {f.stat().st_uid for f in spool.iterdir()} == {uid}
    with HttpReceiver(port=r.port) as r, Deployment(tmp_path, *args, uid=uid + 16) as d:
        assert r.wait(2)
        os.rename(write(tmp_path / "new", "authorization: two\n"), token)
        d.give(C)
        code, err, _ = d.end()
        assert code == 0, err
        assert r.taken == [A, B, C]
        assert [h["authorization"] for h in r.headers] == ["one", "one", "two"]


def test_prof_export_never_waits_for_a_receiver(tmp_path):
    requests = noise(60, 500_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with Deployment(tmp_path, "--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}",
                        "--drain", "0.5", "--memory-limit", "64M") as d:
            d.give(*requests)
            code, err, out = d.end()
        _, n, ms = out.split()
        assert code == 1 and int(n) == 60 and int(ms) < 15000
        # 4 MiB of them fit.
        assert "60 requests, 0 delivered" in err and "not delivered in time" in err
        assert " dropped from the full queue" in err and "(600 samples lost)" in err, err


@pytest.mark.parametrize("flag,words,status", [("-c", "", 75), ("-b", "another build", 75)])
def test_a_prof_export_that_breaks_off_or_is_another_build_ends_it(tmp_path, flag, words, status):
    with GrpcReceiver() as r, Deployment(tmp_path, "--otlp", r.url, flags=[flag]) as d:
        d.give(A)
        code, err, _ = d.end()
        assert code == status and words in err, err
        assert r.taken == ([A] if flag == "-c" else [])


def test_the_launchers_end_ends_it_and_sigterm_drains(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Deployment(tmp_path, "--otlp", url) as d:
            d.feed.stdin.flush()
            time.sleep(0.5)
            os.close(d.life[1])
            d.p.communicate(timeout=3)
            d.life = [None, os.open("/dev/null", os.O_RDONLY)]
    with GrpcReceiver() as r, Deployment(tmp_path, "--otlp", r.url) as d:
        data = gzip.compress(A)
        d.feed.stdin.write(struct.pack("<III", len(data), len(A), 1) + data)
        d.feed.stdin.flush()
        assert r.wait(1)
        d.p.send_signal(signal.SIGTERM)
        _, err = d.p.communicate(timeout=10)
        assert d.p.returncode == 0, err


# --- what it holds ---

def test_it_holds_no_right_and_no_memory_of_others_can_be_read(tmp_path):
    token = write(tmp_path / "token", "authorization: one\n")
    with GrpcReceiver() as r, Live("--otlp", r.url, "--otlp-header-file", token) as live:
        live.give(A)
        assert r.wait(1)
        pids = [live.p.pid]
        with open(f"/proc/{live.p.pid}/task/{live.p.pid}/children") as f:
            pids += map(int, f.read().split())
        assert len(pids) == 2
        for pid in pids:
            with open(f"/proc/{pid}/status") as f:
                fields = dict(line.split(":\t", 1) for line in f.read().splitlines()
                              if ":\t" in line)
            assert {fields[c] for c in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {"0" * 16}
            assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
        # The lender holds its socket, and a pipe that nobody reads.
        held = os.listdir(f"/proc/{pids[1]}/fd")
        assert len(held) == 4, held
        live.end()
