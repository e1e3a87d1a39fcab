# SPDX-License-Identifier: Apache-2.0
"""The OTLP requests that prof-export writes, as others read them. A large recording keeps little
memory, and the same samples as in text."""
import collections
import gzip
import random
import re
import subprocess

import pytest

from otlp_rules import assert_same, clocks, lookup, lost, profiles, requests, split
from streams import BODY, END, EXPORT, HELLO, LOST, ROOT, WHOLE, export, stream

OFFSET = 1795256400000000000 - 1000000000  # of HELLO


def otlp(lines, *args, **kw):
    return export(lines, "-f", "otlp", *args, raw=True, **kw).stdout


def text(lines, *args):
    return export(lines, "-f", "text", *args).text


def steady(*args):
    return ["--window-jitter", "0", *args]


# --- one request ---

def test_a_request_holds_the_contents_of_the_stream():
    rs = requests(otlp(WHOLE))
    assert assert_same(rs, text(WHOLE), [OFFSET]) == (5, 3 * 5 + 3 + 1)
    assert lost(rs) == {"ring-full": 12}
    by_pid = {r["process.pid"]: (d, r, p) for d, r, p in profiles(rs)}
    assert set(by_pid) == {100, 200}
    d, r, p = by_pid[100]
    assert (r["service.name"], r["process.executable.name"]) == ("server", "server")
    assert (r["host.name"], r["host.arch"], r["os.type"],
            r["os.version"]) == ("build-7", "amd64", "linux", "6.1.0-18-amd64")
    s = d.string_table
    assert [s[i] for i in (p.sample_type.type_strindex, p.sample_type.unit_strindex,
                           p.period_type.type_strindex, p.period_type.unit_strindex)
            ] == ["samples", "count", "cpu", "nanoseconds"]
    assert p.period == 10101010 and p.time_unix_nano == OFFSET + 1500000000
    # One sample for each thread, cpu and stack; here each has one timestamp.
    assert len(p.samples) == 3
    # A file's mapping has its build id, and holds the address.
    m = next(m for m in d.mapping_table if s[m.filename_strindex] == "/usr/bin/server")
    assert lookup(d, m.attribute_indices) == {
        "process.executable.build_id.gnu": "00112233445566778899aabbccddeeff00112233"}


def test_samples_of_one_stack_thread_and_cpu_are_one_with_many_timestamps():
    lines = HELLO + "\n" + BODY.split("sample", 1)[0]
    lines += "".join(f"sample stack=1 thread=1 cpu=1 time_ns={10**9 + i}\n" for i in range(100))
    (_, _, p), = profiles(requests(otlp(lines + END)))
    assert [len(s.timestamps_unix_nano) for s in p.samples] == [100]


def test_the_period_of_cycles_is_the_average_of_its_samples():
    lines = WHOLE.replace("period=10101010", "period=0").replace("value=10101010", "value=500")
    lines = lines.replace('"cpu-clock"', '"cycles"').replace('"nanoseconds"', '"cycles"')
    for d, _, p in profiles(requests(otlp(lines))):
        assert p.period == 500
        assert d.string_table[p.period_type.type_strindex] == "cycles"


def test_a_stream_without_samples_makes_no_request():
    assert otlp(HELLO + "\n" + END) == b""


@pytest.mark.parametrize("names", ["all", "interpreted", "none"])
def test_names_are_left_out_as_wanted(names):
    python = ('function id=9 name="f" source="/x.py" start_line=1\n'
              "frame id=9 kind=2 process=1 offset=7 functions=[9] lines=[2] runtime=1\n"
              "stack id=9 frames=[3,2,9]\nsample stack=9 thread=1 time_ns=1500000001\n")
    lines = HELLO + "\n" + BODY + python + END
    rs = requests(otlp(lines, "--names", names))
    found = {d.string_table[f.name_strindex]
             for d, _, _ in profiles(rs) for f in d.function_table}
    native, others = {"main", "inner", "ns::work(int)"}, {"f", "do_syscall_64"}
    assert native <= found if names == "all" else not native & found
    assert others <= found if names != "none" else not others & found
    assert assert_same(rs, text(lines, "--names", names), [OFFSET])[0] == 6


