# SPDX-License-Identifier: Apache-2.0
"""prof-send against strict receivers, which misbehave on order. Only loopback addresses."""
import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import time

import h2.errors
import pytest

from receivers import (Authority, GrpcReceiver, H2Receiver, HttpReceiver, Names, Proxy,
                       date_in, field, grpc_error, grpc_tls_of, partial, reply, retry_info, status,
                       tls_of)
from sending import A, B, BOTH, C, Live, delivered, frames, said, send, slow, write


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
        p = send(*to, "--otlp-drain", "0.3")
        delivered(p, 0, 1, status=1)
        assert r.taken == [A, B]


def gave_up(p, seconds):
    """A warning at the first failure, and one line at the end, with the reason and a remedy."""
    warning, error = p.stderr.decode(errors="replace").splitlines()
    assert warning.startswith("prof-send: warning: http") and warning.endswith("; trying again")
    reason = warning.removeprefix("prof-send: warning: ").removesuffix("; trying again")
    assert re.fullmatch(r"prof-send: error: .*; gave up after " + re.escape(seconds) +
                        r" s, \d+ of its requests remain; check the receiver, or wait longer "
                        r"with --otlp-drain", error), error
    assert error.split(": ")[2] == reason.split(": ")[0], "the same endpoint"


@pytest.mark.parametrize("protocol,receiver", BOTH)
@pytest.mark.parametrize("case,words", [("name", "no alternative certificate subject name "
                                                   "matches"), ("root", "unable to get local "
                                                                     "issuer certificate")])
