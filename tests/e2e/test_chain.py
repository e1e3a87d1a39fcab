# SPDX-License-Identifier: Apache-2.0
"""Programs of known shape: chains of nested functions without frame pointers, whose names lie in a
debug file."""
import pytest

from conftest import few, of_which_check_has, record


def shape(stack, n, root):
    """Whether a folded stack of the chain program is right from its root to its leaf, or lies
    wholly outside the chain."""
    names = [f for f in stack[1:] if not f.endswith("_[k]")]
    if not names or names[0] not in root:
        return False
    if "descend" not in names:
        # Before and after the chain, in the dynamic linker and in libc, only the root can be
        # checked.
        return not any(f.startswith("[truncated") for f in names)
    rest = names[names.index("descend") + 1:]
    chain = [f for f in rest if f[0] == "f" and f[1:].isdigit()]
    if chain != [f"f{i + 1}" for i in range(len(chain))]:
        return False
    # Below the chain there is only the call that reads the clock.
    return rest[:len(chain)] == chain and (len(rest) == len(chain) or not chain)


@pytest.mark.parametrize("n, threaded", of_which_check_has(
    [(n, threaded) for n in (10, 300, 1000) for threaded in (False, True)],
    [(10, False), (1000, True)]))
def test_every_stack_of_a_chain_is_whole_and_named(tmp_path, chain, n, threaded):
    command = [chain(n), "2"] + (["t"] if threaded else [])
    got = record(tmp_path, "-F", "499", command=command)
    root = {"_start"} | ({"__clone3", "clone3", "__clone", "clone", "clone3@@GLIBC_2.34"}
                         if threaded else set())
    right = sum(c for s, c in got.stacks if shape(s, n, root))
    everything = sum(c for _, c in got.stacks)
    deepest = max(len(s) for s, _ in got.stacks)
    # Of 1,000 samples on a core of its own. The loop ends by the clock, whatever else runs.
    assert everything > 40
    # Each depth burns the same time.
    assert deepest >= 0.9 * n
    wrong = [(s[:6], s[-3:], c) for s, c in got.stacks if not shape(s, n, root)]
    assert everything - right <= few(everything, 0.005), (right, everything, wrong[:10])