# --- build ids and addresses ---

FILE = ('file id=1 dev=1 inode=10 path="/usr/bin/server" size=65536 '
        "build_id=00112233445566778899aabbccddeeff00112233")


def mapping_of(lines, *args):
    d, _, _ = next(p for p in profiles(requests(otlp(lines, *args))))
    m, = [m for m in d.mapping_table if d.string_table[m.filename_strindex] == "/usr/bin/server"]
    return (m.memory_start, m.memory_limit, m.file_offset), lookup(d, m.attribute_indices)


def with_file(more):
    return WHOLE.replace('file id=1 dev=1 inode=10 path="/usr/bin/server" '
                         "build_id=00112233445566778899aabbccddeeff00112233", FILE + more)


def test_a_mapping_is_the_segment_in_the_addresses_of_the_file():
    segments = " segments=[0,4096,0x400000,4096,8192,0x401000]"
    place, _ = mapping_of(with_file(segments))
    assert place == (0x401000, 0x403000, 4096)


def test_a_frame_without_its_address_gets_it_from_the_segment():
    lines = with_file(" segments=[4096,8192,0x401000]").replace("address=0x401100 ", "")
    rs = requests(otlp(lines))
    assert assert_same(rs, text(lines), [OFFSET])[0] == 5
    d, _, _ = next(profiles(rs))
    assert {0x401064 - 1, 0x401100 - 1} <= {x.address for x in d.location_table}


def test_without_segments_a_mapping_is_the_whole_file():
    place, _ = mapping_of(with_file(""))
    assert place == (0x400000, 0x410000, 0)


def test_a_file_has_each_build_id_that_is_known():
    htlhash, go = "ab" * 16, "f_2/x/y"
    _, ids = mapping_of(with_file(f' htlhash={htlhash} go_build_id="{go}"'))
    assert ids == {"process.executable.build_id.gnu": "00112233445566778899aabbccddeeff00112233",
                   "process.executable.build_id.go": go,
                   "process.executable.build_id.htlhash": htlhash}


def test_devfiler_gets_no_attributes_without_the_hash_that_it_demands():
    assert mapping_of(WHOLE, "--receiver", "devfiler")[1] == {}
    _, ids = mapping_of(with_file(" htlhash=" + "ab" * 16), "--receiver", "devfiler")
    assert len(ids) == 2


@pytest.mark.parametrize("field,kind", [("", "cpython"), (" runtime=1", "cpython"),
                                        (" runtime=2", "jvm"), (" runtime=3", "v8js"),
                                        (" runtime=62", "native")])
def test_an_interpreted_frame_has_the_type_of_its_runtime(field, kind):
    lines = HELLO + f"""
process id=1 pid=7 start_ns=5 comm="x"
thread id=1 process=1 tid=7
function id=1 name="Main.run"
frame id=1 kind=2 process=1 offset=7 functions=[1]{field}
stack id=1 frames=[1]
sample stack=1 thread=1 time_ns=1000000000
"""
    d, _, _ = next(profiles(requests(otlp(lines + END))))
    location = d.location_table[1]
    assert lookup(d, location.attribute_indices)["profile.frame.type"] == kind
    assert not location.address


@pytest.mark.parametrize("exe,kind", [("/usr/bin/java", "jvm"), ("/usr/bin/node", "v8js"),
                                      ("/usr/bin/luajit", "luajit"), ("/opt/own", "native")])
def test_generated_code_has_the_type_of_its_runtime(exe, kind):
    lines = HELLO + f"""
file id=1 dev=1 inode=1 path="{exe}"
process id=1 pid=7 start_ns=5 comm="x" exe=1
thread id=1 process=1 tid=7
function id=1 name="Main.run"
frame id=1 offset=0x7f0000001000 process=1 functions=[1]
stack id=1 frames=[1]
sample stack=1 thread=1 time_ns=1000000000
"""
    d, r, _ = next(profiles(requests(otlp(lines + END))))
    assert lookup(d, d.location_table[1].attribute_indices) == {"profile.frame.type": kind}
    assert (r["process.executable.path"], r["service.name"]) == (exe, exe.rsplit("/", 1)[1])
    if kind == "luajit":
        d, _, _ = next(profiles(requests(otlp(lines + END, "--receiver", "devfiler"))))
        assert lookup(d, d.location_table[1].attribute_indices) == {
            "profile.frame.type": "native"}


