# SPDX-License-Identifier: Apache-2.0
"""The cost to others of naming one user's programs: their files decide how long it takes."""
import os
import sys

import pytest
from attacks import decoys, new_kit, slow_names, started
from fairness import ATTACKER, VICTIM, assert_unharmed, beside, native_victim
from nodes import NODE


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


def assert_slow(got, users):
    """Each of these users lost names; the log and the summary say so."""
    unnamed = {o["uid"]: o["unnamed"].get("slow", 0) for o in got.summary["owners"]}
    assert not unnamed.get(VICTIM), got.summary
    for user in users:
        assert f"the programs of user {user} (container 0) take too long to name" in got.stderr
        assert unnamed[user], got.summary
    assert sum(unnamed.values()) == got.summary["unnamed"]["slow"], got.summary


@pytest.mark.check_all
@pytest.mark.parametrize("limit", ["1G", "128M"])
def test_debug_information_that_takes_long(tmp_path, chain, kit, limit):
    """The debug information of fifty programs takes half a second each to read, if there is memory
    for it. The victim's names and the end of the run do not wait for that."""
    with slow_names(kit, [ATTACKER], 50):
        got = beside(tmp_path, chain, options=("--memory-limit", limit))
    assert_unharmed(got, least=8)
    if limit == "1G":
        assert_slow(got, [ATTACKER])


@pytest.mark.parametrize("users,count", [
    (5, 10), pytest.param(20, 5, marks=pytest.mark.check_all)])
def test_debug_information_of_many_users_that_takes_long(tmp_path, chain, kit, users, count):
    """The same with many users: each has a share, and none of them costs the victim names."""
    uids = range(ATTACKER, ATTACKER + users)
    with slow_names(kit, uids, count):
        got = beside(tmp_path, chain, options=("--memory-limit", "1G"))
    assert_unharmed(got, least=8)
    if users == 5:
        assert_slow(got, uids)


@pytest.mark.parametrize("how,users", [
    pytest.param("idle", 1, marks=pytest.mark.check_all),
    pytest.param("busy", 1, marks=pytest.mark.check_all),
    ("busy", 3)])
def test_another_file_in_place_of_the_debug_file(tmp_path, chain, kit, how, users):
    """In the mount namespaces of other users, another program lies where the debug file of the
    victim's program is. They have mapped that program, or run it."""
    uids = range(ATTACKER, ATTACKER + users)
    got = beside(tmp_path, chain,
                 attack=lambda program, debug: decoys(kit, uids, how, program, debug))
    assert_unharmed(got)


# A program that hardly ever runs a function twice. Each function has a long name and many lines, so
# that its copies are as large as they can be.
FUNCTIONS = """
import random, types
lines = "\\n".join(" n = n" if i % 2 else " n = n; n = n" for i in range(1200))
at = {}
exec(f"def f(n):\\n{lines}\\n for k in range(30): pass\\n if n: n[0](n[1:])", at)
code = at["f"].__code__
functions = []
for i in range(20000):
    names = {"co_name": f"f{i}_" + "x" * 3000, "co_filename": f"/{i}/" + "x" * 3000}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = names["co_name"]
    functions.append(types.FunctionType(code.replace(**names), {}))
print("ready", flush=True)
while True:
    some = random.choices(functions, k=60)
    some[0](some[1:])
"""
# Runs each function for a few milliseconds, and then frees it.
FLEETING = """
const vm = require("vm");
const end = Date.now() + 1000 * Number(process.argv[2]);
for (let n = 0; Date.now() < end; n++) {
    vm.runInThisContext(`(function made_${n}() {
        for (const end = performance.now() + 4; performance.now() < end;)
            for (let i = 0, x = 0; i < 2000; i++)
                x = (x + i) | 0;
    })`, `/made/${n}.js`)();
}
"""


def fleeting_victim(folder, _):
    """A JavaScript program of which only the kernel's copies tell the names."""
    script = folder / "fleeting.js"
    script.write_text(FLEETING)
    program = folder / "victim"
    os.symlink(os.path.realpath(str(NODE)), program)
    return f"{program} {script}", None, lambda stack: not any(
        f.startswith(("[truncated", "[v8:", "[node", "[victim", "[libc")) for f in stack)


@pytest.mark.parametrize("victim,options", [
    pytest.param(native_victim, (), id="native"),
    pytest.param(native_victim, ("-F", "999", "--memory-limit", "64M"), id="64M",
                 marks=pytest.mark.check_all),
    pytest.param(fleeting_victim, (), id="node", marks=pytest.mark.check_all)])
def test_functions_without_end(tmp_path, chain, victim, options):
    """Four processes of a user run other functions in each sample."""
    with started([(ATTACKER, [sys.executable, "-c", FUNCTIONS])] * 4):
        got = beside(tmp_path, chain, seconds=8, delay=2, options=options, victim=victim)
    assert_unharmed(got)
    assert not got.summary["restarts"], got.stderr
