# SPDX-License-Identifier: Apache-2.0
"""prof-send's queues, its spool, and its place in a deployment. Only loopback addresses."""
import contextlib
import gzip
import os
import re
import signal
import socket
import stat
import struct
import threading
import time

import pytest

from receivers import GrpcReceiver, HttpReceiver, reply
from sending import A, B, BOTH, C, Deployment, Live, delivered, noise, said, send, slow, write


# --- queues ---

def test_a_dead_receiver_delays_no_other_one():
    with socket.create_server(("127.0.0.1", 0)) as silent, GrpcReceiver() as good:
        t = time.monotonic()
        p = send("--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}", "--otlp", good.url,
                 "--otlp-drain", "1.5", requests=[A, B, C])
        lines = p.stdout.decode().splitlines()
        assert lines[0].endswith("3 requests, 0 delivered, 3 not delivered in time")
        assert lines[1].endswith("3 requests, 3 delivered")
        assert good.times[-1] - t < 1.4 and p.returncode == 1


def test_a_full_queue_drops_the_oldest_and_counts_them():
    requests = noise(40, 100_000)
    with HttpReceiver() as r:
        port = r.port
    # No receiver listens at first: the queue of 1 MiB keeps the newest ten.
    with Live("--otlp", f"http://127.0.0.1:{port}", "--otlp-protocol", "http/protobuf", "-m", "1M",
              "--otlp-drain", "1") as live:
        writer = threading.Thread(target=live.give, args=requests)
        writer.start()
        writer.join()
        with HttpReceiver(port=port) as r:
            assert r.wait(5)
            p = live.end()
        n = len(r.taken)
        # The oldest one may be in flight while others are dropped.
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
    p = send("--otlp", url, "--otlp-spool", spool, "--otlp-drain", "0.3", requests=requests)
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
            # All are in the spool or were delivered.
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
    send(*args, "--otlp-drain", "0.2", requests=requests)
    files = sorted(spool.iterdir())
    files[0].write_bytes(files[0].read_bytes()[:100])
    data = bytearray(files[1].read_bytes())
    data[-1] ^= 1
    files[1].write_bytes(data)
    files[2].write_bytes(b"not ours")
    (spool / (files[3].name + ".part")).write_bytes(b"half")
    (spool / "notes.txt").write_text("mine")
    for i, make in enumerate([lambda path: os.symlink("/etc/passwd", path), os.mkfifo,
                              lambda path: os.mknod(path, stat.S_IFSOCK | 0o600)]):
        make(spool / (files[3].name[:17] + f"{i}".rjust(16, "f") + ".otlp"))
    with HttpReceiver(port=r.port) as r:
        p = send(*args, requests=[A])
        delivered(p, 3, 10, status=1)
        assert "7 damaged" in said(p) and "1 files do not belong to prof-send" in said(p)
        assert r.taken == [requests[3], requests[4], A]
    assert [f.name for f in spool.iterdir()] == ["notes.txt"]


def test_the_spool_is_bounded_and_keeps_the_newest(spool):
    requests = noise(30, 100_000)
    with HttpReceiver() as r:
        args = ["--otlp", r.url, "--otlp-protocol", "http/protobuf", "--otlp-spool", spool]
    p = send(*args, "--otlp-spool-size", "1M", "--otlp-drain", "0.3", requests=requests)
    kept = len(list(spool.iterdir()))
    assert 9 <= kept <= 11
    assert f"{30 - kept} dropped from the full spool, {kept} kept in the spool" in said(p)
    with HttpReceiver(port=r.port) as r:
        delivered(send(*args, requests=[]), kept)
        assert r.taken[1:] == requests[1 - kept:]


def test_a_full_disk_is_reported_once_and_memory_is_used(spool):
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


def test_endpoints_share_a_spool_and_removed_ones_are_reported(spool):
    with GrpcReceiver() as one, GrpcReceiver() as two:
        urls = one.url, two.url
    ports = one.port, two.port
    p = send("--otlp", urls[0], "--otlp", urls[1], "--otlp-spool", spool, "--otlp-drain", "0.2")
    assert len(list(spool.iterdir())) == 2, said(p)
    with GrpcReceiver(port=ports[0]) as r:
        p = send("--otlp", urls[0], "--otlp-spool", spool, requests=[])
        delivered(p, 1)
        assert r.taken == [A] and "1 requests in it are for endpoints that are not given" in said(p)
    with GrpcReceiver(port=ports[1]) as r:
        delivered(send("--otlp", urls[1], "--otlp-spool", spool, requests=[]), 1)
        assert r.taken == [A]


