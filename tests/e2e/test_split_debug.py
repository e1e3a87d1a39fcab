# SPDX-License-Identifier: Apache-2.0
"""Debug information in .dwo files (-gsplit-dwarf), or in a .dwp package of them: inlined calls and
lines by prof-symd -e and in record. llvm-symbolizer reads the same files; and the same program,
built without -gsplit-dwarf, has the same answers."""
import os
import random
import re
import shutil
import struct
import subprocess

import pytest

from conftest import BUILD, of_which_check_has, record

# Functions in namespaces and classes, with parts in .text.unlikely: ranges of all kinds.
UNIT = r"""
namespace NAME_space {
struct counter {
	long value;
	long twice() const { return value * 2; }
};
template <typename T> static inline __attribute__((always_inline)) T inner(T n)
{
	T s = n;
	for (long i = 0; i < 100000; i++)
		__asm__ volatile("" : "+r"(s));
	if (__builtin_expect(s == 12345, 0))
		throw s;
	return s;
}
static inline __attribute__((always_inline)) long middle(long n)
{
	counter c{ inner(n) };
	return c.twice() + 1;
}
}
__attribute__((noinline)) long NAME(long n)
{
	try {
		return NAME_space::middle(n) * 3 + (n & 1 ? NAME_space::middle(n + 1) : 0);
	} catch (long thrown) {
		return thrown;
	}
}
"""
MAIN = r"""
#include <time.h>
long one(long), two(long), three(long);
int main()
{
	time_t end = time(0) + 2;
	long s = 0;
	while (time(0) < end)
		s += one(s) + two(s) + three(s);
	return s == 1;
}
"""
ENV = {**os.environ, "CCACHE_DISABLE": "1"}
NAMES = ("one", "two", "three")
BUILDS = [(c, v, p) for c in ("g++", "clang++") for v in (4, 5) for p in (False, True)]
IDS = [f"{c}-{v}-{'dwp' if p else 'dwo'}" for c, v, p in BUILDS]


def pack(dwo, package, unit):
    """A package of one unit of DWARF 5, by section 7.3.5: dwp crashes on gcc 12's units, and
    llvm-dwp 14 and 19 never end."""
    numbers = {".debug_info.dwo": 1, ".debug_abbrev.dwo": 3, ".debug_line.dwo": 4,
               ".debug_str_offsets.dwo": 6, ".debug_rnglists.dwo": 8}
    listed = subprocess.run(["readelf", "-SW", dwo], capture_output=True, text=True,
                            check=True).stdout
    found = re.findall(r"(\.debug_\w+\.dwo) +PROGBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", listed)
    sizes = {name: int(size, 16) for name, size in found}
    there = [name for name in numbers if name in sizes]
    ids, rows = [0, 0], [0, 0]
    ids[unit & 1], rows[unit & 1] = unit, 1
    index = package.with_suffix(".index")
    index.write_bytes(struct.pack("<4I2Q2I", 5, len(there), 1, 2, *ids, *rows)
                      + b"".join(struct.pack("<I", n)
                                 for n in [numbers[s] for s in there] + [0] * len(there)
                                 + [sizes[s] for s in there]))
    subprocess.run(["objcopy", "--add-section", f".debug_cu_index={index}", dwo, package],
                   check=True)
    index.unlink()


def id_of(program):
    listed = subprocess.run(["llvm-dwarfdump", "--debug-info", program], capture_output=True,
                            text=True, check=True).stdout
    return [int(n, 16) for n in re.findall(r"DWO_id = (0x[0-9a-f]+)", listed)]


def build(folder, compiler, version, package=False, flags=("-gsplit-dwarf",), name="program"):
    """A program in a folder that others may read, with its .dwo files, or a package, beside it.
    Without flags it is whole."""
    for at in (folder, folder / "made"):
        at.mkdir(exist_ok=True)
        at.chmod(0o755)
    made = folder / "made"
    by_hand = package and (compiler, version) == ("g++", 5)
    texts = {n: UNIT.replace("NAME", n) for n in NAMES}
    texts["main"] = MAIN
    if by_hand:
        texts = {"main": "".join(texts.values())}
    for unit, text in texts.items():
        (made / f"{unit}.cpp").write_text(text)
        subprocess.run([compiler, "-O2", "-g", f"-gdwarf-{version}", *flags, "-c", f"{unit}.cpp",
                        "-o", f"{unit}.o"], cwd=made, check=True, env=ENV)
    subprocess.run([compiler, *(f"{unit}.o" for unit in texts), "-o", name], cwd=made, check=True,
                   env=ENV)
    if not package or not flags:
        return made / name
    alone = folder / "alone"
    alone.mkdir()
    alone.chmod(0o755)
    if by_hand:
        pack(made / "main.dwo", alone / f"{name}.dwp", *id_of(made / name))
    else:
        subprocess.run(["llvm-dwp", "-e", name, "-o", alone / f"{name}.dwp"], cwd=made, check=True,
                       timeout=60)
    shutil.copy(made / name, alone)
    for dwo in made.glob("*.dwo"):
        dwo.unlink()
    return alone / name


