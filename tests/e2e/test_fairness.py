# SPDX-License-Identifier: Apache-2.0
"""The programs of an ordinary user do no significant harm to the profiles of others."""
from fairness import assert_unharmed, beside


def test_a_victim_without_attackers_is_whole(tmp_path, chain):
    assert_unharmed(beside(tmp_path, chain, seconds=3))
