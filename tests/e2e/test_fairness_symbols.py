# SPDX-License-Identifier: Apache-2.0
"""Users whose programs have symbol tables that take long to read: for unwind rows, if a file has no
call frame information, and for names."""
import os
import struct

import pytest
from attacks import new_kit, started
from fairness import ATTACKER, assert_unharmed, beside, native_victim, short_victim

BASE, TEXT, PAGE = 0x400000, 0x1000, 4096
HEADER, SYMBOL, SECTION = "<HHIQQQIHHHHHH", "<IBBHQQ", "<IIQQQQIIQQ"
# write(1, "ready\n", 6), and an endless loop.
CODE = (bytes.fromhex("b801000000bf0100000048be") + struct.pack("<Q", BASE + TEXT + 0x100) +
        bytes.fromhex("ba060000000f05ebfe")).ljust(0x100, b"\x90") + b"ready\n"


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


def write_program(path, uid, symbols, tables, names, seed):
    """A program whose only content is a loop and `symbols` function symbols, to which `tables`
    section headers point. names: bytes from the name of one symbol to that of the next but one."""
    table = b"".join(struct.pack(SYMBOL, 1 + names * (i & 1), 0x12, 0, 1, BASE + TEXT + i % PAGE, 1)
                     for i in range(min(symbols, PAGE)))
    table = (table * (symbols // PAGE + 1))[:24 * symbols]
    strings = b"\0" + b"a\0" * names
    at = 2 * PAGE
    sections = (at + len(table) + len(strings) + 7) & ~7

    def section(kind, offset, size, address=0, flags=0, link=0, each=0):
        return struct.pack(SECTION, 0, kind, flags, address, offset, size, link, 0, 1, each)
    with open(path, "wb") as f:
        f.write(b"\177ELF\2\1\1".ljust(16, b"\0") + struct.pack(
            HEADER, 2, 62, 1, BASE + TEXT, 64, sections, 0, 64, 56, 1, 64, 3 + tables, 0))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, TEXT, BASE + TEXT, BASE + TEXT, PAGE, PAGE, PAGE))
        f.seek(TEXT)
        f.write(CODE.ljust(PAGE - 8, b"\x90") + struct.pack("<Q", seed))
        f.write(table + strings)
        f.seek(sections)
        f.write(section(0, 0, 0) + section(1, TEXT, PAGE, BASE + TEXT, 6) +
                section(3, at + len(table), len(strings)) +
                section(2, at, len(table), link=2, each=24) * tables)
    os.chmod(path, 0o755)
    os.chown(path, uid, uid)


def programs(kit, uids, count, **how):
    """Runs `count` such programs of each user."""
    paths = []
    for uid in uids:
        for i in range(count):
            path = kit.folder / f"symbols-{uid}-{i}"
            write_program(path, uid, seed=uid << 8 | i, **how)
            paths.append((uid, [path]))
    return started(paths)


VICTIMS = pytest.mark.parametrize("victim", [
    pytest.param(native_victim, id="native"),
    pytest.param(short_victim, id="short", marks=pytest.mark.check_all)])


@VICTIMS
def test_one_table_that_counts_many_times(tmp_path, chain, kit, victim):
    """The names lie far apart, so each needs a read of its own. It took a minute for a file."""
    with programs(kit, [ATTACKER], 3, symbols=4000, tables=4000, names=16384):
        got = beside(tmp_path, chain, seconds=6, victim=victim)
    assert_unharmed(got)


@pytest.mark.check_all
@pytest.mark.parametrize("options", [[], ["--memory-limit", "64M"]], ids=["default", "64M"])
@VICTIMS
def test_tables_of_millions_of_names(tmp_path, chain, kit, victim, options):
    """Names of the victim's programs need not wait for those of other users."""
    with programs(kit, range(ATTACKER, ATTACKER + 6), 1, symbols=4000000, tables=1, names=64):
        got = beside(tmp_path, chain, seconds=6, victim=victim, options=options)
    assert_unharmed(got)
