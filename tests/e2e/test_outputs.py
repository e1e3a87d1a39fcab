# SPDX-License-Identifier: Apache-2.0
"""Files that the tools write: only their owner may read them, and no other user decides where their
bytes go."""
import contextlib
import os
import signal
import stat
import subprocess
import time

import pytest

from conftest import BUILD, profpipe
from fairness import ATTACKER, VICTIM, as_user
from streams import BODY, END, HELLO, WHOLE, stream

EXPORT = f"{BUILD}/prof-export"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "whole.prof"
    path.write_bytes(stream(WHOLE))
    return path


@pytest.fixture
def sticky(tmp_path):
    """A folder like /tmp, and the folders above it open to all."""
    for folder in [tmp_path, *tmp_path.parents]:
        if str(folder).startswith("/tmp/"):
            os.chmod(folder, 0o755)
    place = tmp_path / "sticky"
    place.mkdir()
    os.chmod(place, 0o1777)
    return place


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def as_(uid, *argv, **kw):
    p = as_user(uid, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    out, err = p.communicate(timeout=60)
    return p.returncode, out, err.decode()


def write_by(how, out, recording, summary=None):
    """Runs one of the tools that write files."""
    if how == "report":
        return profpipe("report", recording, "-o", out)
    if how == "prof-export":
        with open(recording, "rb") as f:
            return subprocess.run([EXPORT, "-o", out], stdin=f, capture_output=True, text=True)
    return profpipe("record", "-q", "-F", "199", "-d", "0.3", "-o", out,
                    *(["--summary", summary] if summary else []))


def plant(what, path):
    """Opens a file as another user. Returns a function that reads it to its end."""
    script = {"empty": ": >{0}; chmod 666 {0}; exec tail -c +1 -f {0}",
              "file": "echo mine >{0}; chmod 666 {0}; exec tail -c +1 -f {0}",
              "fifo": "mkfifo -m 666 {0}; exec cat {0}"}[what]
    spy = as_user(ATTACKER, ["sh", "-c", script.format(path)], stdout=subprocess.PIPE)
    until = time.monotonic() + 20
    while not os.path.lexists(path) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)
    return spy


