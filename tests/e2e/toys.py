# SPDX-License-Identifier: Apache-2.0
"""What `live` (tests/skeleton/live.c) prints of the toy runtimes' programs, and the stacks that
these programs can have."""
import bisect
import collections
import functools
import itertools
import re
import subprocess

# By program, the ways from main to its innermost frames. A number behind an interpreted frame is
# the position in it of the call.
INTERPRETED = ("alpha:0/one;beta:1/one;call_gamma;gamma", "run_brief;brief")
ENTER = "toyjit_enter"
GENERATED = (f"{ENTER};alpha:33;beta:42;call_gamma;{ENTER};gamma", f"run_brief;{ENTER};brief",
             f"{ENTER};down:42;call_down;" * 10 + f"{ENTER};gamma")
# Where the function that enters the code is taken over as well.
ENTERED = tuple(way.replace(ENTER, "enter:20") for way in GENERATED)
WAYS = {"program": INTERPRETED, "chains": INTERPRETED, "toyjit": GENERATED, "toyjit-loop": ENTERED}
SERIALS = {"program": {1: "alpha", 2: "beta", 3: "gamma", 1 << 40: "one"},
           "toyjit": {1: "gamma", 2: "beta", 3: "alpha", 4: "down", 1 << 40: "enter"}}


def check_of(serial):
    """As both toys compute it (toy_check)."""
    return (serial * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 24


@functools.lru_cache(None)
def functions(program):
    """The functions of a program: their places in its file, and their names."""
    out = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    load = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True,
                          check=True).stdout
    offset, address = (int(n, 16) for n in re.search(
        r"LOAD +(\S+) (\S+) .* R E ", load).groups())
    found = sorted((int(m[1], 16) - address + offset, m[2])
                   for m in re.finditer(r"^(\w+) [tT] (\w+)$", out, re.M))
    return [place for place, _ in found], [name for _, name in found]


def named(frame, program, serials):
    """A frame of `live` with names. Functions that were freed may have any other serial."""
    m = re.fullmatch(r"@(\w+):(\d+)(?:/(\w+))?", frame)
    if m:
        name = serials.get(int(m[1], 16), "brief")
        return f"{name}:{m[2]}" + (f"/{serials[int(m[3], 16)]}" if m[3] else "")
    file, _, place = frame.lstrip("?").partition("+")
    if file != program.rsplit("/", 1)[-1]:
        return file
    places, names = functions(program)
    return names[bisect.bisect_right(places, int(place, 16) - 1) - 1]


def is_way(frames, way):
    """Whether the frames follow a way, to its end or not, and then native frames. The innermost
    interpreted one may be anywhere in its code."""
    innermost = max((i for i, f in enumerate(frames) if ":" in f), default=-1)
    for i, (frame, expected) in enumerate(itertools.zip_longest(frames, way)):
        if frame is None:
            return True
        if expected is None or frame != expected:
            return innermost < i or (innermost == i and expected is not None and
                                     frame.split(":")[0] == expected.split(":")[0] and
                                     frame.partition("/")[2] == expected.partition("/")[2])
    return True


class Walked:
    """What `live` reports about its Nth program, at that path: figures, and samples by stack from
    main on. wrong: stacks that the program cannot have had. native: those where the function that
    enters the code was not taken over; another program does this on purpose. left: the ways that
    were never seen complete."""

    def __init__(self, text, number, program):
        name = program.rsplit("/", 1)[-1]
        serials = {check_of(n): of for n, of in
                   SERIALS["toyjit" if "jit" in name else "program"].items()}
        ways = [way.split(";") for way in WAYS[name]]
        self.figures, self.stacks = {}, collections.Counter()
        self.wrong, self.left, self.native = collections.Counter(), set(WAYS[name]), 0
        entered = [way.replace(ENTER, "toyjit_saved").split(";") for way in GENERATED]
        for line in re.findall(rf"^{number} (.*)$", text, re.M):
            reason, _, frames = line.partition(" ")
            if reason == "samples":
                self.figures = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", line)}
                continue
            names = [named(f, program, serials) for f in frames.split(";") if not f.startswith("~")]
            where = names.index("main") + 1 if "main" in names else 0
            stack = names[where:]
            self.stacks[";".join(stack)] += 1
            if (reason != "complete" or not where or "?" in frames
                    or not any(is_way(stack, way) for way in ways)):
                if name == "toyjit-loop" and any(is_way(stack, way) for way in entered):
                    self.native += 1
                else:
                    self.wrong[f"{reason} {';'.join(names)}"] += 1
            self.left -= {";".join(way) for way in ways if len(stack) >= len(way)
                          and is_way(stack, way) and ":" in stack[len(way) - 1]}
        self.samples = sum(self.stacks.values())

    def check(self, least, native=0):
        assert self.samples >= least, (self.figures, self.stacks)
        assert not self.wrong, self.wrong
        assert self.native <= native, self.stacks
        assert not self.left, (self.left, self.stacks)