# --- resources ---

def test_a_resource_says_where_its_process_runs():
    pod, container = "12345678_1234_1234_1234_123456789abc", "c0ffee" + "0" * 58
    lines = WHOLE.replace("process id=1", f"""cgroup id=1 path="/kubepods.slice/\
kubepods-burstable.slice/kubepods-burstable-pod{pod}.slice/cri-containerd-{container}.scope"
process id=1 cgroup=1""").replace("process id=2", """cgroup id=2 path="/system.slice/\
my\\x5cx2dweb.service"
process id=2 cgroup=2""")
    found = {r["process.pid"]: r for _, r, _ in profiles(requests(otlp(lines)))}
    assert found[100]["container.id"] == container
    assert found[100]["k8s.pod.uid"] == pod.replace("_", "-")
    assert found[100]["service.name"] == container[:12]
    assert found[200]["service.name"] == "my-web" and "container.id" not in found[200]


VARIABLE = "process.environment_variable."


def resource_of(*attributes, after=True, cgroup=None):
    """The attributes of the only process in a stream that contains these facts about it, after its
    samples or before them."""
    told = "".join(f'attribute process=1 key="{k}" value="{v}"\n' for k, v in attributes)
    group = f'cgroup id=1 path="{cgroup}"\n' if cgroup else ""
    lines = (HELLO + f"""
{group}process id=1 pid=7 start_ns=5 comm="x"{" cgroup=1" if cgroup else ""}
thread id=1 process=1 tid=7
function id=1 name="f"
frame id=1 offset=1 process=1 functions=[1]
stack id=1 frames=[1]
{"" if after else told}sample stack=1 thread=1 time_ns=1000000000
{told if after else ""}sample stack=1 thread=1 time_ns=1000000001
""")
    (_, r, p), = profiles(requests(otlp(lines + END)))
    assert sum(len(s.timestamps_unix_nano) for s in p.samples) == 2
    return r


@pytest.mark.parametrize("after", [False, True])
def test_a_service_has_the_name_that_its_process_sets(after):
    unit, listed = "/system.slice/unit.service", (VARIABLE + "OTEL_RESOURCE_ATTRIBUTES",
                                                  "service.name=listed,service.name=%6cast")
    said = (VARIABLE + "OTEL_SERVICE_NAME", "said")
    for attributes, name in (((listed, said), "said"), ((listed,), "last"), ((), "unit")):
        r = resource_of(*attributes, after=after, cgroup=unit)
        assert r["service.name"] == name
        assert not [k for k in r if k.startswith(VARIABLE)], "it says twice what it says"
    assert resource_of(said, (said[0], ""), after=after)["service.name"] == "x"


def test_the_attributes_that_a_process_sets_are_in_its_resource():
    r = resource_of((VARIABLE + "OTEL_RESOURCE_ATTRIBUTES",
                     "deployment.environment.name = a%2Cb ,nothing,k%3D=\\x0a%c3%a4%ff,"
                     "process.pid=1,host.name=other,t=1,t=2"),
                    (VARIABLE + "REGION", "eu"), ("process.command_args", "/bin/x\\x00-a b\\x00"))
    assert (r["deployment.environment.name"], r["k="], r["t"]) == ("a,b", r"\x0aä\xff", "2")
    assert (r["process.pid"], r["host.name"]) == (7, "build-7"), "profpipe knows better"
    assert r[VARIABLE + "REGION"] == "eu"
    assert r["process.command_args"] == ["/bin/x", "-a b", ""]


def test_a_list_that_was_cut_loses_its_last_attribute():
    key = VARIABLE + "OTEL_RESOURCE_ATTRIBUTES"
    for size, has in ((1020, True), (1024, False)):
        r = resource_of((key, "a=1,b=" + "x" * (size - 6)))
        assert r["a"] == "1" and ("b" in r) == has


