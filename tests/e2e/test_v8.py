# SPDX-License-Identifier: Apache-2.0
"""V8's frames, compared with V8's own tracebacks (tests/e2e/javascript/scenes.js)."""
import collections
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import time

import pytest
from conftest import BUILD, few, of_which_check_has, profpipe
from nodes import NODE, from_npm, is_known
from v8_stacks import Score, differs, interpreted, samples

HERE = os.path.dirname(os.path.abspath(__file__))
SCENES = os.path.join(HERE, "javascript", "scenes.js")
SUITE = os.path.join(HERE, "python", "suite.sh")
# Cpu time in each scene.
SECONDS = "0.015"
# Packages of npm: the first and the last version of V8 of each of its layouts, and more where the
# layout changed within a version.
NPM = ["12.4.0", "12.22.12", "13.14.0", "14.0.0", "14.21.3", "15.14.0", "16.4.0", "16.20.2",
       "17.0.0", "17.9.1", "18.0.0", "18.20.8", "19.0.0", "19.8.1", "20.0.0", "20.20.2", "21.7.3",
       "22.0.0", "22.23.3", "23.11.1", "24.0.0", "24.11.1", "24.21.0", "25.9.0", "26.12.1"]
# Builds of V8 that profpipe does not know.
UNKNOWN = {"12.4.0"}
SUITES = ["bullseye", "bookworm", "trixie", "sid"]


def version(node, *prefix):
    said = "process.version + ' (V8 ' + process.versions.v8 + ')'"
    p = subprocess.run([*prefix, node, "-p", said], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return f"Node.js {p.stdout.strip()}"


def score(tmp_path, command, root="", seconds=SECONDS, asks=False, scenes=SCENES, env=None, **kw):
    """Runs scenes.js by a command twice, and compares: once for its tracebacks, and once recorded.
    root: of the command's file system. asks: it asks for tracebacks while it is recorded too, so
    that V8 knows all lines. Without that, a frame may have no line."""
    env, out = env or dict(os.environ), tmp_path / "out.txt"
    folder = "/tmp" if root else tmp_path
    said = [scenes, folder, "0", f"{folder}/scenes.json"]
    # In a folder of its own, since some flags make V8 write logs.
    kw.setdefault("cwd", tmp_path)
    subprocess.run([*map(str, command), *map(str, said)], check=True, timeout=120,
                   cwd=kw["cwd"], env={**env, "SCENES_WARM_MS": "0"})
    with open(f"{root}{folder}/scenes.json") as f:
        expected = json.load(f)
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", *command, scenes, folder, seconds,
                 *([said[-1]] if asks else []), env=env, **kw)
    assert p.returncode == 0, p.stderr
    return Score(expected, interpreted(out), asks)


def test_the_comparison_detects_wrong_stacks():
    expected = [["", "/x/a.js", 5, ""], ["f", "file:///x/b.mjs", 7, ""], ["eval", "", 3, "eval"]]
    right = [("(anonymous)", "/x/a.js", 5), ("b.f", "/x/b.mjs", 7), ("anonymous", "evalX", 3)]

    def told(*second, lines=True):
        return differs([right[0], second or right[1], right[2]], expected, lines)
    assert told() is None
    assert differs(right[:2], expected, True) == "missing"
    assert differs(right + right, expected, True) == "added"
    assert told("g", "/x/b.mjs", 7) == "name"
    assert told("f", "/x/c.mjs", 7) == "file"
    assert told("f", "/x/b.mjs", 8) == "line" == told("f", "/x/b.mjs", 8, lines=False)
    assert told("f", "/x/b.mjs", 0) == "line" and told("f", "/x/b.mjs", 0, lines=False) is None
    assert told("[v8: gone]", "", 0) == "unnamed"