def test_leftovers_of_other_endpoints_count_in_the_spools_size(spool):
    """The oldest of them go first."""
    def keep(port, requests, size):
        return send("--otlp", f"http://127.0.0.1:{port}", "--otlp-spool", spool, "--otlp-drain",
                    "0.1", "--otlp-spool-size", size, requests=requests)
    for port in 1, 2:
        keep(port, noise(2, 300_000, port), "8M")
    old = sorted(spool.iterdir(), key=lambda f: f.stat().st_mtime_ns)
    p = keep(3, noise(2, 300_000, 3), "1M")
    left = {f.name for f in spool.iterdir()}
    assert sum(f.stat().st_size for f in spool.iterdir()) <= 1 << 20
    assert [f.name in left for f in old] == [False, False, False, True], said(p)
    assert "2 kept in the spool" in said(p) and said(p).count("is full; its oldest requests") == 1
    assert "3 of 4 requests for endpoints that are not given were dropped" in said(p), said(p)


def test_an_unreadable_request_is_skipped(spool):
    me = ["setpriv", "--reuid", "65534", "--clear-groups"]
    spool.parent.chmod(0o755)
    os.chown(spool, 65534, -1)
    with GrpcReceiver() as r:
        url = r.url
    args = ["--otlp", url, "--otlp-spool", spool]
    send(*args, "--otlp-drain", "0.1", requests=[A, B], before=me)
    first = min(spool.iterdir())
    os.chown(first, 0, 0)
    with GrpcReceiver(port=r.port) as r:
        p = send(*args, requests=[C], before=me)
        delivered(p, 2)
        assert r.taken == [B, C] and "1 requests in it cannot be read and are skipped" in said(p)
    assert list(spool.iterdir()) == [first]


# --- in a deployment ---

@pytest.mark.parametrize("protocol,receiver", BOTH)
def test_a_deployment_delivers_the_requests_of_prof_export(tmp_path, protocol, receiver):
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
    with Deployment(tmp_path, *args, "--otlp-drain", "0.2", uid=uid) as d:
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


def test_a_folder_that_is_not_for_the_spool_alone_is_not_given_away(tmp_path):
    def start(folder):
        p = send("--run-dir", tmp_path, "--ids", "0:0:0:0:0:2000000997", "--otlp", "http://x:1",
                 "--otlp-spool", folder)
        assert p.returncode == 1 and p.stderr.count(b"\n") == 1
        return said(p)
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    (spool / "notes").write_text("mine")
    assert "holds files that are not prof-send's" in start(spool)
    assert (spool.stat().st_uid, (spool / "notes").stat().st_uid) == (0, 0)
    # Also by another name.
    (tmp_path / "link").symlink_to("/srv")
    for folder in "/etc/ssl", "/srv", tmp_path / "link":
        assert "is a folder of the system" in start(folder)
        assert os.stat(folder).st_uid == 0


def test_prof_export_never_waits_for_a_receiver(tmp_path):
    requests = noise(60, 500_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with Deployment(tmp_path, "--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}",
                        "--otlp-drain", "0.5", "--memory-limit", "64M") as d:
            d.give(*requests)
            code, err, out = d.end()
        _, n, ms = out.split()
        assert code == 1 and int(n) == 60 and int(ms) < 15000
        # 4 MiB of requests fit.
        assert "60 requests, 0 delivered" in err and "not delivered in time" in err
        assert " dropped from the full queue" in err and "(600 samples lost)" in err, err


def test_a_slow_receiver_under_load_is_bounded_and_all_is_counted(tmp_path):
    """400 requests of 100 KB each within moments, for a receiver that takes ten a second."""
    def step(handler):
        time.sleep(0.1)
        # The last one may be given up.
        with contextlib.suppress(OSError):
            reply(handler, 200)
        return True
    requests = noise(400, 100_000)
    with HttpReceiver([step] * 400) as r, \
            Deployment(tmp_path, "--otlp", r.url, "--otlp-protocol", "http/protobuf",
                       "--memory-limit", "64M", "--otlp-drain", "2") as d:
        d.give(*requests)
        assert r.wait(10)
        with open(f"/proc/{d.p.pid}/smaps_rollup", encoding="ascii") as f:
            anonymous = int(re.search(r"^Anonymous:\s+(\d+)", f.read(), re.M)[1])
        code, err, _ = d.end()
    # 4 MiB of requests, and 24 for everything else.
    assert code == 1 and anonymous < 28 << 10, (anonymous, err)
    m = re.search(r"400 requests, (\d+) delivered with \d+ samples, (\d+) dropped from the full "
                  r"queue, (\d+) not delivered in time", err)
    assert m and sum(map(int, m.groups())) == 400, err
    assert len(r.taken) - 1 <= int(m[1]) <= len(r.taken) and int(m[3]) <= 42
    # In order, the newest ones last.
    assert r.taken == [x for x in requests if x in r.taken]


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
