# SPDX-License-Identifier: Apache-2.0
"""Files of OTLP requests: decoded by the public schema (tests/otlp), held to the rules of
the specification and of all receivers that we know, and shown in the grammar of our text output."""
import functools
import importlib.util
import os
import re
import struct
import subprocess
import tempfile

from recordings import messages
from streams import ROOT

PLAIN_MAX = 4 << 20
# The conventions' list, and what OpenTelemetry's profiler sends for a stack that it gave up.
FRAME_TYPES = {"beam", "cpython", "dotnet", "go", "jvm", "kernel", "luajit", "native", "perl",
               "php", "ruby", "rust", "v8js", "abort-marker"}
TABLES = {"mapping": "Mapping", "location": "Location", "function": "Function", "link": "Link",
          "attribute": "KeyValueAndUnit", "stack": "Stack"}


@functools.cache
def schema():
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["protoc", f"--proto_path={ROOT}/tests/otlp", f"--python_out={out}",
                        "profiles.proto"], check=True)
        spec = importlib.util.spec_from_file_location("otlp_public",
                                                      os.path.join(out, "profiles_pb2.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def split(data):
    """The messages of a file. Each is preceded by its length."""
    out, at = [], 0
    while at < len(data):
        size, = struct.unpack_from(">I", data, at)
        assert len(data) >= at + 4 + size, "the file ends within a message"
        out.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return out


def requests(data, ours=True):
    """All requests of a file, decoded and checked. If a Collector wrote it (not ours), it also
    encodes fields without a value, even in the first attribute, and puts all texts into the
    dictionary; the result has the texts in their places."""
    found = []
    for plain in split(data):
        assert len(plain) < PLAIN_MAX
        r = schema().ProfilesData.FromString(plain)
        known = schema().ProfilesData()
        known.CopyFrom(r)
        known.DiscardUnknownFields()
        assert known.ByteSize() == r.ByteSize(), "a field that the public schema lacks"
        if ours:
            assert r.ByteSize() == len(plain), "a field without a value"
        elif not r.dictionary.attribute_table[0].value.WhichOneof("value"):
            r.dictionary.attribute_table[0].ClearField("value")
        check_orphans(r)
        if not ours:
            look_up_texts(r)
        check(r)
        found.append(r)
    return found


def texts(r):
    """All keys and values of resources and scopes that may refer to the dictionary: (message, field
    of the reference, field of the text)."""
    def of_value(v):
        if v.WhichOneof("value") == "array_value":
            for x in v.array_value.values:
                yield from of_value(x)
        else:
            yield v, "string_value_strindex", "string_value"
    for rp in r.resource_profiles:
        for a in [*rp.resource.attributes, *rp.scope_profiles[0].scope.attributes]:
            yield a, "key_strindex", "key"
            yield from of_value(a.value)


def look_up_texts(r):
    for message, reference, text in texts(r):
        i = getattr(message, reference)
        if i:
            message.ClearField(reference)
            setattr(message, text, r.dictionary.string_table[i])


# --- the rules ---

def check_dictionary(d):
    assert d.string_table and d.string_table[0] == ""
    assert len(set(d.string_table)) == len(d.string_table), "a string stands there twice"
    for name, message in TABLES.items():
        table = getattr(d, name + "_table")
        assert table, f"{name}_table is empty"
        assert table[0] == getattr(schema(), message)(), f"{name}_table[0] is not the empty one"
        packed = [x.SerializeToString() for x in table]
        assert len(set(packed)) == len(packed), f"{name}_table has duplicates"
    assert not d.link_table[0].trace_id and not d.link_table[0].span_id


def check_attributes(d, indices, where):
    """Indices in range, never 0, no key twice."""
    assert all(0 < i < len(d.attribute_table) for i in indices), where
    keys = [d.attribute_table[i].key_strindex for i in indices]
    assert len(set(keys)) == len(keys), f"{where}: a key stands there twice"


def check_tables(d):
    strings = len(d.string_table)
    for a in d.attribute_table[1:]:
        assert 0 < a.key_strindex < strings and 0 <= a.unit_strindex < strings
        assert a.value.WhichOneof("value") in ("string_value", "int_value")
    for m in d.mapping_table:
        assert 0 <= m.filename_strindex < strings
        assert m.memory_start < m.memory_limit or m.memory_start == m.memory_limit == 0
        check_attributes(d, m.attribute_indices, "mapping")
    for f in d.function_table:
        assert all(0 <= i < strings for i in (f.name_strindex, f.system_name_strindex,
                                              f.filename_strindex)) and f.start_line >= 0
    for f in d.function_table[1:]:
        assert f.name_strindex
    for x in d.location_table[1:]:
        assert 0 <= x.mapping_index < len(d.mapping_table)
        check_attributes(d, x.attribute_indices, "location")
        types = [d.attribute_table[i].value.string_value for i in x.attribute_indices
                 if d.string_table[d.attribute_table[i].key_strindex] == "profile.frame.type"]
        assert len(types) == 1 and types[0] in FRAME_TYPES
        assert x.lines or x.mapping_index, "nobody can name this location"
        for line in x.lines:
            assert 0 < line.function_index < len(d.function_table)
            assert line.line >= 0 and line.column >= 0
        m = d.mapping_table[x.mapping_index]
        if types[0] in ("native", "go") and m.memory_limit:
            assert m.memory_start <= x.address < m.memory_limit
    for s in d.stack_table:
        assert all(0 < i < len(d.location_table) for i in s.location_indices)


def check_orphans(r):
    """Each entry is referenced."""
    d = r.dictionary
    seen = {name: {0} for name in [*TABLES, "string"]}

    def see(name, *indices):
        seen[name].update(indices)
    for rp in r.resource_profiles:
        for sp in rp.scope_profiles:
            for p in sp.profiles:
                for t in p.sample_type, p.period_type:
                    see("string", t.type_strindex, t.unit_strindex)
                see("attribute", *p.attribute_indices)
                for s in p.samples:
                    see("stack", s.stack_index)
                    see("link", s.link_index)
                    see("attribute", *s.attribute_indices)
    see("string", *[getattr(message, reference) for message, reference, _ in texts(r)])
    for s in d.stack_table:
        see("location", *s.location_indices)
    for x in d.location_table:
        see("mapping", x.mapping_index)
        see("attribute", *x.attribute_indices)
        see("function", *[line.function_index for line in x.lines])
    for m in d.mapping_table:
        see("string", m.filename_strindex)
        see("attribute", *m.attribute_indices)
    for f in d.function_table:
        see("string", f.name_strindex, f.system_name_strindex, f.filename_strindex)
    for a in d.attribute_table:
        see("string", a.key_strindex, a.unit_strindex)
    for name, indices in seen.items():
        assert indices == set(range(len(getattr(d, name + "_table")))), f"{name}_table: orphans"


def check_plain(attributes):
    """The Collector does not look up texts of a resource or scope in the dictionary."""
    keys = [a.key for a in attributes]
    assert len(set(keys)) == len(keys) and all(keys)
    for a in attributes:
        assert not a.key_strindex
        if a.key == "process.command_args":
            assert {v.WhichOneof("value") for v in a.value.array_value.values} == {"string_value"}
            continue
        assert a.value.WhichOneof("value") in ("string_value", "int_value")
        assert a.value.WhichOneof("value") == "int_value" or a.value.string_value


def check_profile(d, p):
    assert p.samples, "a profile without samples"
    off_cpu = d.string_table[p.sample_type.type_strindex] == "off_cpu"
    for t in [p.sample_type] + ([] if off_cpu else [p.period_type]):
        assert 0 < t.type_strindex < len(d.string_table)
        assert 0 < t.unit_strindex < len(d.string_table)
    # Pyroscope recognizes off-CPU time by a period type without a name; Parca refuses a period type
    # without one.
    assert p.HasField("period_type")
    if off_cpu:
        assert p.period == p.period_type.type_strindex == p.period_type.unit_strindex == 0
    else:
        assert p.period > 0
    assert p.duration_nano > 0 and len(p.profile_id) in (0, 16)
    assert p.time_unix_nano + p.duration_nano < 1 << 64
    identities, shapes = set(), set()
    for s in p.samples:
        assert 0 <= s.stack_index < len(d.stack_table)
        assert 0 <= s.link_index < len(d.link_table)
        check_attributes(d, s.attribute_indices, "sample")
        identity = (s.stack_index, frozenset(s.attribute_indices), s.link_index)
        assert identity not in identities, "two samples have one identity"
        identities.add(identity)
        shapes.add((bool(s.values), bool(s.timestamps_unix_nano)))
        assert len(s.values) in ((0, len(s.timestamps_unix_nano)) if s.timestamps_unix_nano
                                 else (1,))
        for t in s.timestamps_unix_nano:
            assert p.time_unix_nano <= t < p.time_unix_nano + p.duration_nano
    assert len(shapes) == 1, shapes


def check(r):
    assert r.resource_profiles
    d = r.dictionary
    check_dictionary(d)
    check_tables(d)
    resources = set()
    for rp in r.resource_profiles:
        check_plain(rp.resource.attributes)
        resource = rp.resource.SerializeToString()
        assert resource not in resources, "two profiles of one resource"
        resources.add(resource)
        assert len(rp.scope_profiles) == 1 and rp.scope_profiles[0].profiles
        check_plain(rp.scope_profiles[0].scope.attributes)
        assert rp.scope_profiles[0].scope.name
        for p in rp.scope_profiles[0].profiles:
            check_profile(d, p)


# --- the contents ---

def values(attributes):
    """Attributes of a resource."""
    def value(v):
        kind = v.WhichOneof("value")
        return ([value(x) for x in v.array_value.values] if kind == "array_value"
                else getattr(v, kind))
    return {a.key: value(a.value) for a in attributes}


def lookup(d, indices):
    """Attributes of the dictionary."""
    return {d.string_table[a.key_strindex]: getattr(a.value, a.value.WhichOneof("value"))
            for a in (d.attribute_table[i] for i in indices)}


def profiles(rs):
    """(dictionary, resource's attributes, profile) of each profile, without those of losses."""
    for r in rs:
        for rp in r.resource_profiles:
            for p in rp.scope_profiles[0].profiles:
                if r.dictionary.string_table[p.sample_type.type_strindex] != "lost":
                    yield r.dictionary, values(rp.resource.attributes), p


def lost(rs):
    """The losses, by reason."""
    out = {}
    for r in rs:
        d = r.dictionary
        for rp in r.resource_profiles:
            p = rp.scope_profiles[0].profiles[0]
            if d.string_table[p.sample_type.type_strindex] != "lost":
                continue
            assert values(rp.resource.attributes)["service.name"] == "profpipe"
            for s in p.samples:
                location, = d.stack_table[s.stack_index].location_indices
                f = d.function_table[d.location_table[location].lines[0].function_index]
                reason = re.fullmatch(r"\[lost: (.*)\]", d.string_table[f.name_strindex])[1]
                out[reason] = out.get(reason, 0) + s.values[0]
    return out


def word(s):
    return s.replace(" ", r"\x20")


def is_interpreted(location, kind):
    """A frame of a JIT that only a perf map names has an address."""
    return kind == "cpython" or kind in ("jvm", "v8js") and not location.address


def binary(d, location, kind):
    path = d.string_table[d.mapping_table[location.mapping_index].filename_strindex]
    if kind == "kernel":
        return "[kernel.kallsyms]" if path == "vmlinux" else f"[{path}]"
    if is_interpreted(location, kind):
        return "[interpreted]"
    if location.mapping_index:
        return word(path) or "[file]"
    return "[anon]"


def calls(d, i):
    """The lines of our text output for one location: (address, the rest). Without a name the rest
    has `?` for the address in it, which is the function's beginning in text."""
    location = d.location_table[i]
    kind = lookup(d, location.attribute_indices)["profile.frame.type"]
    where = binary(d, location, kind)
    if not location.lines:
        base = where.replace(r"\x20", " ").rsplit("/", 1)[-1].strip("[]") or "file"
        return [(location.address, f"[{base}+?] ({where})")]
    out = []
    for k, line in enumerate(location.lines):
        f = d.function_table[line.function_index]
        source = word(d.string_table[f.filename_strindex].replace(")", "]"))
        inside = "inlined" if k + 1 < len(location.lines) else where
        if kind == "abort-marker":
            inside = word(d.string_table[f.filename_strindex]) or "[truncated]"
            source = ""
        text = f"{d.string_table[f.name_strindex]} ({inside})"
        if source:
            text += f" {source}" + (f":{line.line}" if line.line else "")
        out.append((0 if kind == "abort-marker" else location.address, text))
    return out


def comm(s, pid):
    return re.sub("[ _#]+", "_", s).strip("_") or f"pid-{pid}"


def samples(rs, offset):
    """All samples: (µs by CLOCK_MONOTONIC, pid, tid, cpu, name of the thread, calls). offset: from
    there to CLOCK_REALTIME, in ns."""
    for d, resource, p in profiles(rs):
        pid = resource.get("process.pid", 0)
        for s in p.samples:
            a = lookup(d, s.attribute_indices)
            stack = [c for i in d.stack_table[s.stack_index].location_indices
                     for c in calls(d, i)]
            for t in s.timestamps_unix_nano:
                yield ((t - offset) // 1000, pid, a.get("thread.id", 0),
                       a["cpu.logical_number"], comm(a.get("thread.name", ""), pid), stack)


def text_samples(text):
    """The same for our text output."""
    head = re.compile(r"(.*?) +(\d+)/(\d+) \[(\d+)\] (\d+)\.(\d{6}): (\d+) (.*):")
    for block in text.split("\n\n"):
        lines = [x for x in block.split("\n") if x and not x.startswith("# ")]
        if not lines:
            continue
        name, pid, tid, cpu, s, us, _, _ = head.fullmatch(lines[0]).groups()
        stack = []
        for line in lines[1:]:
            address, rest = re.fullmatch(r"\t *([0-9a-f]+) (.*)", line).groups()
            if not re.search(r"\((\[anon\]|\[kernel.kallsyms\]|\[interpreted\]|inlined)\)", rest):
                rest = re.sub(r"^(\[.*\+)0x[0-9a-f]+(\] \()", r"\1?\2", rest)
            stack.append((int(address, 16), rest))
        yield (int(s) * 1000000 + int(us), int(pid), int(tid), int(cpu), comm(name, int(pid)),
               stack)


def clocks(recording):
    """The offsets from CLOCK_MONOTONIC to CLOCK_REALTIME in a recording, in ns: at its beginning,
    and every minute."""
    found = []
    for number, fields in messages(recording):
        if number == 1:
            found.append(fields[12] - fields[11])
        elif number == 3:
            found.append(fields[1] - fields[0])
    return found


def assert_same(rs, text, offsets, exact=False):
    """Checks that both outputs have the same samples, in the same order for each thread and cpu. A
    caller's address is one less in OTLP, and interpreted frames have none. offsets: as of clocks();
    between several of them, times may be off by their difference. exact: the first frame of each
    stack is not a caller. Returns the numbers of samples and frames."""
    def key(x):
        return (*x[1:5], x[0])
    slack = (max(offsets) - min(offsets)) // 1000 + 1 if max(offsets) > min(offsets) else 0
    ours = sorted(samples(rs, offsets[0]), key=key)
    theirs = sorted(text_samples(text), key=key)
    assert len(ours) == len(theirs)
    frames = 0
    for a, b in zip(ours, theirs):
        assert a[1:5] == b[1:5] and abs(a[0] - b[0]) <= slack, f"\n{a}\n{b}"
        assert [rest for _, rest in a[5]] == [rest for _, rest in b[5]], f"\n{a}\n{b}"
        for i, ((address, rest), (of_text, _)) in enumerate(zip(a[5], b[5])):
            frames += 1
            if "([interpreted])" in rest:
                continue
            less = (0,) if exact and i == 0 else (0, 1)
            assert of_text - address in less, (rest, address, of_text)
    return len(ours), frames
