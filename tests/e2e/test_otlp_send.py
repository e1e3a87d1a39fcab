# SPDX-License-Identifier: Apache-2.0
"""profpipe record and report with --otlp: what receivers get, and what is reported about the rest.
Only loopback addresses."""
import json
import os
import re
import socket
import time

import pytest

import receivers
from conftest import profpipe
from otlp_rules import assert_same, clocks, lost, profiles, requests, samples
from receivers import GrpcReceiver, HttpReceiver
from running import Run, children, kill_tool
from test_otlp_live import report

SHORT = ["--window", "0.4", "--window-jitter", "0"]
# It ends after this much cpu time, so that it has samples on a busy machine.
WORK = "import time\nwhile time.process_time() < %s: pass\n"
RECEIVERS = [(GrpcReceiver, []), (HttpReceiver, ["--otlp-protocol", "http/protobuf"])]


def work(seconds):
    return ["/usr/bin/python3", "-c", WORK % seconds]


def decoded(receiver):
    """The requests that a receiver accepted, checked against all rules."""
    assert receiver.wrong == []
    return requests(b"".join(len(r).to_bytes(4, "big") + r for r in receiver.taken))


def count(rs):
    return sum(len(s.timestamps_unix_nano) for _, _, p in profiles(rs) for s in p.samples)


def told(path):
    return json.loads(path.read_text())["otlp"]


def one_line(stderr):
    return [x for x in stderr.splitlines() if x.startswith("profpipe: error: ")]


@pytest.mark.parametrize("receiver,how", RECEIVERS)
def test_a_server_gets_the_samples_of_the_recording(tmp_path, receiver, how):
    out, summary = tmp_path / "run.prof", tmp_path / "summary.json"
    with receiver() as r:
        p = profpipe("record", "-F", "199", *SHORT, "-o", out, "--summary", summary,
                     "--otlp", r.url, *how, "--", *work(1.5))
        assert p.returncode == 0, p.stderr
        rs = decoded(r)
    s = told(summary)
    assert len(rs) == s["requests"] == s["delivered"] >= 4 and not lost(rs)
    n, frames = assert_same(rs, report(out, "text").decode(errors="replace"),
                            clocks(out.read_bytes()))
    assert n == s["samples"] == s["delivered_samples"] > 50 and frames > n
    assert f"OTLP: {len(rs)} requests with {n} samples; {len(rs)} delivered" in p.stderr