def check(label, got, seconds=SECONDS, least=0.98):
    """Prints the table. Most scenes have samples, and nearly all of these are right. A scene has
    half a percent of them, and on a busy machine one or two fail."""
    print(got.table(label))
    assert len(got.all) > 0.9 * len(got.visited)
    # Few samples in a scene show no JavaScript at all. (Compilers also take cpu time.)
    assert sum(got.all.values()) > 0.4 * float(seconds) * 499 * len(got.visited)
    assert got.total() >= least
    assert got.unnamed <= 0.03 * got.shown
    assert got.astray <= few(sum(got.all.values()))


def check_native(label, tmp_path, command, **kw):
    """An unknown build is reported, and keeps its native frames."""
    p = profpipe("record", "-F", 199, "-o", tmp_path / "out.txt", "--", *command, "-e", SPIN % 600,
                 **kw)
    assert p.returncode == 0, p.stderr
    assert len(re.findall(r"V8 [0-9.]+: this build is not known", p.stderr)) == 1, p.stderr
    assert not any(interpreted(tmp_path / "out.txt"))
    assert any(samples(tmp_path / "out.txt"))
    print(f"{label}: not known")


@pytest.mark.parametrize("asks", [True, False], ids=["lines", "no lines"])
def test_stacks_equal_v8s_tracebacks(asks, tmp_path):
    """V8 records lines only from the time when it is first asked for them."""
    some = "." if asks else "^(inlined|async|in_|worker|method|sort|far|vm|two_bytes)"
    env = {**os.environ, "SCENES_ONLY": some}
    check(f"{version(NODE)}{'' if asks else ', which was asked for no line'}",
          score(tmp_path, [NODE], asks=asks, env=env))


# The versions that have more wrong lines than others; docs/javascript.md has the figures.
LEAST = {"12.22.12": 0.91, "bullseye": 0.91, "13.14.0": 0.91, "14.0.0": 0.91, "14.21.3": 0.94,
         "15.14.0": 0.94}


@pytest.mark.check_all
@pytest.mark.parametrize("number", NPM)
def test_stacks_of_each_version_equal_v8s_tracebacks(number, tmp_path):
    node = from_npm(number)
    if not is_known(node):
        check_native(version(node), tmp_path, [node])
        return
    check(version(node), score(tmp_path, [node], seconds="0.1", asks=True, timeout=300), "0.1",
          LEAST.get(number, 0.98))


