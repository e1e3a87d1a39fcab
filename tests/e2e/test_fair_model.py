# SPDX-License-Identifier: Apache-2.0
"""The cost to others of a user's endless different stacks, which fill the model of prof-export."""
import os

import pytest
from conftest import few
from fairness import ATTACKER, VICTIM, as_user, assert_unharmed, beside, end
from test_cpu_limit import LOAD

SECONDS = 10
# Every stack and every function is a new one.
NAMES = """
import random
def make(i):
    at = {}
    exec(f"def f{i}(next):\\n for k in range(3000): pass\\n if next: next[0](next[1:])", at)
    return at[f"f{i}"]
i, last = 0, []
while True:
    last = last[-40:] + [make(i)]
    i += 1
    some = random.sample(last, min(20, len(last)))
    some[0](some[1:])
"""


@pytest.mark.parametrize("load", [pytest.param(LOAD, id="stacks"), pytest.param(NAMES, id="names")])
def test_a_user_with_endless_stacks_takes_no_memory_from_others(tmp_path, chain, load):
    """With little memory. The victim's program starts when there is none left."""
    attackers = [as_user(ATTACKER, ["/usr/bin/python3", "-c", load], nice=5)
                 for _ in range(os.cpu_count())]
    try:
        got = beside(tmp_path, chain, seconds=SECONDS, delay=5,
                     options=("-F", "1999", "--memory-limit", "64M"))
    finally:
        end(attackers)
    assert_unharmed(got)
    cut = {o["uid"]: o["truncated"].get("definitions", 0) for o in got.summary["owners"]}
    assert cut[ATTACKER] and cut.get(VICTIM, 0) <= few(got.samples), got.summary
