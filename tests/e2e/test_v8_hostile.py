# SPDX-License-Identifier: Apache-2.0
"""Node.js programs that attack their profiler, by forged constants, objects and frames, and by code
that never rests: only their own profile suffers, and no frame has a name of another process."""
import collections
import json
import os
import re
import shutil
import struct
import subprocess

import pytest
from conftest import profpipe
from nodes import NODE
from v8_stacks import interpreted, samples

FORGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "javascript", "forged.c")
# Runs another function at every moment of its cpu time. The first one runs longer: the programs for
# V8 are loaded meanwhile.
NEIGHBOUR = """
const vm = require("vm");
const cpu = () => process.cpuUsage().user / 1000;
function spin(ms) {
    const end = cpu() + ms;
    let x = 0;
    while (cpu() < end) for (let i = 0; i < 10000; i++) x = (x * 31 + i) | 0;
    return x;
}
for (let i = 0; i < 26; i++)
    vm.runInThisContext(`(function function_${i}(spin) {\\nspin(${i ? 40 : 600});\\n})`,
                        "/made/neighbour.js")(spin);
"""
IDLE = "setTimeout(() => 0, 2800)"


def constants(node):
    """The constants that a build gives debuggers: name to (address, number)."""
    p = subprocess.run(["nm", "-D", node], capture_output=True, text=True, check=True)
    found = {name: int(address, 16) for address, name in
             re.findall(r"^([0-9a-f]+) \w (v8dbg_\w+)$", p.stdout, re.M)}
    sections = subprocess.run(["readelf", "-SW", node], capture_output=True, text=True,
                              check=True).stdout
    places = [tuple(int(x, 16) for x in m) for m in re.findall(
        r"PROGBITS +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", sections)]
    values = {}
    with open(node, "rb") as f:
        for name, address in found.items():
            for start, offset, size in places:
                if start <= address < start + size:
                    f.seek(address - start + offset)
                    values[name] = (address - start + offset,
                                    struct.unpack("<i", f.read(4))[0])
    assert len(values) > 100
    return values


def beside(tmp_path, hostile):
    """Records a hostile program and its neighbour. Returns the neighbour's JavaScript stacks, all
    samples, the summary and what was logged."""
    (tmp_path / "neighbour.js").write_text(NEIGHBOUR)
    out, summary = tmp_path / "out.txt", tmp_path / "summary.json"
    p = profpipe("record", "-F", 199, "--summary", summary, "-o", out, "--", "sh", "-c",
                 '"$@" & pid=$!; "$0" neighbour.js; wait $pid; exit 0', NODE, *hostile,
                 cwd=tmp_path, timeout=60)
    assert p.returncode == 0, p.stderr
    heads = [head for head, _ in samples(out)]
    stacks = interpreted(out)
    assert len(heads) == len(stacks)
    mine = [s for s in stacks if any(name.endswith("spin") and file.endswith("/neighbour.js")
                                     for name, file, _ in s)]
    return mine, stacks, json.loads(summary.read_text()), p.stderr


def neighbour_is_right(mine):
    """All its functions are there, and nearly all samples show the whole stack."""
    right, seen = 0, set()
    for stack in mine:
        names = [name.rsplit(".", 1)[-1] for name, _, _ in stack]
        at = names.index("spin")
        seen.add(names[at - 1])
        right += (re.fullmatch(r"function_\d+", names[at - 1]) is not None
                  and stack[at - 1][1] == "/made/neighbour.js"
                  and stack[at - 2][1].endswith("/neighbour.js"))
    print(f"neighbour: {right} of {len(mine)} right, {len(seen)} functions")
    assert len(mine) > 100 and right >= 0.97 * len(mine)
    assert {f"function_{i}" for i in range(26)} <= seen


def keeps_to_its_time(summary):
    us = summary["cost"]["bpf_ns_per_sample"] / 1000
    print(f"{us:.1f} us of BPF a sample")
    assert us < 1000


def test_forged_frames_and_objects_cost_others_no_frame(tmp_path):
    library = tmp_path / "forged.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, FORGED, "-lpthread"],
                   check=True)
    types = " ".join(sorted({str(value) for name, (_, value) in constants(NODE).items()
                             if name.startswith("v8dbg_type_")})[:60])
    mine, stacks, summary, _ = beside(tmp_path, [
        "env", "FORGED_SECONDS=2", f"FORGED_TYPES={types}", f"LD_PRELOAD={library}", NODE, "-e",
        IDLE])
    neighbour_is_right(mine)
    keeps_to_its_time(summary)
    assert max(map(len, stacks)) <= 1088