def wait_for_hidden(pid, folder):
    """Waits until the tool has opened an unnamed file in the folder."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            if any(at.startswith(f"{folder}/") and at.endswith("(deleted)") for at in links):
                return
        time.sleep(0.02)
    raise AssertionError("it opens no file")


def heard(spy):
    time.sleep(0.2)
    os.killpg(spy.pid, signal.SIGKILL)
    return spy.communicate(timeout=10)[0]


@pytest.mark.parametrize("ending", [".folded", ".txt", ".html", ".pb.gz", ".prof"])
@pytest.mark.parametrize("what", ["empty", "file", "fifo"])
@pytest.mark.parametrize("how", ["report", "prof-export"])
def test_a_stranger_in_a_sticky_folder_gets_nothing(sticky, recording, how, what, ending):
    out = sticky / f"x{ending}"
    spy = plant(what, out)
    p = write_by(how, out, recording)
    got = heard(spy)
    assert got in (b"", b"mine\n")
    if what == "fifo":
        assert p.returncode == 1 and "belongs to another user" in p.stderr, p.stderr
        assert p.stderr.count("\n") == 1 and str(out) in p.stderr
    else:
        assert p.returncode == 0, p.stderr
        st = os.stat(out)
        assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o600) and st.st_size > 6
        assert as_(ATTACKER, "cat", out)[0] != 0
    assert os.listdir(sticky) == [out.name]


@pytest.mark.parametrize("what", ["empty", "fifo"])
def test_a_stranger_gets_nothing_of_a_recording_and_its_summary(sticky, what):
    out, summary = sticky / "x.prof", sticky / "s.json"
    spies = [plant(what, summary), plant(what, out)]
    p = write_by("record", out, None, summary)
    assert all(not heard(spy) for spy in spies)
    assert (p.returncode == 0) == (what == "empty"), p.stderr
    if what == "empty":
        for path in (out, summary):
            assert mode(path) == 0o600 and os.stat(path).st_uid == 0 and path.stat().st_size


def test_the_stream_of_prof_bpf_by_hand_is_its_callers(sticky):
    out = sticky / "x.prof"
    for what in (None, "empty", "fifo"):
        spy = plant(what, out) if what else None
        p = subprocess.run([f"{BUILD}/prof-bpf", "-d", "0.2", "-o", out], capture_output=True,
                           text=True, timeout=60)
        if what == "fifo":
            assert p.returncode == 1 and "belongs to another user" in p.stderr, p.stderr
        else:
            assert p.returncode == 0, p.stderr
            assert mode(out) == 0o600 and os.stat(out).st_uid == 0 and os.stat(out).st_size
        if spy:
            assert not heard(spy)
        assert os.listdir(sticky) == ["x.prof"]
        out.unlink()


def test_another_users_output_file_is_refused_before_the_run(sticky, recording):
    out = sticky / "x.folded"
    spy = plant("file", out)
    code, _, err = as_(VICTIM, EXPORT, "-o", out, stdin=open(recording, "rb"))
    assert (code, err.count("\n")) == (1, 1) and "belongs to another user" in err, err
    assert heard(spy) == b"mine\n" and os.listdir(sticky) == ["x.folded"]


def test_a_profile_survives_if_another_user_takes_its_name(sticky):
    out = sticky / "x.folded"
    p = as_user(VICTIM, [EXPORT, "-o", out], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    sent = stream(HELLO + "\n" + BODY)
    p.stdin.write(sent)
    p.stdin.flush()
    wait_for_hidden(p.pid, sticky)
    assert not os.listdir(sticky), "it has no name before it is whole"
    plant("file", out)
    _, err = p.communicate(stream(HELLO + "\n" + BODY + END)[len(sent):], timeout=30)
    assert p.returncode == 1 and "lies beside it as .profpipe." in err.decode(), err
    kept, = (n for n in os.listdir(sticky) if n != out.name)
    assert "main" in (sticky / kept).read_text() and mode(sticky / kept) == 0o600


@pytest.mark.parametrize("how", ["report", "prof-export", "record"])
def test_the_mode_is_0600_or_the_given_one_whatever_the_umask(tmp_path, recording, how):
    for umask, option, want in ((0, None, 0o600), (0o22, None, 0o600), (0o77, "640", 0o640)):
        for ending in (".html", ".prof"):
            out = tmp_path / f"x{ending}"
            out.unlink(missing_ok=True)
            argv = {"report": [f"{BUILD}/profpipe", "report", recording],
                    "record": [f"{BUILD}/profpipe", "record", "-q", "-d", "0.1", "-F", "999"],
                    "prof-export": [EXPORT]}[how]
            p = subprocess.run([*argv, "-o", out, *(["--mode", option] if option else [])],
                               stdin=open(recording, "rb"), capture_output=True, umask=umask,
                               timeout=60)
            assert p.returncode in (0, 1) and os.path.exists(out), p.stderr
            assert mode(out) == want
        if how == "record":
            break


@pytest.mark.parametrize("given", ["1000", "u=rw", "8", "", "-1", "0x1ff"])
def test_a_malformed_mode_is_refused(tmp_path, given):
    for argv in (["record"], ["report", "x.prof"]):
        p = profpipe(*argv, "-o", tmp_path / "x.html", f"--mode={given}")
        assert p.returncode == 2 and p.stderr.count("\n") == 1 and "--mode" in p.stderr, p.stderr
    assert not os.listdir(tmp_path)


def test_descriptors_devices_and_pipes_of_ones_own_are_written_to(tmp_path, recording):
    fifo = tmp_path / "x.folded"
    want = profpipe("report", recording, "-f", "folded").stdout
    os.mkfifo(fifo)
    for tool in (f"{BUILD}/profpipe report {recording} -f folded", f"{EXPORT} -f folded"):
        for script in ("{0} -o /dev/null", "{0} -o >(cat)", "{0} -o -", "{0} -o /dev/stdout",
                       "cat {1} & {0} -o {1} && wait"):
            p = subprocess.run(["bash", "-c", script.format(tool, fifo) + "; sleep 0.1"],
                               stdin=open(recording, "rb"), capture_output=True, text=True)
            assert p.returncode == 0 and "error" not in p.stderr, (script, p.stderr)
            assert p.stdout == ("" if "null" in script else want), script
    assert stat.S_ISFIFO(os.stat(fifo).st_mode) and os.path.exists("/dev/null")


@pytest.mark.parametrize("form", ["folded", "text", "html", "pprof"])
def test_the_output_of_others_through_a_redirection_stays(tmp_path, recording, form):
    want = subprocess.run([EXPORT, "-f", form], stdin=open(recording, "rb"), capture_output=True,
                          check=True).stdout
    out = tmp_path / "out"
    subprocess.run(f"{{ echo head; {EXPORT} -f {form} <{recording}; echo middle; "
                   f"{EXPORT} -f {form} <{recording}; echo end; }} >{out}", shell=True, check=True)
    assert out.read_bytes() == b"head\n" + want + b"middle\n" + want + b"end\n"


def test_text_and_streams_can_be_read_while_they_grow(tmp_path):
    for ending in (".txt", ".prof"):
        out = tmp_path / f"x{ending}"
        p = subprocess.Popen([EXPORT, "-o", out], stdin=subprocess.PIPE)
        p.stdin.write(stream(HELLO + "\n" + BODY))
        p.stdin.flush()
        until = time.monotonic() + 10
        while not out.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert mode(out) == 0o600
        p.kill()
        p.wait()
        assert out.exists(), "what a killed tool wrote stays"


@pytest.mark.parametrize("old", [False, True])
def test_a_killed_tool_leaves_the_old_file_and_no_half_of_a_new_one(tmp_path, old):
    out = tmp_path / "x.html"
    if old:
        out.write_text("old")
    p = subprocess.Popen([EXPORT, "-o", out], stdin=subprocess.PIPE)
    p.stdin.write(stream(HELLO + "\n" + BODY))
    p.stdin.flush()
    wait_for_hidden(p.pid, tmp_path)
    p.kill()
    p.wait()
    time.sleep(0.1)
    assert os.listdir(tmp_path) == (["x.html"] if old else [])
    assert not old or out.read_text() == "old"


def test_a_file_that_is_mounted_on_is_written_in_place(tmp_path, sticky, recording):
    inner, outer = tmp_path / "inner.folded", tmp_path / "outer.folded"
    for path in (inner, outer, sticky / "x.folded"):
        path.write_text("old and longer than it was before\n" * 1000)
        os.chmod(path, 0o640)
    for over in (outer, sticky / "x.folded"):
        subprocess.run(["mount", "--bind", inner, over], check=True)
    try:
        for how in ("report", "prof-export"):
            p = write_by(how, outer, recording)
            assert p.returncode == 0, p.stderr
            assert "main" in inner.read_text() and "old and" not in inner.read_text()
            p = write_by(how, sticky / "x.folded", recording)
            assert p.returncode == 1 and "mounted" in p.stderr
        assert mode(inner) == 0o640
    finally:
        for over in (outer, sticky / "x.folded"):
            subprocess.run(["umount", "-l", over], check=True)
