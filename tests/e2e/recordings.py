# SPDX-License-Identifier: Apache-2.0
"""Takes recordings apart and puts them together again, with messages and fields that no version
knows yet."""
import re
import struct

from streams import ROOT

EMPTY = {"U64": 0, "STR": (b"",), "BIN": b"", "LIST": []}


def parse(data, at):
    """One value of msgpack, of the types that messages have, and where it ends."""
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if 0xcc <= tag <= 0xcf:
        width = 1 << (tag - 0xcc)
        return int.from_bytes(data[at:at + width], "big"), at + width
    if tag & 0xf0 == 0x90 or tag in (0xdc, 0xdd):
        count = tag & 15
        if tag >= 0xdc:
            width = 2 if tag == 0xdc else 4
            count = int.from_bytes(data[at:at + width], "big")
            at += width
        values = []
        for _ in range(count):
            value, at = parse(data, at)
            values.append(value)
        return values, at
    if tag & 0xe0 == 0xa0:
        size = tag & 31
    else:
        width = 1 << (tag - (0xd9 if tag >= 0xd9 else 0xc4))
        size = int.from_bytes(data[at:at + width], "big")
        at += width
    text = data[at:at + size]
    return (text if 0xc4 <= tag <= 0xc6 else (text,)), at + size


def messages(data):
    """All messages: [id, fields]. A binary is bytes, a string a tuple of them."""
    at = 0
    while at < len(data):
        message, at = parse(data, at)
        yield message


def encode(value):
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, tuple):
        return b"\xdb" + struct.pack(">I", len(value[0])) + value[0]
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(encode, value))


def present_fields():
    """The empty fields of each message that this version knows."""
    with open(f"{ROOT}/common/wire/messages.def", encoding="utf-8") as f:
        text = f.read()
    table = re.findall(r"^MSG_BEGIN\(\w+, \w+, (\d+),(.*?)^MSG_END", text, re.M | re.DOTALL)
    return {int(number): [EMPTY[t] for t in re.findall(r"^\t(U64|STR|BIN|LIST)\(", body, re.M)]
            for number, body in table}


def of_the_future(data, fields=(), every=0, unknown=61):
    """The recording with all known fields, with these fields added to each message, and with a
    message with an unknown id after every so many messages. Also returns the numbers of unknown
    messages and fields."""
    out, inserted, count, total, more = [], 0, 0, 0, 0
    present = present_fields()
    for number, values in messages(data):
        if number == 2:
            # Heads count the messages of the epoch before them.
            inserted = inserted if values[1] else 0
            values[1] += inserted
        values += present[number][len(values):]
        out.append(encode([number, [*values, *fields]]))
        more += len(fields)
        if number == 2:
            continue
        count += 1
        if every and number not in (1, 14) and count % every == 0:
            out.append(encode([unknown, [count, (b"news",), b"\0\1", [1, 2, 3]]]))
            inserted += 1
            total += 1
    return b"".join(out), total, more