def test_a_wrong_name_or_an_unknown_root_gets_no_byte(authority, protocol, receiver, case, words):
    pair = authority.other if case == "name" else authority.good
    tls = (grpc_tls_of if receiver is GrpcReceiver else tls_of)(*pair)
    roots = ["--otlp-ca", authority.root] if case == "name" else []
    with receiver(tls=tls) as r:
        p = send("--otlp", r.url, "--otlp-protocol", protocol, *roots, "--otlp-drain", "0.3")
        delivered(p, 0, 1, status=1)
        assert words in said(p)
        gave_up(p, "0.3")
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
        # The URL for one signal is used unchanged, and takes precedence.
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
    p = send("--otlp", "http://x", env={"OTEL_EXPORTER_OTLP_HEADERS": "a=b,bad"})
    assert p.returncode == 1 and said(p) == ("prof-send: error: OTEL_EXPORTER_OTLP_HEADERS: header "
                                             "2: is not a header; write name=value,name=value\n")
    p = send(env={"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    assert p.returncode == 2 and b"OTEL_EXPORTER_OTLP_PROTOCOL: is not a protocol" in p.stderr


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
        p = send("--otlp", f"http://collector.test:{r.port}", "--otlp-drain", "10",
                 before=["unshare", "-m", "sh", "-c", mount, "-"])
        delivered(p, 1)
        assert r.taken == [A] and ("udp", 1) in names.asked and ("tcp", 1) in names.asked


# --- temporary failures ---

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
    # A server that shuts down ends its streams like this.
    def breaks_off(stream):
        stream.head(end=True)
        stream.flush()
    with H2Receiver([breaks_off]) as r:
        delivered(send("--otlp", r.url), 1)
        assert len(r.times) == 2 and r.taken == [A]
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


def test_refused_streams_cost_little():
    def refuse(stream):
        stream.conn.reset_stream(stream.number, h2.errors.ErrorCodes.REFUSED_STREAM)
        stream.flush()
        tried.append(stream.number)
    tried = []
    with H2Receiver([refuse] * 60) as r:
        p = send("--otlp", r.url, "--otlp-drain", "1.5")
        delivered(p, 0, 1, status=1)
        assert "the receiver refuses the stream" in said(p)
    assert 2 <= len(tried) <= 8, tried


def test_a_refusal_is_no_recovery():
    plan = [status(503), status(400), status(400)]
    with HttpReceiver(plan) as r:
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf", requests=[A, B])
        assert p.returncode == 1 and "takes requests again" not in said(p), said(p)
    with HttpReceiver(plan) as r:
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf", requests=[A, B, A])
        assert said(p).count("takes requests again") == 1, said(p)


def test_a_receiver_that_never_answers_costs_one_attempt_its_time():
    with HttpReceiver([slow(3)]) as r:
        t = time.monotonic()
        p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-timeout", "0.5")
        delivered(p, 1)
        assert b"Operation timed out" in p.stderr and time.monotonic() - t < 3
    with socket.create_server(("127.0.0.1", 0)) as silent:
        t = time.monotonic()
        p = send("--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}", "--otlp-drain", "1")
        delivered(p, 0, 1, status=1)
        assert "1 not delivered in time" in said(p) and 0.9 < time.monotonic() - t < 5


@pytest.mark.parametrize("host,words", [("no-such-host.invalid", "Could not resolve host"),
                                        ("127.0.0.1:9", "Connection refused")])
def test_an_unknown_name_and_a_closed_port_are_named(host, words):
    p = send("--otlp", f"http://{host}", "--otlp-drain", "2")
    delivered(p, 0, 1, status=1)
    # Without a network, names are not resolved.
    assert words in said(p) or "Resolving timed out" in said(p)
    gave_up(p, "2")


# --- permanent failures ---

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

def test_a_token_is_sent_and_never_shown(tmp_path):
    token = write(tmp_path / "token", "# of the gate\nAuthorization: Bearer s3cr3t-value\n\nX-Scope"
                                      "-OrgID:  team 1 \n")
    with GrpcReceiver() as r:
        p = send("--otlp", r.url, "--otlp-header-file", token)
        delivered(p, 1)
        assert r.headers[0]["authorization"] == "Bearer s3cr3t-value"
        assert r.headers[0]["x-scope-orgid"] == "team 1"
    echo = [status(400, field(2, b"no access with Bearer s3cr3t-value"))]
    # A long message is cut, maybe within the token.
    wrong = [grpc_error(3, "S3CR3T-VALUE is wrong"),
             grpc_error(3, "x" * 150 + "s3cr3t-value is wrong")]
    with HttpReceiver(echo) as r, H2Receiver(wrong[:1]) as r2, H2Receiver(wrong[1:]) as r3:
        p = send("-v", "--otlp-header-file", token, "--otlp", r.url, "--otlp-protocol",
                 "http/protobuf", "--otlp", r2.url, "--otlp", r3.url)
        assert p.returncode == 1 and "x" * 150 + "*" in said(p)
        assert "s3cr3t" not in said(p).lower() and "no access with ******" in said(p), said(p)


def test_a_refusal_of_a_token_is_not_quoted(tmp_path):
    """It may repeat the token in any form."""
    token = write(tmp_path / "token", "Authorization: Bearer s3cr3t-value\n")
    other = "c3Izcy1lb2Rl"
    for code, name in (7, "PERMISSION_DENIED"), (16, "UNAUTHENTICATED"):
        with H2Receiver([grpc_error(code, other)] * 2) as r:
            p = send("--otlp", r.url, "--otlp-header-file", token)
            assert f"{name}: its text is not shown" in said(p) and other not in said(p), said(p)
            assert f"{name}: {other}" in said(send("--otlp", r.url))
    for code in 401, 403, 407:
        with HttpReceiver([status(code, field(2, other.encode()))]) as r:
            p = send("--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-header-file",
                     token)
            assert f"HTTP status {code}: its text is not shown" in said(p), said(p)
            assert other not in said(p)


def test_a_token_sent_without_encryption_is_reported(tmp_path):
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
    assert p.stderr.decode() == (f"prof-send: error: --otlp-header-file: {token}: others can read "
                                 "it; run chmod 600\n")


@pytest.mark.parametrize("text,line,words", [
    ("a: b\nsecret-value\n", 2, "is not a header"), ("a b: secret-value\n", 1, "has no valid name"),
    ("a: secret-\x01value\n", 1, "has control characters"),
    ("Content-Type: secret-value\n", 1, "sets itself"),
    ("grpc-timeout: secret-value\n", 1, "sets itself"),
    ("\n" * 3 + "a: secret-value\n" * 65, 68, "exceeds the limit of 64"),
])
def test_a_bad_header_file_is_refused_without_showing_it(tmp_path, text, line, words):
    token = write(tmp_path / "token", text)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", token)
    assert (p.returncode, p.stderr.count(b"\n")) == (1, 1)
    assert p.stderr.decode().startswith("prof-send: error: --otlp-header-file: "
                                        f"{token}: line {line}: "), said(p)
    assert words in said(p) and "secret" not in said(p)


def test_token_files_that_are_missing_or_of_others_are_refused(tmp_path):
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", tmp_path / "none")
    assert p.returncode == 1 and b"does not exist" in p.stderr
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", tmp_path)
    assert p.returncode == 1 and b"is not a regular file" in p.stderr
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", fifo)
    assert p.returncode == 1 and b"is not a regular file" in p.stderr
    token = write(tmp_path / "token", "a: b\n", 0o640)
    os.chown(token, 12345, 0)
    p = send("--otlp", "http://127.0.0.1:1", "--otlp-header-file", token)
    assert p.returncode == 1 and b"belongs to another user" in p.stderr


def test_a_token_that_rotates_is_followed(tmp_path):
    token = write(tmp_path / "token", "authorization: one\n")
    with GrpcReceiver() as r, Live("--otlp", r.url, "--otlp-header-file", token) as live:
        live.give(A)
        assert r.wait(1)
        # Replaced by another file under its name, changed in place, and by a link to another
        # folder's file.
        os.rename(write(tmp_path / "new", "authorization: two\n"), token)
        n = len(r.taken)
        live.give(A)
        assert r.wait(n + 1) and r.headers[-1]["authorization"] == "two"
        token.write_text("authorization: three\n")
        live.give(A)
        assert r.wait(n + 2) and r.headers[-1]["authorization"] == "three"
        # If the file becomes unusable, the last token stays in force; this is logged once.
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


def lender_of(live):
    with open(f"/proc/{live.p.pid}/task/{live.p.pid}/children") as f:
        return int(f.read())


def test_a_token_is_followed_while_another_file_is_missing(tmp_path, authority):
    token = write(tmp_path / "token", "authorization: one\n")
    roots = write(tmp_path / "roots.pem", authority.root.read_text())
    with GrpcReceiver(tls=grpc_tls_of(*authority.good)) as r, \
            Live("--otlp", r.url, "--otlp-header-file", token, "--otlp-ca", roots) as live:
        live.give(A)
        assert r.wait(1) and r.headers[-1]["authorization"] == "one"
        roots.unlink()
        token.write_text("authorization: two\n")
        live.give(A)
        assert r.wait(2) and r.headers[-1]["authorization"] == "two"
        write(roots, authority.root.read_text())
        live.give(A)
        assert r.wait(3) and r.headers[-1]["authorization"] == "two"
        write(roots, "no certificate")
        live.give(A)
        assert r.wait(4)
        delivered(p := live.end(), 4)
        assert p.stderr.decode() == (
            f"prof-send: warning: --otlp-ca: {roots}: does not exist; name another file; the last "
            f"contents are still used\nprof-send: warning: --otlp-ca: {roots}: has no valid "
            "certificate in PEM format; name another file, or convert it with openssl x509; the "
            "last contents are still used\n")


@pytest.mark.parametrize("option,words", [
    ("ca", "has no valid certificate in PEM format"), ("cert", "has no valid certificate in PEM"),
    ("key", "has no valid private key in PEM format"), ("password", "has a password"),
    ("pair", "is not the key of the certificate"),
])
def test_certificates_and_keys_that_cannot_be_used_are_refused(tmp_path, authority, option, words):
    certificate, key = authority.client
    bad = write(tmp_path / "bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n")
    if option == "password":
        subprocess.run(["openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:x", "-out",
                        bad], check=True)
    args = {"ca": ["--otlp-ca", bad], "cert": ["--otlp-cert", bad, "--otlp-key", key],
            "pair": ["--otlp-cert", certificate, "--otlp-key", authority.good[1]]
            }.get(option, ["--otlp-cert", certificate, "--otlp-key", bad])
    p = send("--otlp", "https://127.0.0.1:1", *args)
    name, file = {"ca": args, "cert": args[:2]}.get(option, args[2:])
    assert (p.returncode, p.stdout) == (1, b"")
    assert p.stderr.decode().startswith(f"prof-send: error: {name}: {file}: {words}"), said(p)
    assert p.stderr.count(b"\n") == 1


def test_check_reports_each_error_of_options_and_files(tmp_path):
    token = write(tmp_path / "token", "a: b\n", 0o644)
    spool = tmp_path / "spool"
    spool.mkdir()
    p = send("--check", "--otlp-header-file", token, "--otlp", "ftp://x", "--otlp",
             "http://127.0.0.1:1", "--otlp", "https://127.0.0.1:2", "--otlp-ca", "/dev/null",
             "--otlp", "http://x:1", "--otlp-timeout", "0", "--otlp-spool", spool / "none")
    assert p.returncode == 2
    assert [x.split(": ")[2:4] for x in p.stderr.decode().splitlines()] == [
        ["--otlp-timeout", "0"], ["--otlp", "ftp://x"], ["--otlp-spool", str(spool / "none")],
        ["--otlp-header-file", str(token)], ["--otlp-ca", "/dev/null"]], said(p)
    token.chmod(0o600)
    p = send("--check", "--otlp-header-file", token, "--otlp", "http://x:1", "--otlp-spool", spool)
    assert (p.returncode, said(p), os.listdir(spool)) == (0, "", [])


def test_a_lender_that_is_late_once_lends_again(tmp_path):
    token = write(tmp_path / "token", "authorization: one\n")
    with GrpcReceiver() as r, Live("--otlp", r.url, "--otlp-header-file", token) as live:
        live.give(A)
        assert r.wait(1)
        os.kill(lender_of(live), signal.SIGSTOP)
        token.write_text("authorization: two\n")
        live.give(A)
        assert r.wait(2) and r.headers[-1]["authorization"] == "one"
        # It is not waited for again.
        t = time.monotonic()
        live.give(A)
        assert r.wait(3) and time.monotonic() - t < 0.9
        os.kill(lender_of(live), signal.SIGCONT)
        until = time.monotonic() + 10
        while r.headers[-1]["authorization"] == "one" and time.monotonic() < until:
            n = len(r.taken)
            live.give(A)
            assert r.wait(n + 1)
        assert r.headers[-1]["authorization"] == "two"
        p = live.end()
        assert p.stderr.decode() == (f"prof-send: warning: --otlp-header-file: {token}: its file "
                                     "system does not answer; move it to another one; the last "
                                     "contents are still used\n")


# --- the input ---

def test_truncated_or_foreign_input_is_reported():
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
    (["--otlp", "http://user:pw@h"], "--otlp: endpoint 1: the URL has a user or password"),
    (["--otlp", "http://h?token=pw"], "--otlp: endpoint 1: the URL has a query"),
    (["--otlp", "http://"], "--otlp: http://: is not a URL"),
    (["--otlp", "http://h:99999"], "--otlp: http://h:99999: is not a URL"),
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


# --- rights and memory ---

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
        # The lender holds its socket, and a pipe that is never read.
        held = os.listdir(f"/proc/{pids[1]}/fd")
        assert len(held) == 4, held
        live.end()
