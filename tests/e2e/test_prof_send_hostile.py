# SPDX-License-Identifier: Apache-2.0
"""prof-send against hostile receivers and name servers, and against a prof-export that was taken
over. Whatever they do, memory is bounded and other receivers get their requests. Only loopback
addresses."""
import contextlib
import gzip
import re
import socket
import struct
import time

import pytest

from receivers import GrpcReceiver, H2Receiver, HttpReceiver, Listener, Names
from sending import A, B, Deployment, Live, delivered, said, send

FLOOD_S = 2
MEMORY_KIB = 20 << 10
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/x-protobuf\r\n"


class Raw(Listener):
    """`act` gets each connection after the headers of its first request."""

    def __init__(self, act):
        super().__init__()
        self.act = act

    def serve(self, peer):
        with contextlib.suppress(OSError), peer:
            peer.settimeout(FLOOD_S + 20)
            head = b""
            while b"\r\n\r\n" not in head:
                data = peer.recv(65536)
                if not data:
                    return
                head += data
            self.act(peer)
            peer.shutdown(socket.SHUT_WR)


def endless(first, again):
    def act(peer):
        peer.sendall(first)
        while True:
            peer.sendall(again)
    return act


def drip(peer):
    peer.sendall(HEAD + b"Content-Length: 99999\r\n\r\n")
    while True:
        peer.sendall(b"x")
        time.sleep(0.05)


def once(reply):
    return lambda peer: peer.sendall(reply)


def bomb(peer):
    data = gzip.compress(b"\0" * (64 << 20))
    peer.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
