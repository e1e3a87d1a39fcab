# SPDX-License-Identifier: Apache-2.0
"""CPython's frames, beside what Python itself says its stack is (tests/e2e/python/rooms.py)."""
import collections
import glob
import json
import os
import re
import subprocess

import pytest
from conftest import profpipe

ROOMS = os.path.join(os.path.dirname(__file__), "python", "rooms.py")
ODD_ROOMS = os.path.join(os.path.dirname(__file__), "python", "odd_rooms.py")
# Debian's own, and whatever else is on the machine.
PYTHONS = ["/usr/bin/python3"] + sorted(p for p in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")) if os.access(p, os.X_OK))


def interpreted(path):
    """The interpreted frames of each sample of a text output, root first: [(function, file, line)]."""
    stack, stacks = [], []
    for line in open(path, errors="replace"):
        if not line.startswith("\t"):
            if stack:
                stacks.append(stack[::-1])
            stack = []
            continue
        m = re.fullmatch(r"\t +[0-9a-f]+ (.*) \(\[interpreted\]\)(?: (.*?)(?::(\d+))?)?\n", line)
        if m:
            stack.append((m[1], m[2], int(m[3] or 0)))
    if stack:
        stacks.append(stack[::-1])
    return stacks


def score(rooms, stacks):
    """By room: (samples with exactly its stack, samples in it), and one wrong stack as an example."""
    right, all_of, wrong = collections.Counter(), collections.Counter(), {}
    expected = {r["room"]: [(f, line, name) for f, line, name in r["stack"]] for r in rooms}
    for stack in stacks:
        at = next((i for i, f in enumerate(stack) if f[0].rsplit(".", 1)[-1].startswith("spin_")), None)
        if at is None:
            continue
        room = stack[at][0].rsplit(".", 1)[-1][len("spin_"):]
        got = [(file, line, name.rsplit(".", 1)[-1]) for name, file, line in stack[:at]]
        all_of[room] += 1
        if got == expected.get(room):
            right[room] += 1
        else:
            wrong.setdefault(room, (got, expected.get(room)))
    return right, all_of, wrong


@pytest.mark.parametrize("python", PYTHONS)
def test_stacks_are_as_python_says(python, tmp_path):
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", python, ROOMS, "0.1", tmp_path / "rooms.json")
    assert p.returncode == 0, p.stderr
    rooms = json.loads((tmp_path / "rooms.json").read_text())
    right, all_of, wrong = score(rooms, interpreted(out))
    total = sum(right.values()) / max(1, sum(all_of.values()))
    version = subprocess.run([python, "-V"], capture_output=True, text=True).stdout.strip()
    print(f"{version}: {total:.2%} of {sum(all_of.values())} samples in {len(all_of)} rooms")
    for room, (got, expected) in sorted(wrong.items()):
        print(f"  {room}: {right[room]} of {all_of[room]}\n    got      {got[-6:]}\n    expected {expected[-6:] if expected else None}")
    assert len(all_of) > 0.8 * len(rooms)
    assert total >= 0.99


def test_odd_rooms_too(tmp_path):
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", "/usr/bin/python3", ODD_ROOMS, "0.15", tmp_path / "rooms.json")
    assert p.returncode == 0, p.stderr
    rooms = [json.loads(line) for line in open(tmp_path / "rooms.json")]
    right, all_of, wrong = score(rooms, interpreted(out))
    assert not wrong or sum(right.values()) >= 0.99 * sum(all_of.values()), wrong
    assert len(all_of) > 0.8 * len(rooms)
    assert right["subinterpreter"]


def test_native_frames_stand_between_interpreted_ones(tmp_path):
    shown, folded = tmp_path / "shown.folded", tmp_path / "folded.folded"
    recording = tmp_path / "out.prof"
    p = profpipe("record", "-q", "-F", 199, "-o", recording, "--", "/usr/bin/python3", os.path.join(os.path.dirname(ROOMS), "order.py"), "2")
    assert p.returncode == 0, p.stderr
    for out, options in ((folded, []), (shown, ["--interpreter-frames"])):
        assert profpipe("report", recording, "-o", out, *options).returncode == 0
    loop = "_PyEval_EvalFrameDefault"
    for path, turn in ((folded, lambda names: names), (shown, lambda names: [*names, loop])):
        # Of each stack what it is made of: Python's functions, the loop, qsort.
        kinds = re.compile(r"order\.(?:<module>|main|outer|inner|spin)|%s|__GI___qsort_r|qsort_r" % loop)
        stacks = collections.Counter()
        for line in open(path):
            frames, count = line.rsplit(" ", 1)
            names = [re.sub(r"^(__GI___)?qsort_r$", "qsort", f) for f in frames.split(";") if kinds.fullmatch(f)]
            if "order.spin" in names:
                stacks[tuple(names)] += int(count)
        expected = (*turn(["order.<module>", "order.main"]), *turn(["order.outer"]), "qsort", *turn(["order.inner"]), *turn(["order.spin"]))
        print(stacks)
        assert stacks[expected] >= 0.99 * sum(stacks.values()) > 0
        # The interpreter's own sort is between the frames of who calls it and of the key.
        between = re.compile(r"order\.main;.*?PyObject_\w+;.*order\.outer;.*order\.inner;.*PyObject_\w+;.*order\.spin")
        assert all(between.search(line) for line in open(path) if "order.spin" in line)
