# SPDX-License-Identifier: Apache-2.0
"""Makes seeds of a live JVM, as it lies in its memory:

    python3 make.py PROF-SYMD PID LAYOUT COUNT FOLDER FOLDER

COUNT seeds for the fuzz target `hotspot` in the first folder, of methods; COUNT for `codeheap` in
the second one, of its threads' stacks. PROF-SYMD describes the JVM's file. LAYOUT is an index of
both targets' layouts, and the seeds' first byte."""
import ctypes
import os
import re
import struct
import subprocess
import sys

LARGEST = 700  # bytes of a ConstMethod
STACK = 640    # bytes of a stack
TABLE = 1200   # bytes of a table of compiled code
# The place of each register by DWARF number, and of RIP, in struct user_regs_struct.
REGISTERS = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16]


class Machine:
    """A JVM's memory, and its build's offsets."""

    def __init__(self, symd, pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            path, self.base = next((m[3], int(m[1], 16) - int(m[2], 16)) for m in (
                re.fullmatch(r"([0-9a-f]+)-\S+ r-xp ([0-9a-f]+) \S+ \d+ +(\S*/libjvm\.so)\n", line)
                for line in f) if m)
        self.text = subprocess.run([symd, "--describe", path], capture_output=True, text=True,
                                   check=True).stdout
        self.memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
        self.major, self.flags = self.value(r"JDK (\d+)"), self.value(r"\nheaps \S+ flags (\d+)")
        for part, names in {"heap": "start end map shift block", "blob": "bytes name code frame",
                            "nmethod": "method immutable pcs end data metadata mutable",
                            "method": "bytes pool size code_size name signature flags",
                            "pool": "bytes holder"}.items():
            for name in names.split():
                setattr(self, f"{part}_{name}", self.value(rf"\n{part}\b.*?\b{name} (\d+)"))
        self.method_const = self.value(r"\nmethod const (\d+)")
        self.class_name = self.value(r"class name (\d+)")
        self.source, self.in_class = map(int, re.search(r" source (\d+) (\d+)",
                                                        self.text).groups())
        self.symbol, self.letters = map(int, re.search(r"symbol length (\d+) text (\d+)",
                                                       self.text).groups())

    def value(self, pattern):
        return int(re.search(pattern, self.text)[1], 0)

    def read(self, at, size):
        try:
            self.memory.seek(at)
            return self.memory.read(size)
        except (OSError, OverflowError):
            return b""

    def number(self, at, form="Q"):
        return struct.unpack(f"<{form}", self.read(at, struct.calcsize(form)))[0]

    def heaps(self):
        """The code heaps, and the pieces of memory that lead to them."""
        first = self.base + self.value(r"\nheaps (0x[0-9a-f]+)")
        at, pieces = self.number(first), [(first, 8)]
        if self.flags & 1:
            heaps = [at]
        else:
            length, data = map(int, re.search(r"array length (\d+) data (\d+)",
                                              self.text).groups())
            heaps = [self.number(self.number(at + data) + 8 * i)
                     for i in range(self.number(at + length, "I"))]
            pieces += [(at + length, 4), (at + data, 8), (self.number(at + data), 8 * len(heaps))]
        for heap in heaps:
            pieces += [(heap + k, 8) for k in (self.heap_start, self.heap_end, self.heap_map,
                                               self.heap_shift)]
        return heaps, pieces

    def blocks(self):
        for heap in self.heaps()[0]:
            at, end = self.number(heap + self.heap_start), self.number(heap + self.heap_end)
            while at + 64 < end:
                head = self.read(at, 16)
                if len(head) < 16 or not struct.unpack("<Q", head[:8])[0]:
                    break
                if head[8]:
                    yield at
                at += (struct.unpack("<Q", head[:8])[0] & 0xffffffff) << self.number(
                    heap + self.heap_shift, "I")

    def is_nmethod(self, block):
        return self.read(self.number(block + self.blob_name), 8) == b"nmethod\0"

    def pieces_of_method(self, method):
        head = self.number(method + self.method_const)
        size = 8 * self.number(head + self.method_size, "I")
        if not self.method_bytes <= size <= LARGEST:
            return []
        pool = self.number(head + self.method_pool)
        owner = self.number(pool + self.pool_holder)
        pieces = [(method, self.method_const + 8), (head, size),
                  (pool, max(self.pool_holder + 8, 0 if self.in_class else self.source + 2)),
                  (owner, max(self.class_name, self.in_class,
                              self.source if self.in_class else 0) + 8)]
        indices = [self.number(head + k, "H") for k in (self.method_name, self.method_signature)]
        indices.append(self.number((owner if self.in_class else pool) + self.source, "H"))
        symbols = [self.number(owner + self.class_name)]
        for i in indices:
            pieces.append((pool + self.pool_bytes + 8 * i, 8))
            symbols.append(self.number(pieces[-1][0]) & ~1)
        return pieces + [(s, self.letters + self.number(s + self.symbol, "H")) for s in symbols]

    def pieces_of_code(self, pc):
        """What a frame of code at pc needs."""
        for heap in self.heaps()[0]:
            start, end = self.number(heap + self.heap_start), self.number(heap + self.heap_end)
            if not start <= pc < end:
                continue
            shift, segments = self.number(heap + self.heap_shift, "I"), self.number(
                heap + self.heap_map)
            segment, pieces = (pc - start) >> shift, [(pc - 8, 80)]
            for _ in range(32):
                back = self.number(segments + segment, "B")
                pieces.append((segments + segment, 1))
                if not back or back == 0xff:
                    break
                segment -= back
            block = start + (segment << shift)
            pieces += [(block, max(self.blob_bytes, 256)),
                       (self.number(block + self.blob_name), 16)]
            if self.is_nmethod(block):
                pieces += self.pieces_of_tables(block)
            return pieces
        return []

    def pieces_of_tables(self, block):
        blob = block + self.heap_block
        tables = self.number(block + self.nmethod_immutable) if self.nmethod_immutable else blob
        pcs, end, data = (self.number(block + k, "I") for k in (
            self.nmethod_pcs, self.nmethod_end, self.nmethod_data))
        data = self.number(block + self.nmethod_data) if self.flags & 8 else tables + data
        metadata = self.number(block + self.nmethod_metadata, "H" if self.flags & 64 else "I")
        metadata += self.number(block + self.nmethod_mutable) if self.nmethod_mutable else blob
        pieces = [(tables + pcs, min(end - pcs, TABLE)), (data, 300), (metadata, 80)]
        methods = [self.number(block + self.nmethod_method), *struct.unpack(
            "<10Q", self.read(metadata, 80).ljust(80, b"\0"))]
        return pieces + self.heads(methods)

    def heads(self, methods):
        """Those of these words that may be methods, with their ConstMethods' heads."""
        pieces = []
        for method in methods:
            word = self.read(method + self.method_const, 8)
            if method % 8 == 0 and len(word) == 8 and len(
                    self.read(struct.unpack("<Q", word)[0], 64)) == 64:
                pieces += [(method, 16), (struct.unpack("<Q", word)[0], 64)]
        return pieces

    def packed(self, pieces):
        known, out = set(), []
        for at, size in pieces:
            bytes_of = self.read(at, size)
            if bytes_of and at not in known:
                known.add(at)
                out.append(struct.pack("<QH", at, len(bytes_of)) + bytes_of)
        return b"".join(out)


def registers(tid):
    """A thread's registers, by DWARF number. It stays stopped until this program ends."""
    libc, area = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint64 * 27)()
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(16, tid, None, None) != 0:
        return None
    os.waitpid(tid, 0x40000000)
    libc.ptrace(12, tid, None, area)
    return [area[i] for i in REGISTERS]


