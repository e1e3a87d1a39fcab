# SPDX-License-Identifier: Apache-2.0
"""JavaScript of programs that embed V8 with compressed pointers: Debian's Chromium, which also has
V8's sandbox, and workerd."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest
from conftest import profpipe
from nodes import ROOT, from_npm
from running import Run
from v8_stacks import Score, interpreted

SCENES = os.path.join(ROOT, "tests", "e2e", "javascript", "embedded.js")
WORKERD = "1.20261117.1"  # V8 15.8
CHROMIUM = "/usr/lib/chromium/chromium"
LOOPS = 3_000_000
OPTIONS = "--no-opt --no-maglev"


def program():
    """The scenes with their spin functions."""
    with open(SCENES) as f:
        text = f.read()
    names = sorted(set(re.findall(r"\bspin_(\w+)\(\)", text)))
    spins = "".join(f'function spin_{n}() {{\n\trecord("{n}");\n\tlet s = 0;\n'
                    f"\tfor (let i = 0; i < {LOOPS}; i++)\n\t\ts = (s * 31 + i) | 0;\n"
                    "\treturn s | 1;\n}\n" for n in names)
    return spins + text, len(names)


def known(path):
    p = subprocess.run([f"{ROOT}/build/release/prof-symd", "--describe", path],
                       capture_output=True, text=True)
    return "not known" not in p.stdout + p.stderr


def check(scenes, stacks, lines):
    score = Score(scenes, stacks, lines)
    print(score.table("embedded"))
    assert sum(score.all.values()) > 300 and len(score.all) == len(scenes)
    assert score.total() >= 0.99, score.wrong


def browser(page, folder, flags):
    return ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
            f"--user-data-dir={folder}", f"--js-flags={flags}", "--timeout=60000",
            f"file://{page}"]


def test_functions_in_a_browser_have_names(tmp_path):
    """Paths and lines are in tables of V8's sandbox, which are not read."""
    if not known(CHROMIUM):
        pytest.fail("Chromium has another V8 than 15.6: add its layout")
    text, count = program()
    page, out = tmp_path / "page.html", tmp_path / "out.txt"
    page.write_text('<meta charset="utf-8"><body></body><script>\n' + text +
                    "\ndocument.body.textContent = JSON.stringify(everything());\n</script>")
    os.makedirs(tmp_path / "profile")
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--",
                 *browser(page, tmp_path / "profile", OPTIONS), timeout=120)
    assert p.returncode == 0, p.stderr
    scenes = json.loads(re.search(r"<body>(\[.*?\])<", p.stdout, re.S)[1])
    assert len(scenes) == count
    for s in scenes:
        for frame in s["stack"]:
            frame[1] = ""
    stacks = [[(name, "", line) for name, _, line in s] for s in interpreted(out)]
    check(scenes, stacks, False)


@contextlib.contextmanager
def worker(folder, text, flags):
    """A server of the program; yields its address."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (folder / "w.js").write_text(text + """
export default {
	async fetch() { return new Response(JSON.stringify(everything())); }
};
""")
    (folder / "config.capnp").write_text(f"""
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = [{", ".join(f'"{f}"' for f in flags.split())}],
  services = [ (name = "main", worker = .w) ],
  sockets = [ (name = "http", address = "127.0.0.1:{port}", http = (), service = "main") ]
);
const w :Workerd.Worker = (
  modules = [ (name = "w.js", esModule = embed "w.js") ],
  compatibilityDate = "2024-01-01"
);
""")
    path = from_npm(WORKERD, "workerd", "@cloudflare/workerd-linux-64", "package/bin/workerd")
    p = subprocess.Popen([path, "serve", "config.capnp"], cwd=folder, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield p.pid, f"http://127.0.0.1:{port}/"
    finally:
        p.kill()
        p.wait()


def served(folder, flags):
    """What the server's answer tells of its stacks, and the recording of it."""
    text, count = program()
    out = folder / "out.txt"
    with worker(folder, text, flags) as (pid, address):
        with Run("-F", 499, "-p", pid, "-o", out) as run:
            run.sampling()
            # A process that rests is not looked at, so V8 is recognized during the first request.
            for _ in range(2):
                with urllib.request.urlopen(address, timeout=120) as answer:
                    scenes = json.load(answer)
            run.p.terminate()
            assert run.end()[0] == 0
    assert len(scenes) == count
    return scenes, out


@pytest.mark.check_all
def test_functions_in_a_server_of_workers_have_names_and_lines(tmp_path):
    scenes, out = served(tmp_path, OPTIONS)
    check(scenes, interpreted(out), True)


@pytest.mark.check_all
def test_optimized_code_has_the_names_of_its_functions(tmp_path):
    """Functions that V8 has inlined are missing."""
    _, out = served(tmp_path, "")
    chains = [[name for name, *_ in s] for s in interpreted(out)]
    inside = [c for c in chains if any(n.startswith("spin_") for n in c)]
    unnamed = sum(any(n.startswith("[") for n in c) for c in inside)
    print(f"{unnamed} of {len(inside)} unnamed")
    assert len(inside) > 50 and unnamed <= 0.01 * len(inside)
