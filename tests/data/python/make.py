# SPDX-License-Identifier: Apache-2.0
"""Code objects of the Python that runs this, as they lie in its memory, and its own words on them.

    PYTHON make.py >VERSION.txt          what tests/unit/names/python.c reads
    PYTHON make.py --live [MODULE...]    the same for all code of these modules, without the memory;
                                         then waits for the end of its standard input

Lines of the output:
    version MINOR
    debug HEX                      the beginning of _PyRuntime (3.13 and later)
    memory ADDRESS HEX
    object ADDRESS NAME SOURCE FIRST RANGES
                                   NAME and SOURCE in hex of UTF-8; RANGES: END:LINE,... in
                                   positions (bytes up to 3.9, then units of two bytes), 0 for no
                                   line
"""
import ctypes
import dis
import os
import select
import sys
import types

MINOR = sys.version_info[1]
DEBUG_BYTES = 768
PIPE = os.pipe()

SOURCE = '''
def plain(a, b=2, *c, d=4, **e):
    x = a + b
    for i in range(x):
        if i % 2:
            x += i
        else:
            x -= (
                i +
                d)
    try:
        return [j for j in c if j]
    except ValueError as err:
        raise KeyError(
            err) from err
    finally:
        x = 0
class Outer:
    class Inner:
        async def \u00e9t\u00e9(self):
            async with self as s:
                await s
            return lambda y: (y,

                y)
        def \u03bb(self):
            yield 1
            \u0436 = yield 2
            return \u0436
'''


def codes_of(code):
    found = [code]
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found += codes_of(c)
    return found


def far():
    """Lines far apart, bytes far apart, and lines that go back."""
    body = ("def far(a):\n" + "    a = [\n" + "\n" * 200 + "        a,\n"
            + "        a + 1 + a * 2 - a,\n" * 40)
    body += "    ]\n" + "\n" * 130 + "    return a(\n        1,\n        2)\n"
    return body


def replaced(code, name):
    if hasattr(code, "replace"):
        return code.replace(co_name=name)
    return types.CodeType(code.co_argcount, code.co_kwonlyargcount, code.co_nlocals,
                          code.co_stacksize, code.co_flags, code.co_code, code.co_consts,
                          code.co_names, code.co_varnames, code.co_filename, name,
                          code.co_firstlineno, code.co_lnotab, code.co_freevars, code.co_cellvars)


def samples():
    yield from codes_of(compile(SOURCE, "/somewhere/package/module.py", "exec"))
    yield from codes_of(compile(far(), "/somewhere/\u0436\u0436/__init__.py", "exec"))[1:]
    small = compile("lambda: 0", "<string>", "eval").co_consts[0]
    if MINOR >= 11:
        yield small.replace(co_qualname="\U0001f600.<lambda>")
        yield small.replace(co_qualname="q" * 1500)
        yield small.replace(co_filename="/" + "long/" * 250 + "end.py")
    else:
        yield replaced(small, "\U0001f600")
        yield replaced(small, "q" * 1500)


def ranges(code):
    unit = 1 if MINOR < 10 else 2
    size = len(code.co_code)
    lines = [0] * (size // unit)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for at in range(start, min(end, size), unit):
                lines[at // unit] = line or 0
    else:
        starts = list(dis.findlinestarts(code))
        line = code.co_firstlineno
        table = dict(starts)
        for at in range(size):
            line = table.get(at, line)
            lines[at] = line
    out = []
    for at, line in enumerate(lines):
        if out and out[-1][1] == line:
            out[-1][0] = at + 1
        else:
            out.append([at + 1, line])
    return ",".join("%d:%d" % tuple(r) for r in out)


def hexed(text):
    return text.encode("utf-8", "replace").hex() or "-"


def say_object(code):
    name = code.co_qualname if MINOR >= 11 else code.co_name
    print("object %d %s %s %d %s" % (id(code), hexed(name), hexed(code.co_filename),
                                     code.co_firstlineno, ranges(code) or "-"))


def say_memory(address, size):
    print("memory %d %s" % (address, ctypes.string_at(address, size).hex()))


def pointer_at(address):
    return ctypes.c_void_p.from_address(address).value


def say_all(thing):
    say_memory(id(thing), thing.__sizeof__())


def main():
    kept = []
    print("version %d" % MINOR)
    if MINOR >= 13:
        runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        print("debug %s" % ctypes.string_at(runtime, DEBUG_BYTES).hex())
    if sys.argv[1:2] == ["--live"]:
        for module in sys.argv[2:]:
            __import__(module)
        import gc
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType):
                kept += codes_of(thing.__code__)
        for code in {id(c): c for c in kept}.values():
            say_object(code)
        print("end", flush=True)
        sys.stdin.read()
        return
    seen = set()
    for code in samples():
        kept.append(code)
        say_memory(id(code), type(code).__basicsize__)
        name = code.co_qualname if MINOR >= 11 else code.co_name
        parts = [name, code.co_filename]
        for part in parts:
            kept.append(part)
            if id(part) not in seen:
                seen.add(id(part))
                say_all(part)
        # The table as the code object has it: attributes may give a copy.
        for word in range(2, type(code).__basicsize__ // 8):
            at = pointer_at(id(code) + word * 8)
            table = getattr(code, "co_linetable" if MINOR >= 10 else "co_lnotab")
            if (at and at not in seen and 4096 < at < 1 << 47 and at % 8 == 0
                    and is_table(at, table)):
                seen.add(at)
                say_memory(at, 32 + len(table))
        say_object(code)


def is_table(at, table):
    """Whether a bytes object of this content lies at an address: the kernel reads it, which a wrong
    one does not hurt."""
    size = 33 + len(table)
    if ctypes.CDLL(None).write(PIPE[1], ctypes.c_void_p(at), ctypes.c_size_t(size)) != size:
        while select.select([PIPE[0]], [], [], 0)[0]:
            os.read(PIPE[0], size)
        return False
    got = os.read(PIPE[0], size)
    return (got[8:16] == ctypes.string_at(id(table) + 8, 8)
            and got[16:24] == len(table).to_bytes(8, "little") and got[32:] == table + b"\0")


main()