def test_attributes_beyond_the_most_are_counted():
    r = resource_of((VARIABLE + "OTEL_RESOURCE_ATTRIBUTES",
                     ",".join(f"k{i}={i}" for i in range(100)) + ",bad"))
    assert r["k63"] == "63" and "k64" not in r
    lines = WHOLE.replace("thread id=1", f'attribute process=1 key="{VARIABLE}'
                          'OTEL_RESOURCE_ATTRIBUTES" value="a=1,bad"\nthread id=1')
    rs = requests(otlp(lines))
    assert sorted(rp.resource.dropped_attributes_count
                  for r in rs for rp in r.resource_profiles) == [0] * (
                      sum(len(r.resource_profiles) for r in rs) - 1) + [1]


def test_a_machine_has_a_name_and_no_id():
    r = resource_of(cgroup="/machine.slice/machine-web.scope")
    assert (r["container.name"], r["service.name"]) == ("web", "web") and "container.id" not in r


def test_the_last_attributes_of_a_process_hold_for_its_window():
    """The program, and another one's name for the same process."""
    lines = HELLO + """
process id=1 pid=7 start_ns=5 comm="x"
thread id=1 process=1 tid=7
function id=1 name="f"
frame id=1 offset=1 process=1 functions=[1]
stack id=1 frames=[1]
sample stack=1 thread=1 time_ns=1000000000
file id=1 dev=1 inode=1 path="/usr/bin/late"
process id=1 pid=7 start_ns=5 comm="x" exe=1
sample stack=1 thread=1 time_ns=1000000001
process id=2 pid=7 start_ns=5 execs=1 comm="x"
thread id=2 process=2 tid=7
sample stack=1 thread=2 time_ns=1000000002
process id=2 pid=7 start_ns=5 execs=1 comm="x" exe=1
sample stack=1 thread=2 time_ns=1000000003
"""
    (_, r, p), = profiles(requests(otlp(lines + END)))
    assert r["process.executable.path"] == "/usr/bin/late"
    assert [len(s.timestamps_unix_nano) for s in p.samples] == [4]


def test_a_resource_says_when_its_process_began():
    boot = WHOLE.replace("wall_ns=1795256400000000000",
                         "wall_ns=1795256400000000000 boot_ns=3600000000000")
    lines = boot.replace("start_ns=5", "start_ns=3599500000000")
    found = {r["process.pid"]: r for _, r, _ in profiles(requests(otlp(lines)))}
    assert found[100]["process.creation.time"] == "2026-11-21T10:19:59.500Z"


def test_a_program_that_executes_itself_stays_one_resource():
    lines = HELLO + '\nfile id=1 inode=1 path="/bin/sh"\nfunction id=1 name="f"\n'
    lines += "frame id=1 file=1 offset=1 functions=[1]\nstack id=1 frames=[1]\n"
    for execs in 1, 2:
        lines += (f'process id={execs} pid=9 start_ns=5 execs={execs} exe=1 comm="sh"\n'
                  f'thread id={execs} process={execs} tid=9 comm="sh"\n'
                  f"sample stack=1 thread={execs} time_ns={10**9 + execs}\n")
    (_, _, p), = profiles(requests(otlp(lines + END)))
    assert sum(len(s.timestamps_unix_nano) for s in p.samples) == 2


# --- sources, labels and links ---

def extras(definitions, *samples):
    """The profiles of one thread that has these samples of one stack."""
    lines = HELLO + """
process id=1 pid=7 start_ns=5 comm="x"
thread id=1 process=1 tid=7
function id=1 name="f"
frame id=1 offset=1 process=1 functions=[1]
stack id=1 frames=[1]
""" + definitions + "".join(f"sample stack=1 thread=1 time_ns={10**9 + i} {s}".rstrip() + "\n"
                            for i, s in enumerate(samples))
    rs = requests(otlp(lines + END, *steady()))
    assert len(rs) == 1 and len(rs[0].resource_profiles) == 1
    return rs[0].dictionary, list(rs[0].resource_profiles[0].scope_profiles[0].profiles)