@pytest.mark.check_all
@pytest.mark.parametrize("suite", SUITES)
def test_stacks_of_debians_packages_equal_v8s_tracebacks(suite, tmp_path):
    root = tmp_path / "root"
    p = subprocess.run([SUITE, suite, root, "nodejs", ".*"], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    try:
        shutil.copytree(os.path.dirname(SCENES), root / "scenes")
        for folder in ("proc", "dev", "tmp"):
            (root / folder).mkdir(exist_ok=True)
        # Rows of the library take a moment, during which names may be lost. A first program waits
        # for them.
        wait = "for (const end = Date.now() + 2000; Date.now() < end;);"
        enter = ('mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && '
                 f'mount --bind /dev dev && pivot_root . old && "$1" -e "{wait}" && exec "$@"')
        run = ["unshare", "-m", "sh", "-c", enter, root, "/usr/bin/node"]
        label = f"{version(run[-1], *run[:-1])} of {suite}"
        library = glob.glob(f"{root}/usr/lib/*/libnode.so.*") or [root / "usr/bin/node"]
        if not is_known(library[0]):
            check_native(label, tmp_path, run)
            return
        got = score(tmp_path, run, root, "0.1", True, "/scenes/scenes.js", timeout=300)
        check(label, got, "0.1", LEAST.get(suite, 0.99))
        text = (tmp_path / "out.txt").read_text(errors="replace")
        assert str(root) not in text
    finally:
        shutil.rmtree(root)


# Flags of V8. Most scenes end in the first tier of each kind.
FLAGS = {
    "jitless": ["--jitless"],
    "bytecode": ["--no-opt"],
    "sparkplug": ["--always-sparkplug"],
    "no-sparkplug": ["--no-sparkplug"],
    "always-turbofan": ["--always-turbofan"],
    "perf-map": ["--perf-basic-prof"],
    "compacting": ["--gc-interval=3000", "--always-compact"],
    "small-heap": ["--max-semi-space-size=1", "--max-old-space-size=40"],
    "inspected": ["--inspect=0"],
}


@pytest.mark.parametrize("how", of_which_check_has(FLAGS, ["perf-map"]))
def test_stacks_are_right_however_v8_runs(how, tmp_path):
    """A perf map names frames that the runtime took over; each appears once."""
    env = {**os.environ, "SCENES_WARM_MS": "10"}
    if how == "perf-map":
        env["SCENES_ONLY"] = "^(plain|inlined|sort|getter|async_after|wide|in_)"
    flags = [f for f in FLAGS[how] if subprocess.run(
        [NODE, f, "-e", "0"], capture_output=True, cwd=tmp_path, env={}).returncode == 0]
    assert flags, f"{version(NODE)} knows none of {FLAGS[how]}"
    # On a busy machine, the few scenes of the perf map have few samples.
    check(f"{version(NODE)} {' '.join(flags)}", score(tmp_path, [NODE, *flags], env=env),
          least=0.9 if how == "perf-map" else 0.98)


def test_workers_one_after_another_have_their_own_names(tmp_path):
    """Each numbers its scripts from the beginning, and they get the same thread pointer."""
    for name in "abc":
        (tmp_path / f"{name}.js").write_text(f"""
function {name}_leaf(end) {{ let s = 0; while (Date.now() < end) s = (s * 31 + 7) | 0; return s; }}
function {name}_mid(end) {{ return {name}_leaf(end) + 1; }}
{name}_mid(Date.now() + 600);
""")
    (tmp_path / "all.js").write_text("""
const { Worker } = require("worker_threads");
const next = ([name, ...rest]) =>
    name && new Worker(`${__dirname}/${name}.js`).on("exit", () => next(rest));
next(["a", "b", "c"]);
""")
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 199, "-o", out, "--", NODE, tmp_path / "all.js")
    assert p.returncode == 0, p.stderr
    for name in "abc":
        leaves = [s for s in interpreted(out) if s and s[-1][0] == f"{name}_leaf"]
        assert len(leaves) > 5
        assert {(f[0], f[1]) for s in leaves for f in s if "_" in f[0]} == {
            (f"{name}_{what}", str(tmp_path / f"{name}.js")) for what in ("leaf", "mid")}


def builtins(program):
    """The builtins' symbols: the name at each address."""
    p = subprocess.run(["nm", program], capture_output=True, text=True, check=True)
    found = re.findall(r"^(\w+) \w (Builtins_\w+)$", p.stdout, re.M)
    return {int(at, 16): name for at, name in found}


@pytest.mark.parametrize("number", of_which_check_has(
    [None, *(n for n in NPM if n not in UNKNOWN)], [None]))
def test_builtins_have_the_names_of_their_symbols_in_stripped_programs(number, tmp_path):
    node, knot = from_npm(number) if number else NODE, tmp_path / "knot"
    assert is_known(node), version(node)
    expected = builtins(node)
    shutil.copy(node, knot)
    subprocess.run(["strip", "-s", knot], check=True)
    p = subprocess.run([f"{BUILD}/prof-symd", "-e", knot], capture_output=True, text=True,
                       input="".join(f"{at:#x}\n" for at in expected))
    assert p.returncode == 0, p.stderr
    got = [line.split(" at ")[0] for line in p.stdout.splitlines()]
    assert len(expected) > 1500 and got == list(expected.values())
    # strip may move code in the file.
    described = [re.sub("0x[0-9a-f]+", "", subprocess.run(
        [f"{BUILD}/prof-symd", "--describe", f], capture_output=True, text=True).stdout)
        for f in (node, knot)]
    assert described[0] == described[1] != ""


