#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints each function and macro of the given C sources that no other line of code mentions, for
`make lint`. The compiler sees only those that are static and not inline.

    unused.py FILE..."""
import collections
import re
import sys

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
# A definition or a declaration begins at the left margin, where uses never begin.
FUNCTION = re.compile(r"^(?!#|typedef\b|struct \w+ \{)[a-zA-Z_].*?\b(\w+)\((?!\()", re.M)
MACRO = re.compile(r"^#[ \t]*define[ \t]+(\w+)", re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
PASTED = re.compile(r"##[ \t]*(_\w+)")
ELSEWHERE = {"xcalloc", "HASH_FUNCTION"}  # libraries use them


def main(paths):
    used, functions, macros, endings = collections.Counter(ELSEWHERE), {}, {}, set()
    for path in paths:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if not path.endswith((".c", ".h", ".def")):
            used.update(WORD.findall(text))
            continue
        # Strings count, since assembly and names of parameters are in them.
        code = COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else "\n" * m[0].count("\n"), text)
        ours = path.startswith(("common/", "tools/", "bpf/"))
        for m in FUNCTION.finditer(code):
            if ours and m[1].islower():
                functions.setdefault(m[1], path)
            used[m[1]] -= 1
        for m in MACRO.finditer(code):
            if ours and not re.fullmatch(r"\w+_H", m[1]):
                macros.setdefault(m[1], path)
            used[m[1]] -= 1
        endings.update(PASTED.findall(code))
        used.update(WORD.findall(code))
    found = sorted((path, name) for names in (functions, macros) for name, path in names.items()
                   if used[name] <= 0 and not name.endswith(tuple(endings)))
    for path, name in found:
        print(f"{path}: {name} is not used")
    return 1 if found else 0


sys.exit(main(sys.argv[1:]))
