# SPDX-License-Identifier: Apache-2.0
"""Makes programs of many functions that call each other, and compares stacks with what the program
can be in.

`python3 tests/e2e/v8_generated.py SEED PROGRAM.js` makes a program. With an OUT.txt after it, it
prints which stacks of that text output are wrong instead."""
import collections
import os
import random
import sys

from v8_stacks import interpreted

KINDS = ["plain"] * 5 + ["arrow", "method", "static", "closure", "forEach", "map", "reduce", "try",
                         "generator", "leaf", "leaf", "getter", "call", "switch"]
CALLS = {"method": "o_{0}.{0}({1})", "static": "C_{0}.{0}({1})", "getter": "o_{0}.set({1}).{0}",
         "call": "{0}.call(null, {1})"}
CALLBACKS = {"forEach": ("[1, 2].forEach(function ", "v", "", "});"),
             "map": ("r = [r, 2].map(function ", "v", "let r = v | 0;", "})[0];"),
             "reduce": ("r = [r, 2, 3].reduce(function ", "p, v", "let r = (p + v) | 0;",
                        "}, 0);")}
BURNS = [["r = (Math.imul(r, 37) + {n}) | 0;"],
         ["for (let i = 0; i < {n}; i++)", "\tr = (Math.imul(r, 31) + (i ^ r >>> 3)) | 0;"],
         ["a[r & 63] = (a[r >>> 6 & 63] + r) | 0;", "r = (r ^ a[r & 31] << 1) | 0;"],
         ["for (let i = 0; i < {n}; i++) {{", "\tr ^= r << 13;", "\tr ^= r >>> 17;",
          "\tr ^= r << 5;", "}}"]]


