#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints each name that a header of common/ or tools/ declares and that does not say which header
that is, for `make lint`. Of the headers of bpf/ it looks at constants and macros only, since the
kernel's programs have few functions, and types that mirror the kernel's. A name begins with one of
these:

- the header's noun, which is its file's name, singular or plural
- the name of its folder, or of one that this is in
- another noun of the same tool or library, which the header's noun begins with (flow_code.h: flow)
- the name of a C file without a header of its own that includes it (prof.h: loop)

    headers.py FILE..."""
import collections
import os
import re
import sys

# Beginnings of other names. HASH_FUNCTION is uthash's. The rows of a list of system calls, and the
# fields of messages.def, are words of a table. The lists of errors.def have a prefix each. The
# kernel numbers its cgroup subsystems in an enum.
OTHERS = {
    "bpf/programs/target.bpf.h": "cpu_cgrp_id memory_cgrp_id pids_cgrp_id",
    "bpf/reasons.h": "WALK LOST UNNAMED",
    "bpf/unwind.h": "UW",
    "common/base/tables/hashtable.h": "HASH_FUNCTION",
    "common/cell/confine/seccomp.h": "CALL",
    "common/wire/msg.h": "U64 STR BIN LIST",
}
SKIPPED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n\\]|\\.)*',
                     re.S | re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)", re.M)
TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
ENUM = re.compile(r"\benum\b[^{};()]*\{([^{}]*)\}")
CONSTANT = re.compile(r"(?:^|,)\s*(\w+)")
INNERMOST = re.compile(r"\{[^{}]*\}")
FUNCTION = re.compile(r"\b(\w+)\s*\((?!\s*\*)")
OBJECT = re.compile(r"^(?:extern|typedef|static)\b.*?(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=.*)?$", re.S)
INCLUDE = re.compile(r'^#include "([^"]*)"', re.M)


def group(path):
    """The names of headers must differ within a tool, a library, or bpf."""
    folder, below = path.split("/")[:2]
    return (folder,) if folder == "bpf" else (folder, below)


def declared(text, only_constants):
    names = []
    for what, name in MACRO.findall(text):
        if what == "define":
            names.append(name)
        elif name in names:
            names.remove(name)
    code = SKIPPED.sub("", text)
    for body in ENUM.findall(code):
        names += CONSTANT.findall(re.sub(r"\([^()]*\)", "", body))
    names = [n for n in names if not n.endswith("_H")]
    if only_constants:
        return dict.fromkeys(names)
    names += TAG.findall(code)
    code = re.sub(r"__attribute__\s*\(\(.*?\)\)|\b(?:_Static_assert|static_assert)\(.*?;", "", code,
                  flags=re.S)
    while INNERMOST.search(code):
        code = INNERMOST.sub(";", code)
    for line in code.split(";"):
        m = FUNCTION.search(line) or OBJECT.search(line.strip())
        if m:
            names.append(m[1])
    return dict.fromkeys(names)


def plain(name):
    return name.lower().replace("_", "").replace("-", "")


def numbers(noun):
    """The noun, in plural and singular."""
    endings = (r"$", ""), (r"ies$", "y"), (r"s$", ""), (r"(?<=[sx])es$", "")
    return {plain(re.sub(plural, singular, noun)) for plural, singular in endings}


def main(paths):
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
    nouns, parts = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in texts.items():
        folder, file = os.path.split(path)
        noun, ending = os.path.splitext(file)
        if ending == ".h":
            nouns[group(path)].add(noun)
        elif f"{folder}/{noun}.h" not in texts:
            for header in INCLUDE.findall(text):
                if os.path.dirname(header) == folder:
                    parts[header].add(noun)
    bad = 0
    for path, text in sorted(texts.items()):
        if not path.endswith(".h"):
            continue
        folder, file = os.path.split(path)
        noun = re.sub(r"_internal$|\.bpf$", "", file[:-2])
        words = noun.split("_")
        known = nouns[group(path)]
        begins = numbers(noun)
        for part in folder.split("/")[1:]:
            begins |= numbers(part)
        for n in range(1, len(words)):
            if "_".join(words[:n]) in known:
                begins |= numbers("_".join(words[:n]))
        for part in parts[path]:
            begins |= numbers(part)
        begins |= {plain(word) for word in OTHERS.get(path, "").split()}
        for name in declared(text, folder.split("/")[0] == "bpf"):
            if not plain(name).startswith(tuple(begins)):
                print(f"{path}: {name} does not begin with the header's noun")
                bad = 1
    return bad


sys.exit(main(sys.argv[1:]))