def addresses(program):
    """All instructions of the functions above; the padding between them belongs to no function."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", program],
                          capture_output=True, text=True, check=True).stdout
    return [a for body in re.findall(r"<(?:main|_Z[35]\w+|_Z\w+\.cold)>:\n((?: .*\n)+)", text)
            for a in re.findall(r"^ +([0-9a-f]+):(?!.*(?:nop|xchg +%ax,%ax|data16))", body, re.M)]


def by_us(program, asked):
    p = subprocess.run([f"{BUILD}/prof-symd", "-e", program, *asked], capture_output=True,
                       text=True, check=True)
    assert not p.stderr
    return p.stdout.replace(" (inlined by)", "(inlined by)").splitlines()


def by_llvm(program, asked):
    out = subprocess.run(["llvm-symbolizer", f"--obj={program}", "--pretty-print",
                          *(f"0x{a}" for a in asked)], capture_output=True, text=True,
                         check=True).stdout
    return [re.sub(r":\d+$", "", line.strip()) for line in out.splitlines() if line.strip()]


GDB = r"""
def functions(pc):
    block = gdb.block_for_pc(pc)
    while block is not None and not block.is_global and not block.is_static:
        if block.function is not None:
            yield block.function.print_name
        block = block.superblock
for pc in PLACES:
    print("at", *functions(pc), sep="|")