def types(d, p):
    s = d.string_table
    return tuple(s[i] for t in (p.sample_type, p.period_type)
                 for i in (t.type_strindex, t.unit_strindex))


def test_samples_with_other_labels_or_another_span_are_other_samples():
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    d, (p,) = extras(f"""label id=1 key="endpoint" value="/pay"
label id=2 key="shard" number=7
label id=3 key="endpoint" value="second"
label id=4 key="thread.id" number=1
labels id=1 list=[1,2,3,4]
label id=5 number=5
labels id=2 list=[5]
labels id=4 list=[]
labels id=3 list=[2,1]
link id=1 trace={trace} span={span}
link id=2 trace={"00" * 16} span={span}
""", "labels=1 link=1", "labels=1", "labels=3 link=1", "link=2", "labels=2", "labels=4", "")
    found = {(len(s.timestamps_unix_nano), s.link_index,
              lookup(d, s.attribute_indices).get("endpoint")): lookup(d, s.attribute_indices)
             for s in p.samples}
    assert set(found) == {(2, 1, "/pay"), (1, 0, "/pay"), (4, 0, None)}
    assert found[2, 1, "/pay"] == {"thread.id": 7, "cpu.logical_number": 0, "endpoint": "/pay",
                                   "shard": 7}
    link = d.link_table[1]
    assert (link.trace_id.hex(), link.span_id.hex(), len(d.link_table)) == (trace, span, 2)


def test_each_source_is_a_profile():
    d, found = extras("""source id=1 kind=3 event="sched" unit="nanoseconds" period=1
source id=2 kind=4 event="malloc" unit="bytes" period=524288
source id=3 kind=1 event="timer" unit="nanoseconds" period=1000
source id=4 kind=2 event="cache-misses" unit="misses" period=77
source id=5 kind=0
""", "source=1 value=5", "value=10101010", "source=1 value=6", "source=2 value=100",
                      "source=3 value=1000", "source=4 value=77", "source=4 value=231 count=3",
                      "source=5 value=9", "value=10101010")
    rows = [(types(d, p), p.period, [(len(s.timestamps_unix_nano), list(s.values))
                                     for s in p.samples]) for p in found]
    assert rows[0] == (("samples", "count", "cpu", "nanoseconds"), 10101010, [(2, [])])
    assert sorted(rows[1:]) == [
        (("events", "count", "events", "count"), 1, [(1, [9])]),
        (("malloc", "bytes", "malloc", "bytes"), 524288, [(1, [100])]),
        (("off_cpu", "nanoseconds", "", ""), 0, [(2, [5, 6])]),
        (("samples", "count", "cache-misses", "misses"), 77, [(1, [])]),
        (("samples", "count", "cache-misses", "misses"), 77, [(1, [3])]),
        (("samples", "count", "cpu", "nanoseconds"), 1000, [(1, [])])]


def test_too_many_sources_and_labels_for_a_request_lose_nothing():
    definitions = "".join(f'source id={i} kind=2 event="e{i}" unit="u" period=1\n'
                          f'label id={i} key="k{i}" number={i}\n' for i in range(1, 64))
    definitions += f"labels id=1 list=[{','.join(map(str, range(1, 64)))}]\n"
    lines = HELLO + "\n" + BODY.split("sample", 1)[0] + definitions
    lines += "".join(f"sample stack=1 thread=1 cpu=1 time_ns={10**9 + i} source={i} labels=1\n"
                     for i in range(1, 64))
    rs = requests(otlp(lines + END))
    found = list(profiles(rs))
    assert len(rs) > 1 and len(found) == 63
    assert all(len(s.attribute_indices) > 62 for _, _, p in found for s in p.samples)
    assert assert_same(rs, text(lines + END), [OFFSET])[0] == 63


# --- windows ---

def many(times):
    lines = HELLO + "\n" + BODY.split("sample", 1)[0]
    return lines + "".join(f"sample stack=1 thread=1 cpu=1 time_ns={t} value=10101010\n"
                           for t in times)


