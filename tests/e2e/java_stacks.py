# SPDX-License-Identifier: Apache-2.0
"""The scenes of tests/e2e/java: builds and runs them, and compares what was sampled with the stacks
that Java itself reports."""
import collections
import glob
import json
import os
import re
import subprocess

from conftest import profpipe

FOLDER = os.path.join(os.path.dirname(__file__), "java")
SCENES = os.path.join(FOLDER, "scenes")
# Debian's own Java, and any other one on the machine.
JAVAS = sorted({os.path.realpath(path) for path in glob.glob("/usr/lib/jvm/*/bin/java")})
JAVA = os.path.realpath("/usr/bin/java")
# Cpu time in each phase of a scene.
SECONDS = "0.03"
FREQUENCY = 499

# A frame of Java. descriptor: "(ILjava/lang/String;)V", "" if it is unknown. inlined: in the frame
# before it, None if that is unknown.
Frame = collections.namedtuple("Frame", "method descriptor file line inlined")
BASE = dict(zip("BCDFIJSZV",
                "byte char double float int long short boolean void".split()))


# A method of more than 8,000 bytes, which no compiler takes, with a line far from its start.
HUGE = "\n".join([
    "package scenes;", "final class Huge {", "    static long huge(long x) {",
    "        long y = x;",
    *(f"        y = x < {70000 + i} ? y * {50000 + i} + x : y ^ x;" for i in range(420)),
    "        Spots.huge_method();", "        return y;", "    }", "}", ""])


def built(folder, *libraries, for_all=False):
    """Compiles all programs of tests/e2e/java, by one run of javac, and native methods of these C
    files. for_all: the programs are for every Java from 8 on, and those that need more for what
    they need. Returns the class path."""
    javac = ["/usr/bin/javac", "-J-XX:TieredStopAtLevel=1", "-nowarn", "-Xlint:-options",
             "-proc:none", "-cp", folder, "-d", folder]
    newest = int(version(JAVA).split(".")[0])
    (folder / "Huge.java").write_text(HUGE)
    of_release = collections.defaultdict(list)
    for path in sorted([*glob.glob(f"{FOLDER}/*/*.java"), f"{folder}/Huge.java"]):
        release = int(re.fullmatch(r"\D*(\d*)\.java", os.path.basename(path))[1] or 8)
        if release <= newest:
            of_release[release if for_all else newest].append(path)
    for release, paths in sorted(of_release.items()):
        subprocess.run([*javac, "--release", str(release), *paths], check=True,
                       capture_output=True, timeout=120)
    home = os.path.dirname(os.path.dirname(os.path.realpath(javac[0])))
    for source in libraries or (f"{SCENES}/scenes.c",):
        name = os.path.basename(source)[:-2]
        subprocess.run(["gcc", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                        "-shared", "-fPIC", f"-I{home}/include", f"-I{home}/include/linux", "-o",
                        f"{folder}/lib{name}.so", source, "-ldl"], check=True)
    folder.chmod(0o755)
    return folder


