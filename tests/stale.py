#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints each name in a comment of bpf/, common/ and tools/ that nothing has any more, for `make
lint`:

- a source file, `name.c` or `folder/name.h`, that is not in the tree
- a constant in capital letters that begins like a noun (the name of a file without its ending) and
  that no code has

    stale.py FILE...     all files of the project
"""
import os
import re
import sys

OURS = re.compile(r"(bpf|common|tools)/.*\.(c|h|def)$")
# C sources, and what also defines names.
CODE = re.compile(r".*\.(c|h|def|mk)$|Makefile$|.*/Makefile$")
# A comment, or what only looks like one.
TOKEN = re.compile(r"""(/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
FILE = re.compile(r"(?<![\w<>*{}.-])((?:[\w-]+/)*[\w-]+(?:\.bpf)?\.[ch])\b(?!\.)")
CONSTANT = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*\b")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
PASTED = re.compile(r"\b(\w+)##")
# Names in the sources of others: of Linux, V8, CPython, gcc, nng.
FOREIGN = re.compile(r"(arch|fs|include|libgcc|src)/|pycore_|(bytecode-offset-iterator|"
                     r"maglev-safepoint-table)\.h|USER_HZ$|LANDLOCK_RESTRICT_SELF_TSYNC$")
SYSTEM = re.compile(r"^[ \t]*#[ \t]*include <([^>]*)>", re.M)


def main(paths):
    ends, words, pasted, comments, nouns = set(), set(), set(), [], set()
    for path in paths:
        parts = path.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
        if not CODE.match(path):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        code = TOKEN.sub(lambda m: " " if m[1] else m[0], text)
        words.update(WORD.findall(code))
        pasted.update(PASTED.findall(code))
        for header in SYSTEM.findall(text):
            ends.update((header, os.path.basename(header)))
        if OURS.match(path):
            noun = os.path.basename(path).split(".")[0]
            nouns.add(noun.upper().replace("-", "_") + "_")
            comments += [(path, text.count("\n", 0, m.start()) + 1, m[1])
                         for m in TOKEN.finditer(text) if m[1]]
    bad, begins = 0, tuple(nouns)
    for path, line, comment in comments:
        for name in FILE.findall(comment):
            if name not in ends and not FOREIGN.match(name):
                print(f"{path}:{line}: {name}: no such file")
                bad = 1
        for name in CONSTANT.findall(comment):
            if not name.startswith(begins) or name in words or FOREIGN.match(name):
                continue
            # The beginning of several constants, the end of one, or what a macro puts together.
            if any(w.startswith(name) or w.endswith(f"_{name}") for w in words) or any(
                    name.startswith(p) and name[len(p):] in words for p in pasted):
                continue
            print(f"{path}:{line}: {name}: no code has this constant")
            bad = 1
    return bad


sys.exit(main(sys.argv[1:]))