def test_a_window_ends_before_its_end():
    second = 10**9
    lines = many([second, 6 * second - 1, 6 * second, 10 * second, 11 * second]) + END
    rs = requests(otlp(lines, *steady()))
    spans = [(p.time_unix_nano - OFFSET, p.duration_nano, sum(len(s.timestamps_unix_nano)
                                                             for s in p.samples))
             for _, _, p in profiles(rs)]
    assert spans == [(second, 5 * second, 2), (6 * second, 5 * second, 2), (11 * second, 1, 1)]


def test_a_late_sample_moves_the_windows_beginning():
    second = 10**9
    lines = many([second, 6 * second, 6 * second - 5]) + END
    (_, _, a), (_, _, b) = profiles(requests(otlp(lines, *steady())))
    assert b.time_unix_nano - OFFSET == 6 * second - 5
    assert sum(len(s.timestamps_unix_nano) for s in b.samples) == 2 and a.samples


def test_silence_ends_a_window():
    """The stream's figures say until when it was sampled; what comes later goes into later
    windows."""
    second = 10**9
    lines = many([second]) + f'figure name="sampling_since" value={second}\n'
    cut = lines + f'figure name="sampled_until" value={9 * second}\n'
    assert len(requests(otlp(cut, code=3))) == 1
    later = cut + f"sample stack=1 thread=1 cpu=1 time_ns={9 * second} value=1\n"
    assert len(requests(otlp(later + END, *steady()))) == 2


def test_windows_of_jitter_differ_in_length():
    lines = many(range(10**9, 300 * 10**9, 10**8)) + END
    lengths = {p.duration_nano for _, _, p in profiles(requests(otlp(lines)))}
    assert len(lengths) > 20 and all(l <= 6.001e9 for l in lengths)
    assert {p.duration_nano for _, _, p in profiles(requests(otlp(lines, *steady())))
            } >= {5 * 10**9}


def test_losses_are_reported_once():
    lines = many([10**9]) + LOST + many([7 * 10**9]).split("frames=[7]\n")[1]
    lines += "lost reason=2 count=3 cpu=1\n" + END
    assert lost(requests(otlp(lines, *steady()))) == {"ring-full": 12, "queue-full": 3}


@pytest.mark.parametrize("wall_s", [1795256500, 1700000000, 1])
def test_a_clock_that_is_set_begins_another_window(wall_s):
    second = 10**9
    later = f"clock mono_ns={2 * second} wall_ns={wall_s * second}\n"
    lines = many([second]) + later + f"sample stack=1 thread=1 time_ns={2 * second}\n" + END
    (_, _, a), (_, _, b) = profiles(requests(otlp(lines)))
    assert a.time_unix_nano == OFFSET + second
    # There are no times before 1970, so a wall clock below the time since boot is replaced by that
    # time.
    assert b.time_unix_nano == max(wall_s, 2) * second


def test_epochs_roll_within_a_window():
    """The same definitions under other ids are the same entries."""
    lines = many([10**9]) + "epoch 2\n" + many([2 * 10**9]).split("\n", 1)[1]
    (_, _, p), = profiles(requests(otlp(lines + END)))
    assert [len(s.timestamps_unix_nano) for s in p.samples] == [2]


# --- sizes ---

