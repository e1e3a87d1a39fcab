# SPDX-License-Identifier: Apache-2.0
"""Twenty users, each with a large program of its own that it runs again and again, at the priority
of prof-deltas and prof-symd. So these have a tenth of a cpu each."""
import contextlib
import os
import shutil

import pytest
from attacks import new_kit, started
from fairness import ATTACKER, assert_unharmed, beside, native_victim, python_victim, short_victim
from nodes import NODE

USERS = 20


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


@contextlib.contextmanager
def large_programs(kit, uids):
    """Each user's copy of Node.js is another file."""
    programs = []
    for uid in uids:
        path = kit.folder / f"node-{uid}"
        shutil.copy(NODE, path)
        os.chown(path, uid, uid)
        programs.append((uid, ["sh", "-c", f"echo ready; while :; do {path} -e 0; done"]))
    try:
        with started(programs, nice=0):
            yield
    finally:
        for _, path in ((u, kit.folder / f"node-{u}") for u in uids):
            path.unlink()


# In half of the runs, the interpreter of a Python program is recognized a second late: until then
# its stacks are native ones. Here that is up to half of them; before, all were.
@pytest.mark.check_all
@pytest.mark.parametrize("victim,share", [(native_victim, 0.9), (python_victim, 0.4),
                                          (short_victim, 0.9)])
def test_large_programs_of_twenty_users_harm_no_other(tmp_path, chain, kit, victim, share):
    """The victims have little cpu time themselves, so few samples."""
    with large_programs(kit, range(ATTACKER, ATTACKER + USERS)):
        got = beside(tmp_path, lambda n: chain(n, frame=64), seconds=6, delay=2, victim=victim)
    assert_unharmed(got, least=8, share=share)