@pytest.mark.check_all
def test_a_renamed_and_stripped_node_is_recognized_by_its_contents(tmp_path):
    knot = tmp_path / "knot"
    shutil.copy(NODE, knot)
    subprocess.run(["strip", "-s", knot], check=True)
    check(f"stripped {version(knot)}", score(tmp_path, [knot]))


SPIN = """
const cpu = () => process.cpuUsage().user / 1000;
function spin_here(until) {
    let x = 0;
    while (cpu() < until) for (let i = 0; i < 10000; i++) x = (x * 31 + i) | 0;
    return x;
}
function main() { return spin_here(cpu() + %d); }
main();
"""


@pytest.mark.parametrize("how", of_which_check_has(["none", "set-id", "open"], ["none", "set-id"]))
def test_protected_memory_is_not_read(how, tmp_path):
    node, options = NODE, ["--read-memory", "none"] if how == "none" else []
    if how == "set-id":
        node = tmp_path / "node"
        shutil.copy(NODE, node)
        node.chmod(0o4755)
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 199, *options, "-o", out, "--", node, "-e", SPIN % 600)
    assert p.returncode == 0, p.stderr
    text = out.read_text(errors="replace")
    assert ("spin_here" in text) == (how == "open")
    assert ("[v8: memory not read]" in text) == (how != "open")
    # On a busy machine, the process may be gone when its memory is asked for.
    assert text.count("[v8: gone]") <= 0.2 * text.count("[v8: memory not read]")
    assert "node::Start" in text or how == "set-id"
    assert not p.stderr, p.stderr


TINY = """
function tiny(n) { return n < 2 ? n : tiny(n - 1) + tiny(n - 2); }
const cpu = () => process.cpuUsage().user / 1000;
for (const end = cpu() + 1500; cpu() < end;) tiny(20);
"""


@pytest.mark.parametrize("number", [None, pytest.param("26.12.1", marks=pytest.mark.check_all)])
def test_code_that_has_no_frame_yet_has_a_name(tmp_path, number):
    """A tiny function spends a quarter of its time in its first and last instructions."""
    out = tmp_path / "out.txt"
    node = from_npm(number) if number else NODE
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", node, "-e", TINY)
    assert p.returncode == 0, p.stderr
    leaves = collections.Counter()
    for _, frames in samples(out):
        if any(name == "tiny" for name, *_ in frames):
            leaves[re.sub(r"\+0x.*", "", frames[-1][0])] += 1
    print(dict(leaves))
    assert leaves["tiny"] > 300
    assert sum(leaves.values()) - leaves["tiny"] <= 0.03 * leaves["tiny"], leaves


LARGE = """
function burn(ms) { const end = Date.now() + ms; while (Date.now() < end); }
const text = Array.from({ length: 10 }, (_, k) =>
	Array.from({ length: 16 }, (_, i) => `o.a${(i + k) % 17} = o.b + n;\\n`).join("") +
	"b(n);\\n");
const large = new Function("o", "n", "b", text.join("") + "return o;");
for (let i = 0; i < 3000; i++) large({ b: 1 }, 2, () => 0);
const o = { b: 1 };
for (const end = Date.now() + 2000; Date.now() < end;) large(o, 5, burn);
"""


@pytest.mark.parametrize("number", [None, pytest.param("26.12.1", marks=pytest.mark.check_all)])
def test_calls_in_large_code_have_their_lines(tmp_path, number):
    """Its beginning is more than 32 KiB before some of them."""
    out = tmp_path / "out.txt"
    node = from_npm(number) if number else NODE
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", node, "--no-maglev", "-e", LARGE)
    assert p.returncode == 0, p.stderr
    # Two lines come before a function's text.
    calls = {2 + 17 * (k + 1) for k in range(10)}
    lines = collections.Counter(
        s[i][2] for s in interpreted(out) for i in range(len(s) - 1)
        if s[i + 1][0] == "burn" and s[i][1] == "[eval]")
    print(sorted(lines.items()))
    assert calls <= set(lines) and sum(lines.values()) > 80
    assert sum(n for line, n in lines.items() if line not in calls) <= 0.03 * sum(lines.values())