def write(folder, major, seeds, count):
    for i, seed in enumerate(sorted(seeds, key=len)[:count]):
        with open(f"{folder}/{major}-{i}", "wb") as f:
            f.write(seed)


def main():
    symd, pid, layout, count, methods, stacks = sys.argv[1:]
    m, made = Machine(symd, pid), {}
    for block in m.blocks():
        try:
            method = m.number(block + m.nmethod_method)
            pieces = m.pieces_of_method(method) if m.is_nmethod(block) else []
        except struct.error:
            continue
        if pieces:
            made.setdefault(sum(n for _, n in pieces) // 100, struct.pack(
                "<BQ", int(layout), method) + m.packed(pieces))
    write(methods, m.major, made.values(), int(count))
    made = {}
    for tid in map(int, os.listdir(f"/proc/{pid}/task")):
        regs = registers(tid)
        code = regs and m.pieces_of_code(regs[16])
        if not code:
            continue
        pieces = [(regs[7] - 16, STACK), *m.heaps()[1], *code]
        words = struct.unpack(f"<{STACK // 8}Q", m.read(regs[7] - 16, STACK))
        for word in words:
            pieces += m.pieces_of_code(word - 1)
        made[tid] = struct.pack("<BB6xQ17Q", int(layout), 1, m.base, *regs) + m.packed(
            [*pieces, *m.heads([*words, regs[3]])])
    write(stacks, m.major, made.values(), int(count))
    print(m.text)


main()