class Program:
    """calls: of each function and line, the functions that it calls there. places: the first and
    the last line of each function."""

    def __init__(self, seed, levels=10, width=24):
        self.random = random.Random(seed)
        self.levels, self.width = levels, width
        self.lines, self.calls, self.places = [], collections.defaultdict(list), {}
        self.kinds = {self.name(level, i): self.random.choice(KINDS if level < levels - 1
                                                              else ["leaf"])
                      for level in range(levels) for i in range(width)}
        self.emit(0, '"use strict";', "const a = new Int32Array(64);")
        for level in reversed(range(levels)):
            for i in range(width):
                self.define(self.name(level, i), level)
        self.main()

    @staticmethod
    def name(level, i):
        return f"f{level}_{i}"

    def emit(self, indent, *lines):
        """Returns the number of the last line."""
        self.lines += ["\t" * indent + line for line in lines]
        return len(self.lines)

    def burn(self, indent):
        n = self.random.choice([1, 3, 8, 20, 60])
        self.emit(indent, *(line.format(n=n) for line in self.random.choice(BURNS)))

    def call(self, caller, callee, indent, condition=""):
        target = CALLS.get(self.kinds[callee], "{0}({1})").format(callee, "r")
        line = self.emit(indent, f"{condition}r = (r + {target}) | 0;")
        self.calls[caller, line].append(callee)

    def body(self, name, level, indent):
        self.burn(indent)
        if level == self.levels - 1 or self.kinds.get(name) == "leaf":
            return
        for _ in range(self.random.choice([1, 2, 2, 3])):
            callee = self.name(level + 1, self.random.randrange(self.width))
            condition = self.random.choice(["", "if (r & 1) ", "if (r & 1) ", "if (r & 2) "])
            self.call(name, callee, indent, condition)
            if self.random.random() < .6:
                self.burn(indent)

    def function(self, name, level, head, tail, first="let r = x | 0;", indent=0):
        begin = self.emit(indent, head)
        self.emit(indent + 1, first)
        self.body(name, level, indent + 1)
        self.emit(indent + 1, "return r;")
        self.places[name] = begin, self.emit(indent, tail)

    def define(self, name, level):
        kind = self.kinds[name]
        if kind == "arrow":
            self.function(name, level, f"const {name} = (x) => {{", "};")
        elif kind == "closure":
            self.function(name, level, f"const {name} = ((y) => function {name}(x) {{", "})(3);",
                          "let r = (x + y) | 0;")
        elif kind == "generator":
            begin = self.emit(0, f"function* g_{name}(x) {{")
            self.emit(1, "let r = x | 0;")
            self.body(f"g_{name}", level, 1)
            self.places[f"g_{name}"] = begin, self.emit(1, "yield r;", "return r;") + 1
            begin = self.emit(0, "}", f"function {name}(x) {{")
            # The line that leaves the loop ends the generator.
            for line in (f"\tfor (const v of g_{name}(x))", "\t\treturn v;"):
                self.calls[name, self.emit(0, line)].append(f"g_{name}")
            self.places[name] = begin, self.emit(0, "}")
        elif kind in ("method", "static", "getter"):
            self.emit(0, f"class C_{name} {{")
            if kind == "getter":
                self.emit(1, "set(v) {", "\tthis.v = v;", "\treturn this;", "}")
            head = {"method": f"{name}(x) {{", "static": f"static {name}(x) {{",
                    "getter": f"get {name}() {{"}[kind]
            self.function(name, level, head, "}",
                          "let r = this.v | 0;" if kind == "getter" else "let r = x | 0;", 1)
            self.emit(0, "}", *([f"const o_{name} = new C_{name}();"] * (kind != "static")))
        else:
            self.declare(name, level, kind)

    def declare(self, name, level, kind):
        begin = self.emit(0, f"function {name}(x) {{")
        self.emit(1, "let r = x | 0;")
        if kind in CALLBACKS:
            head, parameters, first, tail = CALLBACKS[kind]
            line = self.emit(1, f"{head}cb_{name}({parameters}) {{")
            self.calls[name, line].append(f"cb_{name}")
            self.emit(2, *([first] * bool(first)))
            self.body(f"cb_{name}", level, 2)
            self.emit(2, *(["return r;"] * bool(first)))
            self.places[f"cb_{name}"] = line, self.emit(1, tail)
        elif kind == "try":
            self.emit(1, "try {")
            self.body(name, level, 2)
            self.emit(1, "\tif ((r & 255) === 7)", "\t\tthrow new RangeError('x');",
                      "} catch (e) {", "\tr = (r + 1) | 0;", "}")
        elif kind == "switch":
            self.emit(1, "switch (r & 3) {")
            for case in range(3):
                self.emit(1, f"case {case}:")
                self.body(name, level, 2)
                self.emit(2, "break;")
            self.emit(1, "}")
        else:
            self.body(name, level, 1)
        self.emit(1, "return r;")
        self.places[name] = begin, self.emit(0, "}")

    def main(self):
        begin = self.emit(0, "function main(end) {", "\tlet r = 1;",
                          "\twhile (Date.now() < end) {") - 2
        for i in range(self.width):
            self.call("main", self.name(0, i), 2)
        self.places["main"] = begin, self.emit(1, "}", "return r;") + 1
        self.emit(0, "}", "main(Date.now() + 1000 * process.argv[2]);")

    def write(self, path):
        with open(path, "w") as f:
            f.write("\n".join(self.lines) + "\n")

    def wrong(self, stack, path):
        """What is wrong with the frames of this program, in words; None: nothing is. The last line
        may be any of its function."""
        own = [(name.rsplit(".", 1)[-1].split(" ")[-1], line) for name, file, line in stack
               if file == os.fspath(path)]
        own = [f for f in own if f[0] not in ("(anonymous)", "set")]
        if own and own[0][0] != "main":
            return f"main is missing: {own}"
        for (name, line), (callee, _) in zip(own, own[1:]):
            if callee not in self.calls[name, line]:
                return f"{name}:{line} does not call {callee}: {own}"
        if own:
            name, line = own[-1]
            if name not in self.places or not (self.places[name][0] <= line <=
                                               self.places[name][1]):
                return f"{name} has no line {line}: {own}"
        return None

    def compare(self, path, out):
        """Returns how many stacks of a text output have frames of this program, and which of these
        are wrong. Stacks with a frame without a name do not count: it may be any function."""
        stacks = [s for s in interpreted(out) if any(f[1] == os.fspath(path) for f in s)
                  and not any(f[0].startswith("[v8: ") for f in s)]
        return len(stacks), [w for s in stacks for w in [self.wrong(s, path)] if w]


if __name__ == "__main__":
    made = Program(int(sys.argv[1]))
    if len(sys.argv) > 3:
        total, found = made.compare(os.path.abspath(sys.argv[2]), sys.argv[3])
        print(*found, f"{len(found)} of {total} are wrong", sep="\n")
    else:
        made.write(sys.argv[2])
