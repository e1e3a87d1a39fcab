# SPDX-License-Identifier: Apache-2.0
"""Running prof-send, by hand and as a launcher starts it. Only loopback addresses."""
import contextlib
import gzip
import os
import random
import struct
import subprocess
import time

from conftest import BUILD
from receivers import GrpcReceiver, HttpReceiver, reply

SEND = f"{BUILD}/prof-send"
# The environment of the tests may name proxies and receivers.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.lower().endswith("_proxy") and not k.startswith("OTEL_")}
A, B, C = b"first", b"second" * 1000, b""
BOTH = [("grpc", GrpcReceiver), ("http/protobuf", HttpReceiver)]


def frames(*requests):
    return b"".join(struct.pack(">I", len(r)) + r for r in requests)


def noise(n, size, seed=1):
    """Requests that do not compress."""
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


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def slow(seconds):
    def step(handler):
        time.sleep(seconds)
        with contextlib.suppress(OSError):
            reply(handler, 200)
    return step


class Live:
    """prof-send in the background; the test decides when requests are written."""

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
