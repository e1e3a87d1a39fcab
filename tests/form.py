#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what is wrong with the form of each file, for `make lint`: its characters, its words, its
licence, its include guard, and what it includes.

    form.py FILE...     all files of the project
    Standard input: a line for each library and tool: its name, its folder, and the folders that it
    may include."""
import os
import re
import sys

COLUMNS = 100
# Recorded and given bytes: test data, corpora, the licence.
GIVEN = re.compile(r"LICENSE$|tests/data/python/[0-9.]+\.txt$|tests/fuzz/corpus/")
SOURCE = re.compile(r".*\.(c|h|def|py|sh|js|css|mk)$|Makefile$|.*/Makefile$")
PROSE = re.compile(r".*\.(c|h|def|py|sh|js|mk|md|1)$|Makefile$|.*/Makefile$|packaging/|debian/")
CODE = re.compile(r"(bpf|common|tools)/.*\.[ch]$")
# These files name the words that they forbid.
RULES = re.compile(r"tests/(lint\.sh|form\.py)$")
LONG_ADDRESS = re.compile(r"://\S{60}")
UNDONE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
FORBIDDEN = re.compile(r"\b(sprintf|strcat|alloca|gets|system|popen)\(")
TOO = re.compile(r", too[.;:,)]")
HE = re.compile(r"(?<!\w)(he|him|his|himself|herself)(?!\w)", re.I)
# The name of a test is a statement: it does not begin with a clause as its subject.
TEST = re.compile(r"(def test_|Test\(\w+, )(what|who|whoever|whose|nobody)_")
INCLUDE = re.compile(r"[ \t]*#[ \t]*include")
INCLUDED = re.compile(r"^#include (\S+)", re.M)
WHOLE = re.compile(r'#include ("(bpf|common|tools)/[a-z]|"[a-z]+(\.skel|_walk)\.h"|<)')
ODD = re.compile(r'#include (<(common|tools|tests)/|"[^"]*\.\.)')
PART = re.compile(r'#include "(common/[a-z]+|tools/[a-z-]+)/')
# Comments, strings and characters.
SKIPPED = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
BRANCH = re.compile(r"\b(if|while|for|switch) ?\(")
ASSIGNMENT = re.compile(r"[^=!<>]=(?!=)")

bad = 0


def say(text):
    global bad
    bad = 1
    print(text)


def check_lines(path, text):
    """The rules for each line."""
    given, code, rules = GIVEN.match(path), CODE.match(path), RULES.match(path)
    source, prose = SOURCE.match(path), PROSE.match(path) and not given and not rules
    for n, line in enumerate(text.split("\n"), 1):
        at = f"{path}:{n}"
        if source and line[-1:] in (" ", "\t"):
            say(f"{at}: blanks at the end of the line")
        if not given and len(line) > COLUMNS // 8:
            columns = len(line.expandtabs(8))
            if columns > COLUMNS and not LONG_ADDRESS.search(line):
                say(f"{at}: {columns} columns; at most {COLUMNS} are allowed")
        if not given and not rules and UNDONE.search(line):
            say(f"{at}: something is left undone")
        if code and path.endswith(".c") and FORBIDDEN.search(line):
            say(f"{at}: a forbidden function")
        if prose and TOO.search(line):
            say(f'{at}: a trailing "too": write "also"')
        if prose and HE.search(line):
            say(f'{at}: a user is no he: write "it" or "their"')
        if path.startswith("tests/") and not rules and TEST.search(line):
            say(f"{at}: a test's name begins with a subject clause: state what happens")
        if code and INCLUDE.match(line):
            # The checks of includes need whole paths.
            if not WHOLE.match(line):
                say(f"{at}: an include that does not begin with bpf/, common/ or tools/")
            if ODD.search(line):
                say(f'{at}: a header of ours is included as "its/whole/path.h"')


def check_c(path, text):
    if not text.startswith("/* SPDX-License-Identifier: "):
        say(f"{path}: does not begin with the comment that names its licence")
    # An include guard is the file's path, so that no two are alike. runtime.bpf.h is a template.
    guard = re.sub(r"[^A-Z0-9]", "_", re.sub(r"^tools/", "", path).upper())
    if (path.endswith(".h") and path != "bpf/programs/runtime.bpf.h"
            and not re.search(rf"^#ifndef {guard}$", text, re.M)):
        say(f"{path}: its include guard is not {guard}")


def check_code(path, text):
    """A file includes its own header first, so that each header is compiled by itself. Assertions
    have one form and a reason; runtime.bpf.h has no assert.h."""
    own = path[:-2]
    if path.endswith(".c") and os.path.isfile(f"{own}.h"):
        first = INCLUDED.search(text)
        if not first or first[1] not in (f'"{own}.h"', f'"{own}_internal.h"'):
            say(f"{path}: its first include is not {own}.h")
    if path != "bpf/programs/runtime.bpf.h" and "_Static_assert" in text:
        say(f"{path}: write static_assert")
    if re.search(r'static_assert\([^;]*, ""\);', text):
        say(f"{path}: an assertion without a reason")


def condition(code, begin, is_for):
    """The condition of a branch whose parentheses begin here, without the literals in it."""
    depth, end = 0, begin
    for end in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if not depth:
            break
    inner = re.sub(r"\{[^{}]*\}", "", code[begin + 1:end])
    parts = inner.split(";")
    return parts[1] if is_for and len(parts) == 3 else "" if is_for else inner


def check_conditions(path, text):
    """No condition assigns."""
    code = SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for m in BRANCH.finditer(code):
        if ASSIGNMENT.search(condition(code, m.end() - 1, m[1] == "for")):
            n = code.count("\n", 0, m.start()) + 1
            say(f"{path}:{n}: an assignment in a condition")


def check_includes(path, text, parts):
    """A library includes those that its module.mk names, a tool itself and the libraries that it
    names, and bpf nothing of either."""
    if path.startswith("bpf/"):
        if PART.search(text):
            say(f"{path}: bpf includes nothing from common and tools")
        return
    for folder, name, may in parts:
        if not path.startswith(f"{folder}/"):
            continue
        for n, line in enumerate(text.split("\n"), 1):
            m = PART.match(line)
            if m and m[1] not in may:
                say(f"{path}:{n}: {name} may not include {m[1]}")


def main(paths):
    parts = []
    for line in sys.stdin:
        name, folder, *uses = line.split()
        parts.append((folder, name, {folder, *uses}))
    for path in paths:
        if not os.path.isfile(path) or (GIVEN.match(path) and not SOURCE.match(path)):
            continue
        with open(path, "rb") as f:
            data = f.read()
        if b"\0" in data:
            continue
        text = data.decode(errors="replace")
        check_lines(path, text)
        if SOURCE.match(path) and not text.endswith("\n"):
            say(f"{path}: no line feed at its end")
        if path.endswith((".c", ".h", ".def")):
            check_c(path, text)
        if CODE.match(path):
            check_includes(path, text, parts)
            check_conditions(path, text)
            check_code(path, text)
    return bad


sys.exit(main(sys.argv[1:]))
