# SPDX-License-Identifier: Apache-2.0
"""JavaScript of programs that embed V8 with compressed pointers: Debian's Chromium, which also has
V8's sandbox, and workerd."""
import collections
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
from nodes import ROOT, from_npm, is_known
from running import Run
from v8_stacks import Score, interpreted, samples

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
    """Paths and lines are in tables of V8's sandbox, which are not read. A Chromium with another V8
    than 15.6 has native frames."""
    text, count = program()
    page, out = tmp_path / "page.html", tmp_path / "out.txt"
    page.write_text('<meta charset="utf-8"><body></body><script>\n' + text +
                    "\ndocument.body.textContent = JSON.stringify(everything());\n</script>")
    os.makedirs(tmp_path / "profile")
    p = profpipe("record", "-F", 499, "-o", out, "--",
                 *browser(page, tmp_path / "profile", OPTIONS), timeout=120)
    assert p.returncode == 0, p.stderr
    unknown = re.findall(r"V8 [0-9.]+: this build is not known", p.stderr)
    assert len(unknown) == (not is_known(CHROMIUM)), p.stderr
    if unknown:
        print("Chromium: not known")
        assert not any(interpreted(out)) and any(samples(out))
        return
    scenes = json.loads(re.search(r"<body>(\[.*?\])<", p.stdout, re.S)[1])
    assert len(scenes) == count
    for s in scenes:
        for frame in s["stack"]:
            frame[1] = ""
    stacks = [[(name, "", line) for name, _, line in s] for s in interpreted(out)]
    check(scenes, stacks, False)


def some_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def workers(folder, flags, **texts):
    """One server of several programs; yields its pid and their addresses."""
    ports = dict(zip(texts, some_ports(len(texts))))
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text)
    services = ", ".join(f'(name = "{n}", worker = .{n})' for n in texts)
    sockets = ", ".join(f'(name = "{n}", address = "127.0.0.1:{ports[n]}", http = (), '
                        f'service = "{n}")' for n in texts)
    (folder / "config.capnp").write_text(f"""
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = [{", ".join(f'"{f}"' for f in flags.split())}],
  services = [ {services} ],
  sockets = [ {sockets} ]
);
""" + "".join(f"""
const {n} :Workerd.Worker = (
  modules = [ (name = "{n}.js", esModule = embed "{n}.js") ],
  compatibilityDate = "2024-01-01"
);
""" for n in texts))
    path = from_npm(WORKERD, "workerd", "@cloudflare/workerd-linux-64", "package/bin/workerd")
    p = subprocess.Popen([path, "serve", "config.capnp"], cwd=folder, stderr=subprocess.DEVNULL)
    try:
        for port in ports.values():
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
        yield p.pid, {n: f"http://127.0.0.1:{port}/" for n, port in ports.items()}
    finally:
        p.kill()
        p.wait()


def served(folder, flags, requests, **texts):
    """Records one server of several programs while it answers the requests, which name programs.
    Returns the answers, and the file of the recording."""
    out, answers = folder / "out.txt", []
    with workers(folder, flags, **texts) as (pid, addresses):
        with Run("-F", 499, "-p", pid, "-o", out) as run:
            run.sampling()
            for name in requests:
                with urllib.request.urlopen(addresses[name], timeout=120) as answer:
                    answers.append(json.load(answer))
            run.p.terminate()
            assert run.end()[0] == 0
    return answers, out


def scenes_served(folder, flags):
    """What a server's answer tells of its stacks, and the recording of it."""
    text, count = program()
    text += """
export default {
	async fetch() { return new Response(JSON.stringify(everything())); }
};
"""
    # A process that rests is not looked at, so V8 is recognized during the first request.
    answers, out = served(folder, flags, ["w", "w"], w=text)
    assert len(answers[-1]) == count
    return answers[-1], out


@pytest.mark.check_all
def test_functions_in_a_server_of_workers_have_names_and_lines(tmp_path):
    scenes, out = scenes_served(tmp_path, OPTIONS)
    check(scenes, interpreted(out), True)


@pytest.mark.check_all
def test_optimized_code_has_the_names_of_its_functions(tmp_path):
    """Functions that V8 has inlined are missing."""
    _, out = scenes_served(tmp_path, "")
    chains = [[name for name, *_ in s] for s in interpreted(out)]
    inside = [c for c in chains if any(n.startswith("spin_") for n in c)]
    unnamed = sum(any(n.startswith("[") for n in c) for c in inside)
    print(f"{unnamed} of {len(inside)} unnamed")
    assert len(inside) > 50 and unnamed <= 0.01 * len(inside)


# More than 65,536 characters, before which the lines are counted once for each script.
BEFORE = {"a": "//\n" * 25000, "b": "//\n" + "/" * 74994 + "//\n"}
TWO_LINES = {"a": 25000, "b": 2}


def one_of_two(letter):
    """A program that differs from the other one in its names and lines only."""
    return BEFORE[letter] + f"""function {letter}_leaf(n) {{
	let s = 0;
	for (let i = 0; i < n; i++)
		s = (s * 31 + i) | 0;
	return s;
}}
function {letter}_loop() {{
	let n = 0;
	for (let i = 0; i < 80; i++)
		n ^= {letter}_leaf(100000);
	return n;
}}
export default {{
	async fetch() {{ return new Response(JSON.stringify({letter}_loop())); }}
}};
"""


@pytest.mark.check_all
def test_isolates_on_one_thread_have_their_own_names_and_lines(tmp_path):
    _, out = served(tmp_path, OPTIONS, "bbbaaaa", **{n: one_of_two(n) for n in "ab"})
    found = collections.Counter(f[-1] for f in interpreted(out)
                                if f and f[-1][0].endswith("_leaf"))
    print(found.most_common(9))
    ours = {n: sum(c for (name, *_), c in found.items() if name == f"{n}_leaf") for n in "ab"}
    assert sum(ours.values()) > 200
    # It answers four of seven requests.
    assert 0.45 < ours["a"] / sum(ours.values()) < 0.69, ours
    for name, path, line in found:
        letter = name[0]
        assert path.endswith(f"{letter}.js"), found
        assert line == 0 or 1 <= line - TWO_LINES[letter] <= 6, found
    # Where code of a compiler begins, it has no line yet.
    without = sum(c for (*_, line), c in found.items() if line == 0)
    assert without <= 0.03 * sum(ours.values()), found
