# SPDX-License-Identifier: Apache-2.0
"""How many samples and how much cpu time a user can cost others: whole stacks are useless if most
samples are lost."""
import pytest
from attacks import costly_rows, deep_python, fleeting_files, large_stacks, new_kit
from fairness import ATTACKER, assert_unharmed, beside, short_victim

RATE = 999


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


@pytest.mark.check_all
def test_stacks_that_prof_symd_names_slowly(tmp_path, chain, kit):
    """prof-symd cannot keep up with the stacks of two Python programs. The samples that do not
    reach it are theirs. An epoch's end waits for them only for a moment."""
    with deep_python(kit, [ATTACKER, ATTACKER]):
        got = beside(tmp_path, chain, seconds=8, options=("-F", RATE))
    taken = got.cpu_s * RATE
    print(got.cpu_s, got.samples, got.whole, got.late, got.summary)
    assert got.late < 4, (got.late, got.summary)
    assert got.samples >= 0.9 * taken, (got.samples, taken, got.summary)
    paid = {o["uid"]: o["lost"].get("queue-full", 0) + o["truncated"].get("definitions", 0)
            for o in got.summary["owners"]}
    assert paid.pop(ATTACKER) > 10 * sum(paid.values()), got.summary
    assert got.whole >= 0.99 * got.samples, (got.whole, got.samples, got.stderr, got.bad[:5])


def test_files_that_are_mapped_for_a_moment(tmp_path, chain, kit):
    """prof-bpf charges opening them to their owner, whose part of its time is bounded."""
    with fleeting_files(kit, [ATTACKER, ATTACKER]):
        got = beside(tmp_path, chain)
    assert_unharmed(got, least=8)
    assert got.summary["cost"]["tools"]["prof-bpf"]["cpu_s"] < 2.5, got.summary


@pytest.mark.check_all
def test_large_stacks_that_wait_for_rows(tmp_path, chain, kit):
    """They wait long, since their user's other programs have rows that take long. So their copies
    fill the kernel's ring of deferred samples, and the memory for these."""
    with costly_rows(kit, [ATTACKER]), large_stacks(kit, [ATTACKER] * 4):
        got = beside(tmp_path, chain, victim=short_victim)
    assert_unharmed(got)