"""


def by_gdb(folder, program, asked):
    """Of each address the functions, innermost first."""
    script = folder / "ask.py"
    script.write_text(GDB.replace("PLACES", "[" + ",".join(f"0x{a}" for a in asked) + "]"))
    p = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", script,
                        program], capture_output=True, text=True, check=True)
    return [[bare(name) for name in line.split("|")[1:]]
            for line in p.stdout.splitlines() if line.startswith("at|")]


def bare(name):
    """inner, of `long one_space::inner<long>(long)` and `inner<long int>`: readers of one file
    write the rest differently."""
    return re.sub(r"[<(].*", "", name.removesuffix(" [clone .cold]")).split(" ")[-1].split("::")[-1]


def calls(lines):
    """[(function, file:line), ...] of each address, innermost first. Line 0 is no line."""
    found = []
    for line in lines:
        name, _, at = line.removeprefix("(inlined by) ").rpartition(" at ")
        if not line.startswith("(inlined by) "):
            found.append([])
        found[-1].append((bare(name), re.sub(":0$", ":?", at)))
    return found


@pytest.mark.parametrize("compiler, version, package", BUILDS, ids=IDS)
def test_split_units_have_inlined_calls_and_lines(tmp_path, compiler, version, package):
    """llvm-symbolizer 14 takes the bases of ranges in split units for 0, and gdb 13 crashes on
    packages of DWARF 5. So one checks the whole program, and the other checks the split one as far
    as it can."""
    program = build(tmp_path, compiler, version, package)
    asked = addresses(program)
    whole = build(tmp_path, compiler, version, package, flags=(), name="whole")
    ours = by_us(program, asked)
    assert addresses(whole) == asked and len(asked) > 100
    assert sum("inlined by" in line for line in ours) > 100
    assert ours == by_us(whole, asked)
    assert calls(ours) == calls(by_llvm(whole, asked))
    if not (version == 5 and package):
        assert [[name for name, _ in a] for a in calls(ours)] == by_gdb(tmp_path, program, asked)


@pytest.mark.parametrize("compiler, version, package",
                         of_which_check_has(BUILDS, (("g++", 5, True), ("clang++", 4, False))),
                         ids=IDS)
def test_split_units_have_inlined_calls_in_record(tmp_path, compiler, version, package):
    program = build(tmp_path, compiler, version, package)
    r = record(tmp_path, "-F", "199", command=[program])
    tails = {name: 0 for name in NAMES}
    for stack, n in r.stacks:
        for name in NAMES:
            if (list(map(bare, stack[-3:])) == [name, "middle", "inner"]
                    and f"{name}_space::" in stack[-1]):
                tails[name] += n
    assert min(tails.values()) > 0, r.stacks
    assert sum(tails.values()) > sum(n for _, n in r.stacks) * 0.8, r.stacks


@pytest.mark.parametrize("flags", [("-fdebug-types-section",), ("-gz",), ("-ffunction-sections",)],
                         ids=lambda f: f[0][1:])
@pytest.mark.parametrize("compiler, version", of_which_check_has(
    [("g++", 4), ("g++", 5), ("clang++", 4), ("clang++", 5)], [("g++", 5), ("clang++", 4)]))
def test_a_split_build_gives_the_same_answers_as_a_whole_one(tmp_path, compiler, version, flags):
    whole = build(tmp_path / "made", compiler, version, flags=flags)
    asked = addresses(whole)
    expected = by_us(whole, asked)
    split = build(tmp_path / "made", compiler, version, flags=("-gsplit-dwarf", *flags),
                  name="split")
    assert addresses(split) == asked and sum("inlined by" in line for line in expected) > 100
    assert by_us(split, asked) == expected


@pytest.mark.parametrize("compiler, version", [("g++", 4), ("clang++", 5)])
def test_a_dwo_file_of_another_build_is_left_alone(tmp_path, compiler, version):
    program = build(tmp_path, compiler, version)
    asked = addresses(program)
    whole = by_us(program, asked)
    shutil.copy(program.parent / "three.dwo", program.parent / "two.dwo")
    mixed = by_us(program, asked)
    assert any("two_space::inner" in line for line in whole)
    assert not any("two_space::inner" in line for line in mixed)
    assert ([line for line in mixed if "two" not in line]
            == [line for line in whole if "two" not in line])
    assert any(re.match(r"two\(long\) at .*two\.cpp:\d+", line) for line in mixed)


def test_dwo_files_are_found_beside_a_program_that_was_moved(tmp_path):
    program = build(tmp_path, "g++", 5)
    asked = addresses(program)
    expected = by_us(program, asked)
    assert any("inlined by" in line for line in expected)
    program.parent.rename(tmp_path / "elsewhere")
    assert by_us(tmp_path / "elsewhere" / "program", asked) == expected


def test_record_opens_no_file_of_another_user(tmp_path):
    """Files that a program's debug information names are opened by the rules for debug files: they
    belong to root or to the program's owner, and all may read them."""
    program = build(tmp_path, "g++", 4)
    os.chown(program.parent / "two.dwo", 65534, 65534)
    (program.parent / "three.dwo").chmod(0o600)
    r = record(tmp_path, "-F", "199", command=[program])
    seen = {frame.split("(")[0] for stack, _ in r.stacks for frame in stack}
    assert "one_space::middle" in seen
    assert not {"two_space::middle", "three_space::middle"} & seen
    assert {"two", "three"} <= seen


@pytest.mark.check_all
def test_more_units_than_are_open_at_a_time(tmp_path):
    """256 slots for all programs: a unit that is not in use is evicted, and is loaded again
    later."""
    count = 270
    for i in range(count):
        (tmp_path / f"u{i}.c").write_text(
                f"static inline __attribute__((always_inline)) int in{i}(int a) {{ "
                f"return a * {i + 2}; }}\nint f{i}(int a) {{ return in{i}(a); }}\n")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    for i in range(0, count, 90):
        subprocess.run(["gcc", "-O2", "-g", "-gdwarf-5", "-gsplit-dwarf", "-c",
                        *(f"u{n}.c" for n in range(i, i + 90))], cwd=tmp_path, check=True, env=ENV)
    subprocess.run(["gcc", "-o", "program", "main.c", *(f"u{i}.o" for i in range(count))],
                   cwd=tmp_path, check=True, env=ENV)
    symbols = subprocess.run(["nm", tmp_path / "program"], capture_output=True, text=True,
                             check=True).stdout
    asked = re.findall(r"^([0-9a-f]+) T (f\d+)$", symbols, re.M)
    random.Random(1).shuffle(asked)
    assert len(asked) == count
    lines = by_us(tmp_path / "program", [a for a, _ in asked] * 2)
    for place, (_, name) in enumerate(asked * 2):
        inlined, around = lines[2 * place], lines[2 * place + 1]
        assert inlined.startswith(name.replace("f", "in") + " at ")
        assert around.startswith(f"(inlined by) {name} at ")