# In `run`, the calls of `middle` are inlined, and `run` is compiled while its loop runs. Then two
# lines of `middle` call `leaf`, which is not inlined.
INLINED = """
let sink = 0;
const cells = new Float64Array(16);
function leaf(x) {
  for (let i = 0; i < 300; i++) sink = (sink * 31 + x) | 0;
  return sink;
}
%NeverOptimizeFunction(leaf);
function middle(x) {
  let r = x | 0;
  for (let i = 0; i < 3; i++) {
    cells[i] += r;
    r += leaf(r + i);
  }
  r |= 0;
  r += leaf(r);
  return r;
}
function run() {
  for (const end = Date.now() + 2000; Date.now() < end;) {
    sink += middle(sink);
    sink |= 0;
  }
}
run();
"""
COMPILERS = {"turbofan": ["--no-maglev"], "maglev": ["--maglev", "--no-turbofan"]}


@pytest.mark.parametrize("number,compiler", [
    (None, "turbofan"),
    *(pytest.param(*how, marks=pytest.mark.check_all)
      for how in itertools.product(["20.11.0", "21.7.3", "22.23.3", "24.11.1", "24.21.0", "25.9.0",
                                    "26.12.1"], COMPILERS)
      if how[1] == "turbofan" or how[0] > "22")])
def test_code_of_a_running_loop_has_its_inlined_calls(tmp_path, number, compiler):
    """V8's tracebacks say the same: the line of each call, and the function that is inlined."""
    out, program = tmp_path / "out.txt", tmp_path / "inlined.js"
    program.write_text(INLINED)
    node = from_npm(number) if number else NODE
    flags = COMPILERS[compiler] if not number or number > "22" else []
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", node, "--allow-natives-syntax",
                 *flags, program)
    assert p.returncode == 0, p.stderr
    lines = INLINED.split("\n")
    calls = {name: {at + 1 for at, line in enumerate(lines) if text in line}
             for name, text in (("middle", "= leaf("), ("run", "= middle("))}
    got = collections.Counter()
    for stack in interpreted(out):
        if len(stack) > 2 and stack[-1][0] == "leaf" and stack[-2][0] != "[v8: gone]":
            got[tuple((name, line) for name, _, line in stack[-3:-1])] += 1
    print(got.most_common(8))
    right = sum(n for stack, n in got.items()
                if [name for name, _ in stack] == ["run", "middle"]
                and all(line in calls[name] for name, line in stack))
    assert sum(got.values()) > 40 and right >= 0.9 * sum(got.values())
    assert {stack[-1] for stack in got} >= {("middle", at) for at in calls["middle"]}


NEWER_V8 = """
#include <time.h>
int major __asm__("_ZN2v88internal7Version6major_E") = 99;
int minor __asm__("_ZN2v88internal7Version6minor_E") = 1;
int build __asm__("_ZN2v88internal7Version6build_E") = 2;
int patch __asm__("_ZN2v88internal7Version6patch_E") = 3;
int main(void)
{
	volatile long n = 0;
	while (clock() < CLOCKS_PER_SEC / 3)
		n = n + 1;
	return 0;
}
"""