def version(java, *prefix):
    p = subprocess.run([*prefix, java, "-version"], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return re.search(r'version "(1\.)?([^"]*)"', p.stderr)[2]


def java_types(descriptor):
    """The parameters of a descriptor, written as in Java: "int, java.lang.String"."""
    types = []
    for m in re.finditer(r"(\[*)(?:L([^;]*);|([BCDFIJSZ]))", descriptor[1:descriptor.index(")")]):
        types.append((m[2].replace("/", ".") if m[2] else BASE[m[3]]) + "[]" * len(m[1]))
    return ", ".join(types)


def plain(name):
    """A name without the parts that differ between runs: numbers and addresses of hidden
    classes."""
    name = re.sub(r"\$\$Lambda(\$\d+)?((/|\.|\+)(0x[0-9a-f]+|\d+))?", "$$Lambda", name)
    name = re.sub(r"(LambdaForm\$\w+?)(\d+)?(([/+.])(0x[0-9a-f]+|\d+))?(?=\.|$)", r"\1", name)
    name = re.sub(r"(/|\+)(0x[0-9a-f]+|\d+)", "", name)
    return re.sub(r"(GeneratedMethodAccessor|GeneratedConstructorAccessor|\$Proxy)\d+", r"\1",
                  name)


def reported(path):
    """What Java reported: {(scene, phase): frames, root first}."""
    stacks, stack = {}, None
    with open(path, encoding="utf-8") as f:
        for line in f:
            fields = line.rstrip("\n").split("\t")
            if fields[0]:
                stack = stacks[tuple(fields)] = []
                continue
            _, owner, method, descriptor, file, number = fields
            # For a hidden frame, Java 8 counts bytes of its code, from a million on.
            line_of = int(number) if 0 < int(number) < 1000000 else 0
            stack.insert(0, Frame(f"{plain(owner)}.{method}", descriptor, file, line_of, None))
    return stacks


LINE = re.compile(r"\t +([0-9a-f]+) (.*?) \((\[interpreted\]|inlined|[^()]*|\(deleted\))\)"
                  r"(?: (.*?)(?::(\d+))?)?\n")


def sampled(path):
    """The stacks of a text output: (command, frames, root first). A frame is a Frame of Java, or
    the name of another function."""
    stacks, stack, waiting, command = [], [], [], ""
    with open(path, errors="replace", encoding="utf-8") as f:
        for line in f:
            if not line.startswith("\t"):
                if line.strip():
                    command = line
                elif stack:
                    stacks.append((command, stack[::-1]))
                    stack, waiting = [], []
                continue
            m = LINE.fullmatch(line)
            if not m:
                stack.append(line.strip())
                continue
            if m[3] == "inlined":
                waiting.append(m)
                continue
            # Inlined calls come before the frame that contains them.
            if m[3] == "[interpreted]":
                stack += [frame_of(w, True) for w in waiting]
                # Stubs are not methods.
                stack.append(m[2] if re.match(r"\[(?!\w+: )", m[2]) else frame_of(m, False))
            else:
                stack += [w[2] for w in waiting] + [m[2]]
            waiting = []
    if stack:
        stacks.append((command, stack[::-1]))
    return stacks


def frame_of(m, inlined):
    name, _, arguments = m[2].partition("(")
    # Java knows only the last part of the path.
    return Frame(plain(name), f"({arguments}" if arguments else "", m[4] or "", int(m[5] or 0),
                 inlined)


def is_right(got, expected):
    """Whether a sampled frame equals the reported one."""
    return (isinstance(got, Frame) and got.method == expected.method and
            (not got.descriptor or not expected.descriptor or
             got.descriptor == f"({java_types(expected.descriptor)})") and
            got.line == expected.line and
            (got.file == expected.file or not expected.line))


# The part of a virtual thread's stack near the root, which Java does not report: its carrier.
CARRIER = re.compile(r"java\.util\.concurrent\.Fork.*|java\.lang\.VirtualThread.*|"
                     r"jdk\.internal\.vm\.Continuation.*|java\.lang\.invoke\..*|"
                     r"java\.util\.concurrent\.Executors.*|java\.lang\.Thread.*")


class Score:
    """For each scene and phase: the number of samples, how many have exactly the right stack, and
    the first that does not."""

    def __init__(self, expected, stacks):
        self.right, self.all_of = collections.Counter(), collections.Counter()
        self.wrong, self.spots = {}, []
        for _, stack in stacks:
            java = [f for f in stack if isinstance(f, Frame)]
            at = next((i for i, f in enumerate(java) if f.method.startswith("scenes.Spots.")), None)
            if at is None:
                continue
            phase = next((m[1].lower() for f in java[at:]
                          for m in [re.match(r"scenes\.Mark\$(Cold|Hot)\.at", f.method)] if m),
                         None)
            if not phase:
                continue
            scene = java[at].method.rsplit(".", 1)[-1], phase
            self.add(scene, java[:at + 1], expected.get(scene, []))
            self.spots.append((scene, stack))

    def add(self, scene, got, expected):
        self.all_of[scene] += 1
        root = got[:len(got) - len(expected)] if scene[0].startswith("virtual_") else []
        seen = got[len(root):]
        if len(seen) == len(expected) and all(map(is_right, seen, expected)) and all(
                CARRIER.fullmatch(f.method) for f in root):
            self.right[scene] += 1
        else:
            self.wrong.setdefault(scene, (got, expected))

    def share(self):
        """The share of all samples that have exactly the reported stack."""
        return sum(self.right.values()) / max(1, sum(self.all_of.values()))

    def print_table(self, label):
        total = sum(self.all_of.values())
        print(f"{label}: {self.share():.2%} of {total} samples in {len(self.all_of)} phases of "
              f"{len({s for s, _ in self.all_of})} scenes")
        for scene, (got, expected) in sorted(self.wrong.items()):
            print(f"  {' '.join(scene)}: {self.right[scene]} of {self.all_of[scene]}")
            root = max(0, next((i for i, (g, e) in enumerate(zip(got, expected))
                                if not is_right(g, e)), min(len(got), len(expected))) - 1)
            for name, frames in (("got", got), ("expected", expected)):
                print(f"    {name} {len(frames)}, from {root} on:")
                for f in frames[root:root + 6]:
                    print(f"      {f.method}{f.descriptor} {f.file}:{f.line}")


def ran(java, classes, tmp_path, *flags, seconds=SECONDS, scenes=(), prefix=(), root="", env=None):
    """Records the scenes. Returns what Java reported, what was sampled, and the run's summary.
    prefix, root: a command that runs java in this folder as root, and the folder."""
    out, summary = tmp_path / "out.txt", tmp_path / "summary.json"
    said = "/stacks" if root else str(tmp_path / "stacks")
    p = profpipe("record", "-q", "-F", FREQUENCY, "-o", out, "--summary", summary, "--", *prefix,
                 java, *flags, f"-Djava.library.path={classes}", "-cp", classes, "scenes.Main",
                 seconds, said, *scenes, env=env)
    assert p.returncode == 0, p.stderr
    return reported(f"{root}{said}"), sampled(out), json.loads(summary.read_text())
