# SPDX-License-Identifier: Apache-2.0
"""Real Python programs, not written for these tests: whole stacks in which Python's frames have
names."""
import json
import re
import sys

import pytest
from conftest import few, profpipe

# Commits, and commands that read them again: nine commands of a fifth of a second or more.
MERCURIAL = """
cd "$0" && hg init repository && cd repository
for i in 1 2; do
    cp /usr/lib/python3/dist-packages/mercurial/*.py . && echo "# $i" >> util.py
    hg add -q && hg commit -qm $i -u somebody && hg log -p -l 2 > log &&
        hg annotate util.py > annotated
done
"""

# A server of two processes with two threads each, and a client that asks it for pages.
FLASK = """
import flask
app = flask.Flask(__name__)
@app.route("/<name>")
def page(name):
    rows = [{"name": f"{name} {i}", "sum": sum(range(i))} for i in range(200)]
    return flask.render_template_string(
        "<ul>{% for r in rows %}<li>{{ r.name|upper }}: {{ r.sum }}{% endfor %}</ul>", rows=rows)
"""
GUNICORN = """
import http.client, os, socket, subprocess, sys, threading, time
os.chdir(sys.argv[1])
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("socket")
with subprocess.Popen(["/usr/bin/gunicorn", "-w", "2", "--threads", "2", "-b", "unix:socket",
                       "--log-level", "error", "app:app"]) as server:
    while not os.path.exists("socket"):
        time.sleep(0.02)
    def ask():
        for i in range(100):
            c = Connection("localhost")
            c.request("GET", f"/page{i}")
            assert c.getresponse().read().count(b"<li>PAGE") == 200
            c.close()
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    server.terminate()
"""


def run_mercurial(folder):
    return ["sh", "-c", MERCURIAL, folder], r"dispatch\.run"


def run_gunicorn(folder):
    (folder / "app.py").write_text(FLASK)
    return ["/usr/bin/python3", "-c", GUNICORN, folder], r"app\.Flask\.wsgi_app.*app\.page"


@pytest.mark.parametrize("program", [run_mercurial, run_gunicorn])
def test_stacks_of_a_program_are_whole_and_named(program, tmp_path):
    out, summary, folder = tmp_path / "out.txt", tmp_path / "summary.json", tmp_path / "folder"
    folder.mkdir()
    command, known = program(folder)
    p = profpipe("record", "-q", "-F", 199, "--interpreter-frames", "--summary", summary, "-o", out,
                 "--", *command)
    assert p.returncode == 0, p.stderr
    said = json.loads(summary.read_text())
    blocks = out.read_text(errors="replace").split("\n\n")
    # From the first sample that shows Python on: the interpreter's file was not known before.
    first = next(i for i, b in enumerate(blocks) if "([interpreted])" in b)
    inside = [b for b in blocks[first:] if re.search(r" _PyEval_EvalFrameDefault \(", b)]
    python = [b for b in inside if "([interpreted])" in b]
    gone = [b for b in python if "[python: " in b]
    names = [";".join(reversed(re.findall(r"^\t +[0-9a-f]+ (.*) \(\[interpreted\]\)", b, re.M)))
             for b in python]
    print(f"{program.__name__[4:]}: {said['samples']} samples, "
          f"{said['complete'] / said['samples']:.2%} complete; "
          f"of {len(inside)} in the interpreter {len(python) / len(inside):.2%} with "
          f"Python's frames, {len(gone)} of them with one that has no name", file=sys.stderr)
    assert len(inside) > 100
    assert said["samples"] - said["complete"] <= few(said["samples"]), said["truncated"]
    assert len(python) >= 0.95 * len(inside)
    assert len(gone) <= 0.05 * len(python)
    assert sum(bool(re.search(known, n)) for n in names) > 0.1 * len(names)


# Ten greenlets, started at different depths of one stack, that run in turn and call for some
# milliseconds each.
GREENLETS = """
import greenlet, time
def leaf(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def middle(seconds): leaf(seconds)
def worker():
    while True:
        middle(0.003)
        greenlet.getcurrent().parent.switch()
def start(depth):
    if depth: return start(depth - 1)
    g = greenlet.greenlet(worker)
    g.switch()
    return g
all = [list(map(start, [i]))[0] for i in range(10)]
for _ in range(40):
    for g in all: g.switch()
"""


def test_a_stack_of_a_greenlet_ends_where_it_began(tmp_path):
    out, summary, program = (tmp_path / "out.folded", tmp_path / "summary.json",
                             tmp_path / "turns.py")
    program.write_text(GREENLETS)
    p = profpipe("record", "-q", "-F", 199, "--summary", summary, "-o", out, "--",
                 "/usr/bin/python3", program)
    assert p.returncode == 0, p.stderr
    said = json.loads(summary.read_text())
    assert said["samples"] - said["complete"] <= few(said["samples"]), said["truncated"]
    inside = [line.rsplit(" ", 1) for line in out.read_text().splitlines()
              if ";turns.worker;" in line]
    worker = (r"python3;greenlet::UserGreenlet::inner_bootstrap\([^;]*;([^;.]*;)*"
              r"turns\.worker;")
    own = sum(int(n) for stack, n in inside if re.match(worker, stack))
    print(f"{own} of {sum(int(n) for _, n in inside)} samples in greenlets")
    # Before the interpreter is known, and while a greenlet starts, the first function is not there
    # yet.
    assert own >= 0.97 * sum(int(n) for _, n in inside) > 50