def test_an_unknown_version_is_logged_once_and_keeps_native_frames(tmp_path):
    """Two files that claim to be V8 99."""
    (tmp_path / "unknown.c").write_text(NEWER_V8)
    for number in "12":
        subprocess.run(["gcc", "-O1", "-rdynamic", "-o", tmp_path / number,
                        f"-Wl,--build-id=0x{number * 40}", tmp_path / "unknown.c"], check=True)
    p = profpipe("record", "-F", 199, "-o", tmp_path / "out.txt", "--", "sh", "-c",
                 "./1 & ./2; wait", cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert p.stderr.count("V8 99.1.2.3: this build is not known") == 1, p.stderr
    assert not any(interpreted(tmp_path / "out.txt"))
    assert "main" in (tmp_path / "out.txt").read_text(errors="replace")


# Each function has a script whose name is a concatenation, and makes objects that the garbage
# collector moves, together with that name.
MOVING = r"""
const vm = require("vm");
const cpu = () => process.cpuUsage().user / 1000;
let kept = [];
function churn(ms) {
    for (const end = cpu() + ms; cpu() < end;) {
        kept = [];
        for (let i = 0; i < 20000; i++) kept.push({ i, text: "x" + i });
    }
}
for (let i = 0; i < 150; i++)
    vm.runInThisContext(`(function moving_${i}(churn) {\nchurn(10);\n})`,
                        ["/made/moving", i].join("_"))(churn);
const ends = ["/end", "/deep"];
vm.runInThisContext("(function rope(churn) {\nchurn(200);\n})",
                    "/made/" + kept.length + "/rope" + ends[0] + ends[1])(churn);
"""


def test_files_are_right_while_the_garbage_collector_moves_their_names(tmp_path):
    """A name that lacks parts shows that."""
    out, script = tmp_path / "out.txt", tmp_path / "moving.js"
    script.write_text(MOVING)
    p = profpipe("record", "-q", "-F", 999, "-o", out, "--", NODE, "--max-semi-space-size=1",
                 script)
    assert p.returncode == 0, p.stderr
    seen = collections.Counter()
    for stack in interpreted(out):
        for name, file, _ in stack:
            m = re.fullmatch(r"moving_(\d+)", name)
            if m:
                assert file == f"/made/moving_{m[1]}"
            if name == "rope":
                assert file == "/made/20000.../end/deep"
            seen[m[0] if m else name] += bool(m or name == "rope")
    print(f"{sum(seen.values())} frames")
    assert seen["rope"] > 50 and sum(f"moving_{i}" in seen for i in range(150)) > 140


# One text makes functions with names of their own. Each runs a function whose name has its number.
NAMED = """
const vm = require("vm");
const cpu = () => process.cpuUsage().user / 1000;
function burn(ms) {
    let x = 0;
    for (const end = cpu() + ms; cpu() < end;)
        for (let i = 0; i < 10000; i++) x = (x * 31 + i) | 0;
    return x;
}
const make = (key) => ({ [key](run) { return run(); } })[key];
const keys = ["one", "two", 3, Symbol.iterator, Symbol("two words"), Symbol(),
              "日本", "x".repeat(65)];
keys.forEach((key, i) => {
    const burn_in = vm.runInThisContext(`(burn) => function burn_in_${i}() { return burn(80); }`);
    make(key)(burn_in(burn));
});
const changed = make("changed");
Object.defineProperty(changed, "name", { value: "another" });
changed(vm.runInThisContext("(burn) => function burn_in_8() { return burn(80); }")(burn));
"""
NAMES = ["one", "two", "3", "[Symbol.iterator]", "[two words]", "", "日本", "(anonymous)",
         "another"]


def test_functions_of_one_text_have_their_computed_names(tmp_path):
    out, script = tmp_path / "out.txt", tmp_path / "named.js"
    script.write_text(NAMED)
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", NODE, script)
    assert p.returncode == 0, p.stderr
    seen = collections.Counter()
    for stack in interpreted(out):
        for (name, _, _), (callee, _, _) in zip(stack, stack[1:]):
            m = re.fullmatch(r"burn_in_(\d)", callee)
            if m:
                expected = NAMES[int(m[1])]
                assert name in (expected or "(anonymous)", "[v8: gone]"), (name, callee)
                seen[expected] += name == (expected or "(anonymous)")
    print(dict(seen))
    assert len(seen) == len(NAMES) and min(seen.values()) > 10


NATIVE = """
function inner(a, b) { spin_inner(); return a - b; }
function spin_inner() {
    const end = process.cpuUsage().user + 3e5;
    while (process.cpuUsage().user < end) for (let i = 0; i < 10000; i++);
}
function outer() { return [2, 1].sort(inner); }
function main() { outer(); JSON.stringify({ toJSON() { outer(); } }); }
main();
"""


def test_native_frames_stand_between_javascript_ones(tmp_path):
    """Where V8's own code calls JavaScript: builtins, and functions of C++ with the frames that
    enter and leave JavaScript."""
    out, script = tmp_path / "out.txt", tmp_path / "order.js"
    script.write_text(NATIVE)
    p = profpipe("record", "-q", "-F", 199, "-o", out, "--", NODE, script)
    assert p.returncode == 0, p.stderr
    whole = 0
    for _, frames in samples(out):
        names = [name.rsplit(".", 1)[-1] if binary == "[interpreted]" else name
                 for name, binary, _, _ in frames]
        kinds = [binary == "[interpreted]" for _, binary, _, _ in frames]
        if "spin_inner" not in names or not any("truncated" not in n for n in names):
            continue
        # From C to JavaScript, the sort between two functions, and C++ below JSON.stringify.
        first = kinds.index(True)
        assert any("node::" in n for n in names[:first]), names
        between = names[names.index("outer") + 1:names.index("inner")]
        whole += any("Sort" in n for n in between)
        if "toJSON" in names:
            between = names[names.index("main") + 1:names.index("toJSON")]
            assert any("Json" in n for n in between), names
    assert whole > 50


CALLS = """
const cpu = () => process.cpuUsage().user / 1000;
const make = (i) => (0, eval)(`(function quick_${i}(x) { return x + ${i}; })`);
const quick = Array.from({ length: 12 }, (_, i) => make(i));
function spin(end) {
    let x = 0;
    while (cpu() < end)
        for (let i = 0; i < 30000; i++)
            x = quick[i % 12](x) & 255;
    return x;
}
function below(end) {
    return spin(end) + 1;
}
below(cpu() + 2500);
"""


@pytest.mark.parametrize("number", of_which_check_has(
    [None, "22.23.3", "24.21.0", "26.12.1"], [None]))
def test_the_caller_of_a_builtin_that_jumps_to_another_one_is_shown(number, tmp_path):
    """The builtins that call any function have no frame."""
    path, out = tmp_path / "calls.js", tmp_path / "out.txt"
    path.write_text(CALLS)
    node = from_npm(number) if number else NODE
    p = profpipe("record", "-q", "-F", "499", "-o", out, "--", node, path)
    assert p.returncode == 0, p.stderr
    callers = collections.Counter()
    for _, frames in samples(out):
        if len(frames) > 1 and re.match("Builtins_Call(Function)?_Receiver", frames[-1][0]):
            callers[frames[-2][0]] += 1
    print(callers)
    wrong = sum(callers.values()) - callers["spin"] - callers["cpu"]
    assert callers["spin"] > 100 and wrong <= few(sum(callers.values()), 0.02)


def test_a_dump_shows_javascript(tmp_path):
    script = tmp_path / "spin.js"
    script.write_text(SPIN % 20000)
    with subprocess.Popen([NODE, script]) as program:
        try:
            time.sleep(1)
            p = profpipe("dump", program.pid)
            assert p.returncode == 0, p.stderr
        finally:
            program.kill()
    print(p.stdout)
    names = re.findall(r"^\d+ 0x[0-9a-f]+ (\S+) (\S+:\d+)$", p.stdout, re.M)
    shown = [(name.rsplit(".", 1)[-1], place) for name, place in names]
    assert [name for name, place in shown if place.startswith(f"{script}:")][-2:-1] == ["main"]
    assert ("main", f"{script}:8") in shown and any(name == "spin_here" for name, _ in shown)
    assert "truncated" not in p.stdout