def huge(values):
    return {name: 0x7fffffff for name in values}


def negative(values):
    return {name: -1 for name in values}


def nothing(values):
    return {name: 0 for name in values}


def shifted(values):
    """Each has the value of its neighbour: most offsets lead into the object, but to another
    field."""
    names = sorted(values)
    return {name: values[other][1] for name, other in zip(names, names[1:] + names[:1])}


def odd(values):
    return {name: value + 3 for name, (_, value) in values.items()}


@pytest.mark.check_all
@pytest.mark.parametrize("forge", [huge, negative, nothing, shifted, odd],
                         ids=lambda f: f.__name__)
def test_forged_constants_cost_others_no_frame(forge, tmp_path):
    """V8 itself does not use them."""
    values = constants(NODE)
    node = tmp_path / "forger"
    shutil.copy(NODE, node)
    with open(node, "r+b") as f:
        for name, value in forge(values).items():
            f.seek(values[name][0])
            f.write(struct.pack("<i", value))
    (tmp_path / "work.js").write_text(NEIGHBOUR.replace("neighbour.js", "forger.js"))
    mine, stacks, summary, said = beside(tmp_path, [node, "work.js"])
    neighbour_is_right(mine)
    keeps_to_its_time(summary)
    theirs = collections.Counter(stack[-1][0] for stack in stacks
                                 if stack and stack not in mine)
    print(theirs.most_common(5), re.findall(r".*V8.*", said))


# New functions all the time, each with a name that contains its file's.
CHURN = """
const vm = require("vm");
const cpu = () => process.cpuUsage().user / 1000;
const end = cpu() + 1500;
let n = 0, x = 0;
for (; cpu() < end; n++) {
    const f = vm.runInThisContext(`(function made_${n}() {
        let x = 0;
        for (let i = 0; i < 30000; i++) x += i;
        return x;
    })`, `/made/m${n}.js`);
    x += f();
    if (n % 100 === 0) global.gc();
}
"""


def test_short_lived_functions_never_get_anothers_name(tmp_path):
    (tmp_path / "churn.js").write_text(CHURN)
    mine, stacks, summary, _ = beside(tmp_path, [NODE, "--expose-gc", "churn.js"])
    neighbour_is_right(mine)
    keeps_to_its_time(summary)
    named = [(re.search(r"made_(\d+)$", name), file) for stack in stacks for name, file, _ in stack
             if re.search(r"made_\d+$", name)]
    right = sum(file == f"/made/m{m[1]}.js" for m, file in named)
    gone = sum(any(name.startswith("[v8: ") for name, _, _ in stack) for stack in stacks)
    print(f"{right} of {len(named)} of the functions have their own file; "
          f"{gone} of {len(stacks)} samples with a frame that has no name")
    assert len(named) > 50 and right == len(named)


TWINS = """
const a = require("./a/util.js"), b = require("./b/util.js");
class C {
    get v() { return a.f(this.ms); }
    set v(x) { b.f(this.ms); }
}
function run(g) { return g(); }
const c = new C();
c.ms = 200;
run(() => a.f(200));
run(() => b.f(200));
c.v;
c.v = 1;
"""
UTIL = """
exports.f = function f(ms) {
    const cpu = () => process.cpuUsage().user / 1000, end = cpu() + ms, kept = [];
    while (cpu() < end)
        for (let i = 0; i < 5000; i++) kept[i % 1000] = { x: [i, 2, 3] };
};
"""


def test_functions_of_one_name_are_told_apart(tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "util.js").write_text(UTIL)
    (tmp_path / "twins.js").write_text(TWINS)
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 199, "-o", out, "--", NODE, tmp_path / "twins.js")
    assert p.returncode == 0, p.stderr
    seen = collections.Counter()
    for stack in interpreted(out):
        # The first sample in new memory for code may lack the name of its innermost function.
        files = [file and os.path.relpath(file, tmp_path) for _, file, _ in stack]
        names = [name.rsplit(".", 1)[-1] for name, _, _ in stack]
        if "f" in names:
            at = names.index("f")
            seen[names[at - 1].replace("get ", "").replace("set ", ""), files[at]] += 1
    print(seen)
    often = {key for key, n in seen.items() if n > 10}
    by_arrow = {file for name, file in often if name in ("", "<anonymous>", "(anonymous)")}
    assert by_arrow == {"a/util.js", "b/util.js"}
    assert {file for name, file in often if name == "v"} == {"a/util.js", "b/util.js"}
    assert sum(n for key, n in seen.items() if key not in often) <= 0.02 * sum(seen.values())