@pytest.mark.parametrize("ending", [None, ".folded"])
def test_two_endpoints_get_the_same_with_and_without_a_file(tmp_path, ending):
    summary = tmp_path / "summary.json"
    out = [] if ending is None else ["-o", tmp_path / f"out{ending}"]
    with GrpcReceiver() as a, HttpReceiver() as b:
        p = profpipe("record", "-F", "199", *SHORT, *out, "--summary", summary, "--otlp", a.url,
                     "--otlp", b.url, "--otlp-protocol", "http/protobuf", "--", *work(1),
                     cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        assert a.taken == b.taken
        rs = decoded(a)
        assert decoded(b) and count(rs) == told(summary)["samples"] > 20
    assert told(summary)["delivered"] == 2 * len(rs)
    wanted = {"summary.json"} | ({f"out{ending}"} if ending else set())
    assert set(os.listdir(tmp_path)) == wanted
    if ending:
        text = (tmp_path / f"out{ending}").read_text()
        assert sum(int(x.rsplit(" ", 1)[1]) for x in text.splitlines()) == count(rs)


def test_a_recording_is_sent(tmp_path):
    out = tmp_path / "run.prof"
    p = profpipe("record", "-F", "199", "-o", out, "--", *work(1))
    assert p.returncode == 0, p.stderr
    with GrpcReceiver() as r:
        p = profpipe("report", out, "--otlp", r.url)
        assert p.returncode == 0 and p.stdout == "", p.stderr
        rs = decoded(r)
        text = report(out, "text").decode(errors="replace")
        n, _ = assert_same(rs, text, clocks(out.read_bytes()), exact=True)
        assert f"{len(rs)} request{'s' if len(rs) > 1 else ''}, {len(rs)} delivered\n" in p.stderr
        assert n == count(requests(report(out, "otlp"))) > 20


@pytest.mark.parametrize("args,status,words", [
    (["--otlp", "ftp://localhost"], 2, "--otlp: ftp://localhost"),
    (["--otlp", "http://127.0.0.1:1", "-o", "x.txt"], 2, "--otlp: not together with -o"),
    (["--otlp", "http://127.0.0.1:1", "--otlp-header-file", "/no/such"], 1, "/no/such: "),
    (["--otlp", "URL"], 1, "run.prof: some requests were not delivered;"),
])
def test_a_report_that_is_not_sent_says_why_in_one_line(tmp_path, args, status, words):
    out = tmp_path / "run.prof"
    p = profpipe("record", "-q", "-o", out, "--", *work(0.5))
    assert p.returncode == 0, p.stderr
    refuse = receivers.status(400)
    with HttpReceiver([refuse] * 9) as r:
        args = [a.replace("URL", r.url) for a in args]
        p = profpipe("report", "-q", "run.prof", *args, "--otlp-protocol", "http/protobuf",
                     cwd=tmp_path)
    assert p.returncode == status and words in p.stderr, p.stderr
    assert len(one_line(p.stderr)) == 1 and p.stdout == "", p.stderr
    assert os.listdir(tmp_path) == ["run.prof"]


def test_a_report_to_a_silent_receiver_ends_in_time_with_a_message(tmp_path):
    out = tmp_path / "run.prof"
    p = profpipe("record", "-q", "-o", out, "--", *work(0.5))
    assert p.returncode == 0, p.stderr
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        p = profpipe("report", "-q", out, "--otlp", dead, "--otlp-drain", "1.5")
        assert 1.4 < time.monotonic() - began < 10
    assert p.returncode == 1 and p.stdout == ""
    assert re.fullmatch(rf"profpipe: error: {dead}: no answer; gave up after 1\.5 s, [1-9]\d* of "
                        r"its requests remain; check the receiver, or wait longer with "
                        r"--otlp-drain\n", p.stderr), p.stderr


def test_the_end_of_a_run_lasts_as_long_as_is_wanted(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        p = profpipe("record", "-F", "99", *SHORT, "--otlp", dead, "--otlp-drain", "0.2", "--",
                     *work(0.5))
        assert p.returncode == 1 and time.monotonic() - began < 5, p.stderr
    assert "requests were not delivered" in p.stderr


def test_a_receiver_that_comes_back_gets_all(tmp_path):
    summary = tmp_path / "summary.json"
    with GrpcReceiver() as r:
        with Run("-F", "99", *SHORT, "--summary", summary, "--otlp", r.url, "--",
                 *work(2.5)) as run:
            assert r.wait(1)
            r.server.stop(0).wait()
            time.sleep(0.7)
            with GrpcReceiver(port=r.port) as again:
                assert run.p.wait(60) == 0, run.p.stderr.read()
                n = count(decoded(r)) + count(decoded(again))
                assert again.taken
    s = told(summary)
    assert n >= s["samples"] == s["delivered_samples"] > 50


def test_a_killed_prof_send_is_started_again_and_the_rest_is_counted(tmp_path):
    out, summary = tmp_path / "out.folded", tmp_path / "summary.json"
    with GrpcReceiver() as r:
        with Run("-F", "99", *SHORT, "-o", out, "--summary", summary, "--otlp", r.url, "--",
                 *work(2.5)) as run:
            assert r.wait(2)
            kill_tool(run.p.pid, "prof-send")
            before = len(r.taken)
            status = run.p.wait(60)
            err = run.p.stderr.read()
        rs = decoded(r)
        assert len(r.taken) >= before + 2, err
    s = told(summary)
    assert "prof-send ended (signal 9 (Killed)); restarting it" in err
    assert s["restarts"] == 1, err
    missing = s["dropped_away"] + s["dropped_slow"] + s["unknown"] + s["lost"]
    assert s["delivered"] + missing == s["requests"]
    assert s["delivered"] <= len(rs) <= s["requests"] and len(rs) + missing >= s["requests"]
    assert status == (1 if missing else 0), err
    assert len(one_line(err)) == (1 if missing else 0)
    # The output is complete.
    text = out.read_text()
    assert sum(int(x.rsplit(" ", 1)[1]) for x in text.splitlines()) == s["samples"] >= count(rs)


@pytest.mark.parametrize("ending", [pytest.param(None, marks=pytest.mark.check_all), ".folded"])
def test_a_killed_prof_export_sends_nothing_twice(tmp_path, ending):
    out, summary = tmp_path / "out.folded", tmp_path / "summary.json"
    with GrpcReceiver() as r:
        with Run("-F", "99", *SHORT, *(["-o", out] if ending else []), "--summary", summary,
                 "--otlp", r.url, "--", *work(2.5)) as run:
            assert r.wait(3)
            kill_tool(run.p.pid, "prof-export")
            run.p.wait(60)
            err = run.p.stderr.read()
        rs = decoded(r)
    arrived = [x[:5] for x in samples(rs, 0)]
    assert len(arrived) == len(set(arrived))
    all_of_it = json.loads(summary.read_text())
    assert all_of_it["restarts"]["prof-export"] == 1, err
    s = all_of_it["otlp"]
    assert all_of_it["samples"] - s["outside"] <= len(arrived) <= all_of_it["samples"]
    assert s["outside"] < 150 < all_of_it["samples"], err
    # The receiver is told only of the run's losses: the samples that it has are not lost.
    assert sum(lost(rs).values()) <= all_of_it["lost_total"], err
    if ending:
        assert sum(int(x.rsplit(" ", 1)[1]) for x in out.read_text().splitlines()) \
            == all_of_it["samples"]


def test_a_dead_endpoint_is_reported_and_delays_the_end_little(tmp_path):
    out, summary = tmp_path / "out.folded", tmp_path / "summary.json"
    with socket.create_server(("127.0.0.1", 0)) as silent, GrpcReceiver() as good:
        dead = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        p = profpipe("record", "-F", "99", *SHORT, "-o", out, "--summary", summary, "--otlp", dead,
                     "--otlp", good.url, "--", *work(1))
        assert time.monotonic() - began < 20
        assert p.returncode == 1
        s, n = told(summary), len(decoded(good))
        assert n == s["requests"] == s["delivered"] == s["lost"]
    assert f"profpipe: error: OTLP: {n} of {2 * n} requests were not delivered" in p.stderr
    assert f"{n} requests, 0 delivered, {n} not delivered in time" in p.stderr
    assert out.read_text()


@pytest.mark.check_all
def test_without_a_receiver_requests_stay_in_the_spool(tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    with HttpReceiver() as r:
        url = r.url
    args = ["-F", "99", *SHORT, "--otlp", url, "--otlp-protocol", "http/protobuf", "--otlp-spool",
            spool]
    p = profpipe("record", *args, "--", *work(0.5))
    assert p.returncode == 1
    n = int(re.search(r"(\d+) kept in the spool", p.stderr)[1])
    assert n > 0 and len(list(spool.iterdir())) >= n
    with HttpReceiver(port=r.port) as r:
        p = profpipe("record", *args, "--", *work(0.5))
        assert p.returncode == 0, p.stderr
        assert len(decoded(r)) > n
    assert not list(spool.glob("*.otlp"))


@pytest.mark.parametrize("args,status,words", [
    (["--otlp-ca", "roots.pem"], 2, "--otlp-ca: needs --otlp, the receiver"),
    (["--otlp", "ftp://localhost"], 2, "--otlp: ftp://localhost"),
    (["--otlp", "http://127.0.0.1:1", "-f", "folded"], 2, "--format: folded: has no output"),
    (["--otlp", "http://127.0.0.1:1", "--otlp-header-file", "/no/such"], 1, "/no/such"),
])
def test_a_wrong_command_line_is_refused_in_one_line(tmp_path, args, status, words):
    p = profpipe("record", *args, "--", "true", cwd=tmp_path)
    assert p.returncode == status and words in p.stderr, p.stderr
    assert p.stderr.count("\n") == 1 and p.stderr.startswith("profpipe: error: ")
    assert not os.listdir(tmp_path)


def test_variables_stand_in_and_reach_only_prof_send(tmp_path):
    env = {**os.environ, "OTEL_EXPORTER_OTLP_HEADERS": "x-one=1",
           "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "no_proxy": "127.0.0.1"}
    with HttpReceiver() as r, Run("-F", "99", *SHORT, "--otlp", r.url, "--", *work(1),
                                  env=env) as run:
        assert r.wait(1)
        for name, pid in children(run.p.pid).items():
            with open(f"/proc/{pid}/environ", "rb") as f:
                found = f.read().count(b"OTEL_EXPORTER_OTLP_")
            assert found == (2 if name == "prof-send" else 0), name
        assert run.p.wait(60) == 0, run.p.stderr.read()
        assert r.headers[0]["x-one"] == "1" and decoded(r)


def test_prof_send_has_a_user_of_its_own(tmp_path):
    if os.getuid():
        pytest.skip("only root has users for the tools")
    with GrpcReceiver() as r, Run("-F", "99", *SHORT, "--otlp", r.url, "--", *work(2)) as run:
        assert r.wait(1)
        users = {}
        for name, pid in children(run.p.pid).items():
            users[name] = os.stat(f"/proc/{pid}").st_uid
            with open(f"/proc/{pid}/status") as f:
                users[name] = int(re.search(r"Uid:\t(\d+)", f.read())[1])
        assert len(users) == 5 and len(set(users.values())) == 5, users
        assert run.p.wait(60) == 0, run.p.stderr.read()