# What the receiver does, whether the request counts as delivered, and a part of the message.
HTTP = {
    "endless headers": (endless(HEAD, b"A: " + b"x" * 1000 + b"\r\n"), 0, "trying again"),
    "an endless header": (endless(HEAD + b"A: ", b"x" * 65536), 0, "or a header is too long"),
    "endless interim replies": (endless(b"", b"HTTP/1.1 103 x\r\nLink: x\r\n\r\n" * 99), 0,
                                "trying again"),
    "endless trailers": (endless(CHUNKED + b"0\r\n", b"A: " + b"x" * 1000 + b"\r\n"), 1, ""),
    "an endless size of a chunk": (endless(CHUNKED + b"1;", b"x" * 65536), 0, "timed out"),
    "a slow drip": (drip, 0, "timed out"),
    "64 MiB in gzip": (bomb, 1, ""),
    "a redirect to a file": (once(b"HTTP/1.1 302 x\r\nLocation: file:///etc/passwd\r\n\r\n"), -1,
                             "HTTP status 302"),
    "a redirect to another host": (once(b"HTTP/1.1 308 x\r\nLocation: http://127.0.0.2/\r\n\r\n"),
                                   -1, "HTTP status 308"),
    "no HTTP": (once(b"220 ftp ready\r\n"), 0, "HTTP/0.9"),
    "another protocol": (once(b"HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
                         0, "trying again"),
    "a zero byte": (once(b"HTTP/1.1 200 OK\r\nRetry-After: \0\r\n\r\n"), 0, "Nul byte"),
}


@pytest.mark.parametrize("case", HTTP)
def test_a_hostile_receiver_of_http_costs_little(case):
    act, takes, words = HTTP[case]
    timeout, drain = ("1", "0.2") if takes == 0 else ("5", "10")
    with Raw(act) as bad, HttpReceiver() as good:
        with Live("--otlp-protocol", "http/protobuf", "--otlp-timeout", timeout, "--otlp-drain",
                  drain, "--otlp", bad.url, "--otlp", good.url) as live:
            live.give(A)
            time.sleep(FLOOD_S)
            live.give(B)
            assert good.wait(2, 10) and bad.came
            assert peak_kib(live.p.pid) < MEMORY_KIB
            p = live.end()
    bad_line, good_line = p.stdout.decode().splitlines()
    assert good_line.endswith("2 requests, 2 delivered") and words in said(p), said(p)
    assert {1: "2 delivered", 0: "2 not delivered in time",
            -1: "2 refused by the receiver"}[takes] in bad_line, said(p)


def frames_of_nothing(stream):
    """HTTP/2 DATA frames without bytes."""
    stream.head()
    stream.flush()
    frames = (b"\0\0\0\0\0" + struct.pack(">I", stream.number)) * 9999
    while True:
        stream.sock.sendall(frames)


def endless_continuation(stream):
    def frame(kind, data):
        return (struct.pack(">I", len(data))[1:] + bytes([kind, 0]) +
                struct.pack(">I", stream.number) + data)
    stream.sock.sendall(frame(1, b"\x88"))
    while True:
        stream.sock.sendall(frame(9, b"\x00\x01a\x01b" * 99) * 99)


def pings(stream):
    while True:
        stream.conn.ping(b"12345678")
        stream.flush()


def large_trailers(stream):
    stream.head()
    stream.data(b"\0" * 5)
    stream.trailers(("grpc-status", "0"), *((f"a{i}", "x" * 1000) for i in range(400)))


@pytest.mark.parametrize("step", [frames_of_nothing, endless_continuation, pings, large_trailers])
def test_a_hostile_receiver_of_grpc_costs_little(step):
    with H2Receiver([step] * 99) as bad, GrpcReceiver() as good:
        # A flood may keep prof-send and the good receiver busy for seconds.
        with Live("--otlp-timeout", "2", "--otlp-drain", "5", "--otlp", bad.url, "--otlp",
                  good.url) as live:
            live.give(A)
            time.sleep(FLOOD_S)
            live.give(B)
            assert good.wait(2, 8)
            assert peak_kib(live.p.pid) < MEMORY_KIB
            p = live.end()
    bad_line, good_line = p.stdout.decode().splitlines()
    assert good_line.endswith("2 requests, 2 delivered"), said(p)
    assert bad_line.endswith("2 requests, 0 delivered, 2 not delivered in time"), said(p)


def test_a_reply_that_a_receiver_compressed_is_not_unpacked():
    def step(stream):
        data = gzip.compress(b"\0" * (64 << 20))
        stream.head(("grpc-encoding", "gzip"))
        stream.data(b"\1" + struct.pack(">I", len(data)) + data)
        stream.trailers(("grpc-status", "0"))
        return True
    with H2Receiver([step]) as r, Live("--otlp", r.url) as live:
        live.give(A)
        assert r.wait(1)
        assert peak_kib(live.p.pid) < MEMORY_KIB
        delivered(live.end(), 1)


def test_a_silent_server_of_names_delays_no_other_receiver(tmp_path):
    (tmp_path / "resolv.conf").write_text("nameserver 127.77.0.54\n")
    mount = f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec \"$@\""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent, GrpcReceiver() as good:
        silent.bind(("127.77.0.54", 53))
        with Live("--otlp-timeout", "0.5", "--otlp-drain", "0.5", "--otlp", "http://collector.test",
                  "--otlp", good.url, before=["unshare", "-m", "sh", "-c", mount, "-"]) as live:
            for i in range(4):
                began = time.monotonic()
                live.give(A)
                assert good.wait(i + 1) and time.monotonic() - began < 2
                time.sleep(0.4)
            began = time.monotonic()
            p = live.end()
            assert time.monotonic() - began < 3
    lines = p.stdout.decode().splitlines()
    assert lines[0].endswith("4 requests, 0 delivered, 4 not delivered in time"), said(p)
    assert lines[1].endswith("4 requests, 4 delivered"), said(p)
    assert "http://collector.test:80: Resolving timed out" in said(p)


def test_a_name_that_exists_again_is_found(tmp_path):
    (tmp_path / "resolv.conf").write_text(f"nameserver {Names.ADDRESS}\noptions timeout:1\n")
    mount = f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec \"$@\""
    with GrpcReceiver() as r, Live("--otlp", f"http://collector.test:{r.port}",
                                   before=["unshare", "-m", "sh", "-c", mount, "-"]) as live:
        live.give(A)
        time.sleep(1)
        assert not r.taken
        with Names():
            assert r.wait(1, 40)
        p = live.end()
    delivered(p, 1)
    assert "Could not resolve host: collector.test; trying again" in said(p)


def test_a_request_too_large_for_memory_delays_others_briefly(tmp_path):
    """A prof-export that was taken over sends a request that unpacks to 60 MiB."""
    with HttpReceiver() as r, Deployment(tmp_path, "--otlp", r.url, "--otlp-protocol",
                                         "http/protobuf", "--otlp-compression", "none",
                                         "--memory-limit", "64M", "--otlp-drain", "30") as d:
        d.give(b"\0" * (60 << 20), A)
        code, err, _ = d.end()
        assert code == 1 and r.taken == [A], err
        assert "2 requests, 1 delivered with 10 samples, 1 dropped for lack of memory" in err


def test_malformed_requests_are_lost_alone(tmp_path):
    with HttpReceiver() as r, Deployment(tmp_path, "--otlp", r.url, "--otlp-protocol",
                                         "http/protobuf", "--otlp-compression", "none") as d:
        for data, size in [(b"no gzip", 7), (gzip.compress(A), 1 << 20), (gzip.compress(A), 1),
                           (gzip.compress(A) + b"x", len(A)), (b"", 0),
                           (gzip.compress(A), (64 << 20) + 1)]:
            d.feed.stdin.write(struct.pack("<III", len(data), size, 1) + data)
        d.give(A)
        code, err, _ = d.end()
        assert code == 1 and r.taken == [A], err
        assert "7 requests, 1 delivered" in err and "1 too large, 5 damaged" in err, err


def test_a_flooding_input_by_hand_is_bounded():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        p = send("--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}", "-m", "1M",
                 "--otlp-drain", "0.5", requests=[B] * 20000)
    m = re.search(r"20000 requests, 0 delivered, (\d+) dropped from the full queue, (\d+) not "
                  r"delivered in time", said(p))
    assert p.returncode == 1 and m and int(m[1]) + int(m[2]) == 20000, said(p)
