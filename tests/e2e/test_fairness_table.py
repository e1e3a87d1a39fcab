# SPDX-License-Identifier: Apache-2.0
"""The attacks of attacks.py: by one user, by twenty, with little memory, and all of them at once.
The victim, another user, keeps its stacks and names, the run ends in its time, and the attackers'
losses are counted."""
import contextlib

import pytest
from attacks import ATTACKS, new_kit
from fairness import (ATTACKER, assert_counted, assert_unharmed, beside, native_victim,
                      python_victim)

SMALL = ("--memory-limit", "64M")
USERS = 20
FREQUENT = ("-F", "999")  # so that each sample sees another name
# How the attackers' names begin, why their stacks are truncated, and of which resource they take
# too much.
LOSSES = {
    "A1": ("mute", ["no-process", "no-rows", "rows-pending"], None),
    "A2": ("sparse", ["no-process", "no-rows", "rows-pending"], None),
    "A3": ("hoard", ["no-process", "no-mapping", "no-rows", "rows-pending", "caller-unsure",
                     "stale", "memory-limit"],
           ["mappings of processes that prof-bpf keeps",
            "cpu time of prof-bpf for reading and publishing mappings"]),
    "A4": ("idler", ["rows-pending"], ["cpu time of prof-deltas"]),
    "A5": ("hoard", ["no-process", "no-mapping", "no-rows", "rows-pending", "caller-unsure",
                     "definitions", "memory-limit", "tables-full"],
           ["files that prof-bpf knows", "requests that wait",
            "mappings of processes that prof-bpf keeps"]),
    "A6": ("hoard", ["caller-unsure", "tables-full", "rows-pending", "memory-limit"],
           ["unwind rules in the tables"]),
}


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


def attacked(tmp_path, chain, attacks, users=1, options=(), seconds=5, victim=native_victim):
    """Records a victim during attacks, each by users of its own."""
    with contextlib.ExitStack() as stack:
        for i, attack in enumerate(attacks):
            stack.enter_context(attack([ATTACKER + 100 * i + k for k in range(users)]))
        # The victim's frames are larger than the part of its stack that is copied at first.
        return beside(tmp_path, lambda n: chain(n, frame=4096), seconds, options, delay=2,
                      victim=victim)


def attack_of(kit, name):
    return lambda uids: ATTACKS[name](kit, uids)


def attack_and_assert(tmp_path, chain, kit, name, users=1, options=(), victim=native_victim):
    if name == "A9":
        options = (*options, *FREQUENT)
    got = attacked(tmp_path, chain, [attack_of(kit, name)], users, options, victim=victim)
    assert_unharmed(got)
    assert "limit" not in got.summary["lost"], got.summary
    if name in LOSSES:
        comm, reasons, share = LOSSES[name]
        # If no other file waits for rows, the attackers' files are not put aside.
        share = None if (name, victim) == ("A4", python_victim) else share
        assert_counted(got, comm, reasons, share)
    if name == "B5" and users == 1:
        assert got.summary["cost"]["tools"]["prof-symd"]["cpu_s"] < 1.5, got.summary


# test_fairness_files.py does the first two, and test_fair_names.py the last.
@pytest.mark.check_all
@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"A1", "A2", "N"}))
def test_a_user_harms_no_other(tmp_path, chain, kit, name):
    attack_and_assert(tmp_path, chain, kit, name)


@pytest.mark.check_all
@pytest.mark.parametrize("name", ATTACKS)
def test_a_user_harms_no_other_in_little_memory(tmp_path, chain, kit, name):
    attack_and_assert(tmp_path, chain, kit, name, options=SMALL)


@pytest.mark.check_all
@pytest.mark.parametrize("name", ATTACKS)
def test_a_user_harms_no_python_program(tmp_path, chain, kit, name):
    attack_and_assert(tmp_path, chain, kit, name, victim=python_victim)


@pytest.mark.check_all
@pytest.mark.parametrize("name", ATTACKS)
def test_twenty_users_harm_no_other(tmp_path, chain, kit, name):
    attack_and_assert(tmp_path, chain, kit, name, users=USERS)


@pytest.mark.check_all
@pytest.mark.parametrize("name", ATTACKS)
def test_twenty_users_harm_no_other_in_little_memory(tmp_path, chain, kit, name):
    attack_and_assert(tmp_path, chain, kit, name, users=USERS, options=SMALL)


@pytest.mark.parametrize("users,options", [
    (1, ()), pytest.param(1, SMALL, marks=pytest.mark.check_all),
    pytest.param(3, (), marks=pytest.mark.check_all),
    pytest.param(3, SMALL, marks=pytest.mark.check_all)])
def test_all_attacks_at_once_harm_no_other(tmp_path, chain, kit, users, options):
    """Each attack has users of its own. With 27 users in little memory, copies of stacks that wait
    for rows have a megabyte in all: a victim with large frames loses some from its first
    moments."""
    # Attacks that take long to begin come first.
    names = sorted(ATTACKS, key=lambda name: name not in ("A3", "A5", "A6"))
    # Longer than the others, since the victim has few samples in a second.
    got = attacked(tmp_path, chain, [attack_of(kit, name) for name in names], users, options,
                   seconds=10)
    assert_unharmed(got, least=8, share=0.8 if users > 1 and options else 0.99)
    assert_counted(got, tuple(comm for comm, _, _ in LOSSES.values()),
                   {r for _, reasons, _ in LOSSES.values() for r in reasons},
                   [s for _, _, shares in LOSSES.values() for s in shares or ()])
