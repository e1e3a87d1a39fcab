# SPDX-License-Identifier: Apache-2.0
"""Compares stacks of a text output with V8's own tracebacks (tests/e2e/javascript/scenes.js).

`python3 tests/e2e/v8_stacks.py SCENES.json OUT.txt` prints the table of a run."""
import collections
import json
import re
import sys

FRAME = re.compile(r"\t +[0-9a-f]+ (.*) \((.*?)\)(?: (.*?)(?::(\d+))?)?")
# The marks of a function without a name.
NAMELESS = ("", "<anonymous>", "(anonymous)", "anonymous", "<module>")
# Functions of V8 that its tracebacks show, but that are native frames or no frames at all.
NO_SCRIPT = ("native",)
# Scenes with a frame that is known not to be as the traceback says, and why.
KNOWN = {
    "wasm_hot": "a function of WebAssembly that is inlined in another one",
    "computed_hot|instanceof_hot|pieces": "a computed name that is inlined, or of many parts",
    "far_lines|wide": "the line is too far from the beginning of its function",
    "module": "the top level of a module is entered in its middle",
}
KNOWN_SCENE = re.compile(f"({'|'.join(KNOWN)})(_hot)?")


def samples(path):
    """Yields the head and the frames of each sample of a text output, root first: (function,
    binary, file, line). An inlined call has the binary of the frame that it is inlined into."""
    head, frames, inlined = None, [], []
    with open(path, errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if not line.startswith("\t"):
                if head is not None:
                    yield head, frames[::-1]
                head, frames, inlined = (line if line else None), [], []
                continue
            m = FRAME.fullmatch(line)
            if not m:
                continue
            name, binary, file, number = m[1], m[2], m[3] or "", int(m[4] or 0)
            if binary == "inlined":
                inlined.append((name, file, number))
                continue
            frames += [(n, binary, s, at) for n, s, at in inlined]
            frames.append((name, binary, file, number))
            inlined = []
    if head is not None:
        yield head, frames[::-1]


def interpreted(path):
    """The JavaScript frames of each sample, root first: (function, file, line). Tracebacks do not
    show regular expressions."""
    return [[(name, file, line) for name, binary, file, line in frames
             if binary == "[interpreted]" and name != "(regexp)"] for _, frames in samples(path)]


def scene_of(name):
    m = re.search(r"(?:^|[. ])spin_(\w+)$", name)
    return m and m[1]


def same_name(got, expected, what):
    """A name may follow that of its module or class."""
    if not expected or (what == "eval" and expected == "eval"):
        return any(got == n or got.endswith("." + n) for n in NAMELESS + ("eval",))
    return got == expected or got.endswith("." + expected)


def same(got, expected, lines=True):
    """Whether a frame equals the traceback's. Code that was made at run time has no file,
    WebAssembly no lines, and a module is shown by its path. lines: whether each line has to be
    there."""
    (name, file, line), (function, source, at, what) = got, expected
    source = re.sub("^file://", "", source)
    # Whether a function of Node.js has an inferred name depends on when it was compiled.
    own = not function and source.startswith(("node:", "internal/"))
    if not own and not same_name(name, function, what):
        return False
    if what == "wasm":
        return True
    return ((line == at or not (lines or line))
            and (file == source or what == "eval" or not source))


def differs(got, expected, lines):
    """What is wrong with a stack, in a word; None: it is right."""
    if len(got) == len(expected) and all(same(g, e, lines) for g, e in zip(got, expected)):
        return None
    if any(g[0].startswith("[") for g in got):
        return "unnamed"
    if len(got) < len(expected):
        return "missing"
    if len(got) > len(expected):
        return "added"
    for g, e in zip(got, expected):
        if not same_name(g[0], e[0], e[3]):
            return "name"
        if not same((g[0], g[1], e[2]), e):
            return "file"
    return "line"


class Score:
    """What a recording shows of the scenes.

    right, all: samples by scene, but for those of KNOWN. known_right, known: the same of those.
    wrong: of each scene a wrong stack, as an example. kinds: how many are wrong in which way.
    astray: samples whose spin function has a wrong line. visited: scenes that the program has.
    shown: samples with JavaScript. unnamed: those with a frame that has no name. frames, lined:
    how many frames there are, and how many of them have a line. lines: whether all should."""

    def __init__(self, scenes, stacks, lines=True):
        self.lines, self.frames, self.lined, self.unnamed, self.shown = lines, 0, 0, 0, 0
        self.known, self.known_right = collections.Counter(), collections.Counter()
        self.right, self.all = collections.Counter(), collections.Counter()
        self.wrong, self.kinds, self.astray = {}, collections.Counter(), 0
        expected = collections.defaultdict(list)
        for r in scenes:
            expected[r["scene"]].append([f for f in r["stack"] if f[3] not in NO_SCRIPT])
        self.visited = {scene for scene in expected if not KNOWN_SCENE.fullmatch(scene)}
        for stack in stacks:
            self.shown += bool(stack)
            self.unnamed += any(name.startswith("[v8: ") for name, _, _ in stack)
            at = next((i for i, f in enumerate(stack) if scene_of(f[0])), None)
            if at is None:
                continue
            scene = scene_of(stack[at][0])
            kinds = [differs(stack[:at], e, lines) for e in expected[scene]] or ["no scene"]
            if KNOWN_SCENE.fullmatch(scene):
                self.known[scene] += 1
                self.known_right[scene] += None in kinds
                continue
            self.all[scene] += 1
            if None in kinds:
                self.right[scene] += 1
            else:
                self.kinds[kinds[0]] += 1
                self.wrong.setdefault(scene, (kinds[0], stack[:at],
                                             expected[scene][0] if expected[scene] else None))
            self.frames += len(stack)
            self.lined += sum(line > 0 for _, _, line in stack)
            # The function's lines are 2 to 10 of its file.
            self.astray += not (2 <= stack[at][2] <= 10 or not (lines or stack[at][2]))

    def total(self):
        return sum(self.right.values()) / max(1, sum(self.all.values()))

    def below(self, share):
        """Scenes in which a smaller share of the samples is right."""
        return sorted(scene for scene in self.all if self.right[scene] < share * self.all[scene])

    def table(self, label, examples=True):
        count = sum(self.all.values())
        lines = [f"{label}: {self.total():.2%} of {count} samples in {len(self.all)} of "
                 f"{len(self.visited)} scenes; {len(self.below(0.99))} scenes below 99 %; "
                 f"wrong: {dict(self.kinds)}; {self.astray} astray; "
                 f"{self.lined / max(1, self.frames):.2%} of the frames have a line; "
                 f"{self.unnamed} of {self.shown} samples with a frame without a name; "
                 f"known scenes: {sum(self.known_right.values())} of "
                 f"{sum(self.known.values())} right"]
        for scenes, why in KNOWN.items():
            ours = [r for r in sorted(self.known) if re.fullmatch(f"({scenes})(_hot)?", r)]
            wrong = " ".join(f"{scene} {self.known_right[scene]}/{self.known[scene]}"
                             for scene in ours
                             if self.known_right[scene] < 0.99 * self.known[scene])
            if wrong:
                lines.append(f"  known, because {why}: {wrong}")
        for scene, (kind, got, expected) in sorted(self.wrong.items()):
            lines.append(f"  {scene}: {self.right[scene]} of {self.all[scene]}: {kind}")
            if examples and expected is not None:
                at = next((i for i, (g, e) in enumerate(zip(got, expected))
                           if not same(g, e, self.lines)), min(len(got), len(expected)))
                lines.append(f"    at frame {at} of {len(expected)} (got {len(got)})\n"
                             f"    got      {got[max(0, at - 1):at + 3]}\n"
                             f"    expected {expected[max(0, at - 1):at + 3]}")
        return "\n".join(lines)


if __name__ == "__main__":
    with open(sys.argv[1]) as said:
        print(Score(json.load(said), interpreted(sys.argv[2])).table(sys.argv[2]))