def hostile(n, name):
    """n stacks of four functions with names that do not compress."""
    rng = random.Random(1)
    lines = [HELLO, 'process id=1 pid=1 comm="p"', "thread id=1 process=1 tid=1"]
    for i in range(1, n + 1):
        for k in range(4):
            text = rng.randbytes(name // 2).hex()
            lines.append(f'function id={4 * i + k} name="{text}"')
            lines.append(f"frame id={4 * i + k} offset={4 * i + k} functions=[{4 * i + k}]")
        lines.append(f"stack id={i} frames=[{','.join(str(4 * i + k) for k in range(4))}]")
        lines.append(f"sample stack={i} thread=1 time_ns={10**9 + i}")
    return "\n".join(lines) + "\n" + END


def test_a_window_that_grows_too_large_is_several_requests():
    data = stream(hostile(2000, 1000))
    out = otlp(data)
    rs = requests(out)
    assert 2 <= len(rs) <= 12
    assert all(len(gzip.compress(x)) <= 1 << 20 for x in split(out))
    assert assert_same(rs, text(data), [OFFSET])[0] == 2000 and not lost(rs)


def test_a_stack_that_is_too_large_is_cut_and_says_so():
    """A stack of 4,096 frames of one function takes little. With a name for each, it is too much
    for any request."""
    lines = [HELLO, 'process id=1 pid=1 comm="p"', "thread id=1 process=1 tid=1"]
    for i in range(1, 4001):
        lines.append(f'function id={i} name="{i:04}{"x" * 996}"')
        lines.append(f"frame id={i} offset={i} functions=[{i}]")
    lines.append(f"stack id=1 frames=[{','.join(map(str, range(1, 4001)))}]")
    lines.append(f"stack id=2 frames=[{','.join(['1'] * 4000)}]")
    lines += ["sample stack=1 thread=1 time_ns=1000000000",
              "sample stack=2 thread=1 time_ns=1000000001"]
    rs = requests(otlp("\n".join(lines) + "\n" + END))
    lengths = collections.Counter()
    for d, _, p in profiles(rs):
        for s in p.samples:
            stack = d.stack_table[s.stack_index].location_indices
            f = d.function_table[d.location_table[stack[-1]].lines[0].function_index]
            lengths[len(stack), d.string_table[f.name_strindex][:24]] += 1
    assert lengths == {(501, "[truncated: definitions]"): 1, (4000, "0001" + "x" * 20): 1}


def test_samples_that_find_no_room_are_counted():
    """In 1 MiB no window has room for such a thread's first stack, and the model for few."""
    data = stream(hostile(400, 1000))
    p = export(data, "-f", "otlp", "-m", "1M", raw=True)
    rs = requests(p.stdout)
    kept = sum(len(s.timestamps_unix_nano) for _, _, p in profiles(rs) for s in p.samples)
    assert kept + lost(rs).get("limit", 0) == 400


def rss_mib(data, *args):
    """The peak of prof-export's resident memory, when at most a pipe of the data is left. (What the
    kernel reports at the end is no less than ours, before the exec.)"""
    p = subprocess.Popen([EXPORT, *args], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    p.stdin.write(data)
    with open(f"/proc/{p.pid}/status", encoding="utf-8") as f:
        peak = int(re.search(r"VmHWM:\s*(\d+)", f.read())[1])
    p.stdin.close()
    assert p.wait() == 0
    return peak / 1024


def test_memory_is_flat():
    """A million samples in three epochs that repeat their definitions, and as many as a twentieth
    of them, take the same memory."""
    definitions = BODY.split("sample", 1)[0]

    def long(seconds):
        lines = [HELLO]
        for epoch in range(3):
            lines += [*([f"epoch {epoch + 1}"] if epoch else []), *definitions.splitlines()]
            for i in range(seconds * 1000 // 3):
                t = 10**9 + (epoch * seconds // 3) * 10**9 + i * 10**6
                lines.append(f"sample stack={1 + i % 2} thread={1 + i % 3} cpu={i % 2} "
                             f"time_ns={t} value=10101010")
        return stream("\n".join(lines) + f"\nend time_ns={(seconds + 2) * 10**9}\n")
    args = ["-f", "otlp"]
    short, whole = rss_mib(long(51), *args), rss_mib(long(1002), *args)
    print(f"resident: {short:.1f} MiB for 51,000 samples, {whole:.1f} MiB for 1,002,000")
    assert whole < short + 1


# --- recordings ---

@pytest.mark.parametrize("name", ["host", "python"])
def test_an_old_recording_is_the_same_as_text(name):
    with open(f"{ROOT}/tests/data/recordings/{name}.prof", "rb") as f:
        data = f.read()
    out = otlp(data)
    n, frames = assert_same(requests(out), text(data), clocks(data), exact=True)
    assert n > 50 and frames > 5 * n / 2
