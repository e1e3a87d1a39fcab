# SPDX-License-Identifier: Apache-2.0
"""The cost to others of naming one user's programs: their files decide how long it takes."""
import pytest
from attacks import decoys, new_kit, slow_names
from fairness import ATTACKER, VICTIM, assert_unharmed, beside


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
