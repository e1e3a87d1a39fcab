# SPDX-License-Identifier: Apache-2.0
"""A large ELF file for the bench and the tests: the call frame information of another file many
times over, each time for text of its own. Text and the other sections are holes."""
import struct


def sections(data):
    at, (count, names) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQ", data, at + 64 * i) for i in range(count)]
    strings = headers[names][4]
    return {data[strings + h[0]:data.find(b"\0", strings + h[0])].decode(): h for h in headers}


def entries(data):
    """The entries of .eh_frame: CIEs by offset, and FDEs of .text as (bytes, offset of its CIE,
    distance of its function from .text's start)."""
    found = sections(data)
    _, _, _, frame_addr, frame, size = found[".eh_frame"]
    _, _, _, text_addr, _, text_size = found[".text"]
    at, cies, fdes = frame, {}, []
    while at + 8 <= frame + size:
        length, link = struct.unpack_from("<II", data, at)
        entry = data[at:at + 4 + length]
        if length and not link:
            cies[at] = entry
        elif length:
            distance, = struct.unpack_from("<i", data, at + 8)
            start = frame_addr + at - frame + 8 + distance - text_addr
            if 0 <= start < text_size:
                fdes.append((entry, at + 4 - link, start))
        at += 4 + length
    return cies, fdes, (text_size + 4095) & ~4095


def make(source, path, size, copies=None):
    """Writes the file, of `size` bytes, with this number of copies, or as many as fill four
    fifths of it with text. Returns the bytes of text."""
    with open(source, "rb") as f:
        cies, fdes, span = entries(f.read())
    copies = copies or size * 4 // 5 // span
    base, text = 0x400000, 4096
    frame = text + span * copies
    out = bytearray()
    for copy in range(copies):
        places = {}
        for old, entry in cies.items():
            places[old] = len(out)
            out += entry
        for entry, cie, start in fdes:
            at = len(out)
            out += entry
            struct.pack_into("<Ii", out, at + 4, at + 4 - places[cie],
                             text + copy * span + start - (frame + at + 8))
    out += bytes(4)
    names = b"\0.text\0.eh_frame\0.shstrtab\0"
    strings = frame + len(out)
    headers = (strings + len(names) + 15) & ~15

    def load(flags, at, n):
        return struct.pack("<IIQQQQQQ", 1, flags, at, base + at, base + at, n, n, 4096)

    def section(name, kind, flags, addr, at, n):
        return struct.pack("<IIQQQQIIQQ", name, kind, flags, addr, at, n, 0, 0, 1, 0)
    with open(path, "wb") as f:
        f.write(b"\x7fELF\2\1\1" + bytes(9))
        f.write(struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, headers, 0, 64, 56, 2, 64, 4, 3))
        f.write(load(5, text, span * copies) + load(4, frame, len(out)))
        f.seek(frame)
        f.write(out + names)
        f.seek(headers)
        f.write(bytes(64))
        f.write(section(1, 1, 6, base + text, text, span * copies))
        f.write(section(7, 1, 2, base + frame, frame, len(out)))
        f.write(section(17, 3, 0, 0, strings, len(names)))
        f.truncate(max(size, f.tell()))
    return span * copies
