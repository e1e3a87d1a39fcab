# SPDX-License-Identifier: Apache-2.0
"""profpipe doctor, and the start of a run, on hosts that allow too little. Each runs in namespaces
of its own, so that nothing of the host changes."""
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, profpipe

LAUNCHERS = ("open files", "processes and threads", "bytes of stack", "bytes of data",
             "bytes of address space", "bytes of a file", "users of the tools")
CHECKS = (*LAUNCHERS, "kernel", "virtual machine", "container", "user namespace", "pid namespace",
          "time namespace", "/proc", "capabilities", "lockdown", "LSM", "seccomp", "cells",
          "perf_event_paranoid", "kptr_restrict", "unprivileged_bpf_disabled", "bpf_jit_enable",
          "memlock", "tracefs", "BTF", "perf events", "BPF", "kernel names", "programs")
SELF_TEST = ("self-test: samples", "self-test: stacks", "self-test: kernel", "self-test: names")

# Runs a program with a filter that refuses these system calls with this errno.
DENY = r"""
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)atoi(argv[1]) },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2]) },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};
	struct sock_fprog program = { 4, code };
	if (argc < 4 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 9;
	execvp(argv[3], argv + 3);
	return 9;
}
"""
BPF_CALL, PERF_CALL, EPERM, EACCES = 321, 298, 1, 13  # of x86-64

UNAME = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
int uname(struct utsname *u)
{
	long r = syscall(SYS_uname, u);
	strcpy(u->release, getenv("FAKE_RELEASE"));
	strcpy(u->version, "#1 SMP");
	return (int)r;
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Programs compiled for these tests: name to path."""
    folder = tmp_path_factory.mktemp("made")
    for name, source, options in (("deny", DENY, []), ("uname.so", UNAME, ["-shared", "-fPIC"])):
        (folder / f"{name}.c").write_text(source)
        subprocess.run(["gcc", *options, "-o", folder / name, folder / f"{name}.c"], check=True)
    return lambda name: str(folder / name)


def run(argv, **kw):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120, **kw)


def mounts(script, *argv):
    """argv, wrapped to run in a mount namespace that the script has changed."""
    return ["unshare", "-m", "sh", "-ec", f"{script}; exec {shlex.join([str(a) for a in argv])}"]


def without(caps, *argv):
    return ["capsh", f"--drop={caps}", "--", "-c", f"exec {shlex.join([str(a) for a in argv])}"]


def doctor(wrap, *options):
    p = run(wrap(f"{BUILD}/profpipe", "doctor", "--json", *options))
    assert p.stderr == "", p.stderr
    got = json.loads(p.stdout)
    checks = {c["name"]: c for c in got["checks"]}
    worst = [v for v in ("fatal", "degraded", "fine")
             if any(c["verdict"] == v for c in got["checks"])][0]
    assert got["verdict"] == worst and p.returncode == (worst == "fatal"), p.stdout
    for c in got["checks"]:
        assert c["found"]
        if c["verdict"] == "fine":
            assert not c["lost"] and not c["remedy"]
        else:
            assert c["lost" if c["verdict"] == "degraded" else "reason"], c
    return got, checks


def fatal(checks):
    return {name for name, c in checks.items() if c["verdict"] == "fatal"}


def record(wrap, tmp_path, *options):
    return run(wrap(f"{BUILD}/profpipe", "record", "-q", "-d", "0.5", "-o", tmp_path / "x.folded",
                    *options))


def same(*argv):
    return list(argv)


def test_each_check_is_a_line_and_the_self_test_gets_samples():
    p = profpipe("doctor")
    assert p.returncode == 0 and p.stderr == "", p.stdout + p.stderr
    lines = [re.fullmatch(r"(.{26})(fine|degraded|fatal) +(\S.*)", line)
             for line in p.stdout.splitlines()]
    assert all(lines), p.stdout
    assert tuple(m[1].strip() for m in lines) == CHECKS + SELF_TEST
    for m in lines:
        assert ("; lost: " in m[3]) == (m[2] == "degraded"), m[0]
    got = {m[1].strip(): m[3] for m in lines}
    assert int(got["self-test: samples"].split()[0]) > 0
    assert os.uname().release in got["kernel"]


def test_json_says_the_same():
    got, checks = doctor(same)
    assert tuple(checks) == CHECKS + SELF_TEST
    test = got["self_test"]
    assert test["samples"] >= max(test["complete"], test["kernel"],
                                  test["user_named"]) and test["samples"] > 0
    assert test["kernel_named"] > 0 and test["user_named"] > 0
    assert test["complete"] > 0.5 * test["samples"]


@pytest.mark.parametrize("options", [["--nosuch"], ["x"], ["-o", "f"], ["--json=1"]])
def test_doctor_refuses_unknown_options(options):
    p = profpipe("doctor", *options)
    assert p.returncode == 2 and len(p.stderr.splitlines()) == 1 and p.stdout == ""


FATAL = {"pid namespace with the host's proc": (lambda *a: ["unshare", "-pf", *a], {"/proc"},
                                                "/proc"),
         "time namespace": (lambda *a: ["unshare", "--time", "--boottime", "100000", "--fork", *a],
                            {"time namespace"}, "time namespace"),
         "user namespace": (lambda *a: ["unshare", "-Ur", *a],
                            {"user namespace", "perf events", "BPF"}, "user namespace"),
         "no BTF": (lambda *a: mounts("mount -t tmpfs none /sys/kernel/btf", *a), {"BTF"}, "BTF"),
         "garbage for BTF": (lambda *a: mounts("mount --bind /etc/passwd /sys/kernel/btf/vmlinux",
                                               *a), {"BTF"}, "BTF"),
         "no sysfs": (lambda *a: mounts("mount -t tmpfs none /sys", *a), {"BTF"}, "mount -t sysfs"),
         "no CAP_PERFMON": (lambda *a: without("cap_perfmon,cap_sys_admin", *a),
                            {"capabilities", "perf events", "BPF"}, "CAP_PERFMON"),
         "hidden processes": (lambda *a: mounts("mount -t proc -o hidepid=2 proc /proc",
                                                *without("cap_sys_ptrace,cap_sys_admin", *a)),
                              {"/proc"}, "hidepid"),
         "no CAP_BPF": (lambda *a: without("cap_bpf,cap_sys_admin", *a), {"capabilities", "BPF"},
                        "CAP_BPF"),}


def test_a_pid_namespace_hides_outside_processes():
    got, checks = doctor(lambda *a: ["unshare", "-pf", "--mount-proc", *a])
    check = checks["pid namespace"]
    assert not fatal(checks) and check["verdict"] == "degraded", checks
    assert "outside of it" in check["lost"] and check["remedy"]
    assert got["self_test"]["samples"] > 0


@pytest.mark.parametrize("name", FATAL)
def test_fatal_conditions_are_named_by_doctor_and_end_a_run(name, tmp_path):
    wrap, wanted, word = FATAL[name]
    _, checks = doctor(wrap)
    assert fatal(checks) == wanted, checks
    assert all(checks[c]["remedy"] for c in wanted)
    assert name != "user namespace" or not any(
        "LSM" in checks[c][k] for c in wanted for k in ("reason", "remedy")), checks
    assert "not run" in checks["self-test"]["found"]
    (tmp_path / "x.folded").write_text("old")
    p = record(wrap, tmp_path)
    # On a busy machine profpipe also warns that a tool takes long to end.
    errors = [line for line in p.stderr.splitlines() if "warning: " not in line]
    assert p.returncode == 1 and len(errors) == 1, p.stderr
    assert errors[0].startswith("profpipe: error: ") and word in errors[0]
    assert (tmp_path / "x.folded").read_text() == "old"


@pytest.mark.parametrize("call, check", [(BPF_CALL, "BPF"), (PERF_CALL, "perf events")])
def test_a_seccomp_filter_is_named(call, check, made, tmp_path):
    def wrap(*argv):
        return [made("deny"), call, EPERM, *argv]
    _, checks = doctor(wrap)
    assert (fatal(checks) == {check} and "seccomp" in checks[check]["reason"]
            and "a filter" in checks["seccomp"]["found"])
    p = record(wrap, tmp_path)
    assert (p.returncode == 1 and len(p.stderr.splitlines()) == 1
            and f"{check}: " in p.stderr and "seccomp" in p.stderr)


def test_a_paranoid_kernel_that_wants_more_is_named_with_its_sysctl(made):
    """As on Debian's kernels with a value of 3 or more. Here a file with that value is mounted over
    the true one, and a seccomp filter refuses the call."""
    _, checks = doctor(lambda *a: mounts("f=$(mktemp); echo 4 >$f; mount --bind $f "
                                         "/proc/sys/kernel/perf_event_paranoid; rm $f",
                                         *without("cap_sys_admin", made("deny"), PERF_CALL, EACCES,
                                                  *a)))
    assert checks["perf_event_paranoid"]["found"].startswith("4;")
    assert fatal(checks) == {"perf events"}
    assert checks["perf events"]["remedy"] == "sysctl kernel.perf_event_paranoid=2"


def test_a_missing_proc_is_reported_in_one_line(tmp_path):
    for argv in (["doctor"], ["record", "-o", tmp_path / "x.folded"]):
        p = run(mounts("mount -t tmpfs none /proc", f"{BUILD}/profpipe", *argv))
        assert (p.returncode == 1 and len(p.stderr.splitlines()) == 1
                and "mount -t proc proc /proc" in p.stderr)
    assert not (tmp_path / "x.folded").exists()


FEW = ",".join(f"cap_{c}" for c in ("sys_admin", "sys_resource", "syslog", "sys_ptrace",
                                    "dac_read_search", "checkpoint_restore", "ipc_lock"))
GOES_ON = {
    "no tracefs": lambda *a: mounts(
        "mount -t tmpfs none /sys/kernel/tracing; umount -q /sys/kernel/debug || true", *a),
    "no kallsyms": lambda *a: mounts("mount --bind /dev/null /proc/kallsyms", *a),
    "no securityfs": lambda *a: mounts("mount -t tmpfs none /sys/kernel/security", *a),
    "few capabilities": lambda *a: without(FEW, *a),
}


def test_root_is_not_hindered_by_hidepid(tmp_path):
    def wrap(*argv):
        return mounts("mount -t proc -o hidepid=2 proc /proc", *argv)
    got, checks = doctor(wrap)
    assert checks["/proc"]["verdict"] == "fine" and got["self_test"]["samples"] > 0, checks["/proc"]
    assert record(wrap, tmp_path).returncode == 0


def test_root_without_rights_is_not_told_to_become_root():
    _, checks = doctor(lambda *a: ["setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin", *a])
    assert fatal(checks) == {"capabilities", "perf events", "BPF"}
    assert not any("sudo" in checks[c]["remedy"] for c in fatal(checks)), checks


@pytest.mark.parametrize("name", GOES_ON)
def test_degraded_conditions_end_nothing(name):
    got, checks = doctor(GOES_ON[name])
    assert not fatal(checks) and got["self_test"]["samples"] > 0, checks
    if name == "no tracefs":
        assert checks["tracefs"]["verdict"] == "fine"
        assert checks["tracefs"]["found"].startswith("not mounted")
    if name == "few capabilities":
        assert checks["capabilities"]["verdict"] == "degraded"
        for cap in ("SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE", "SYSLOG"):
            assert f"CAP_{cap}" in checks["capabilities"]["remedy"]


@pytest.mark.parametrize("option, name",
                         [("--nofile=8", "open files"), ("--nofile=64", "open files"),
                          ("--nproc=60", "processes and threads"),
                          ("--stack=500000", "bytes of stack"), ("--data=1000000", "bytes of data"),
                          ("--data=10000000", "bytes of data"),
                          ("--as=50000000", "bytes of address space"),
                          ("--fsize=0", "bytes of a file")])
def test_a_limit_is_named_by_doctor_and_by_record_in_the_same_words(option, name, tmp_path):
    def wrap(*argv):
        return ["prlimit", option, *argv]
    _, checks = doctor(wrap)
    c = checks[name]
    assert fatal(checks) == {name} and "ulimit -H" in c["remedy"]
    p = record(wrap, tmp_path)
    assert (p.returncode == 1
            and p.stderr == f"profpipe: error: the limit of {name} is {c['found']}: {c['reason']}; "
            f"{c['remedy']}\n"), p.stderr
    # This limit suffices.
    switch, least = re.search(r"\(ulimit -H(\w) (\d+),", c["remedy"]).groups()
    p = record(lambda *argv: ["bash", "-c", f'ulimit -{switch} {least} && exec "$@"', "bash",
                              *argv], tmp_path)
    assert p.returncode == 0 and "limit" not in p.stderr, p.stderr


def test_a_low_limit_of_open_files_is_reported_and_sampling_works():
    got, checks = doctor(lambda *a: ["prlimit", "--nofile=300", *a])
    assert not fatal(checks) and checks["open files"]["verdict"] == "degraded"
    assert got["self_test"]["samples"] > 0


def test_low_memory_and_file_limits_are_reported_and_sampling_works():
    got, checks = doctor(lambda *a: ["prlimit", "--data=50000000", "--as=500000000",
                                     "--fsize=1000000", *a])
    assert not fatal(checks) and got["self_test"]["samples"] > 0
    assert all(checks[name]["verdict"] == "degraded" for name in LAUNCHERS[3:6]), checks


def test_soft_limits_that_may_be_raised_mislead_no_check():
    got, checks = doctor(lambda *a: ["prlimit", "--data=1000000:", "--stack=500000:", "--fsize=0:",
                                     *a])
    assert not fatal(checks) and got["self_test"]["samples"] > 0, checks


@pytest.mark.parametrize("cap", ["setuid", "setgid", "chown"])
def test_a_root_that_cannot_change_users_has_all_checks_nevertheless(cap):
    _, checks = doctor(lambda *a: ["setpriv", "--bounding-set", f"-{cap}", *a])
    assert fatal(checks) == {"users of the tools"}, checks
    assert tuple(checks) == (*CHECKS, "self-test"), checks
    users = checks["users of the tools"]
    assert f"CAP_{cap.upper()}" in users["found"] and users["remedy"]


def test_a_lock_that_cannot_be_made_is_a_line_of_its_own():
    _, checks = doctor(lambda *a: mounts("mount -t tmpfs -o ro none /run", *a))
    c = checks["users of the tools"]
    assert (fatal(checks) == {"users of the tools"} and "/run/profpipe.lock" in c["found"]
            and "/run" in c["remedy"])


def test_a_missing_dev_null_is_named(tmp_path):
    for argv in (["doctor"], ["record", "-o", tmp_path / "x.folded"]):
        p = run(mounts("mount -t tmpfs none /dev", f"{BUILD}/profpipe", *argv))
        assert p.returncode == 1 and len(p.stderr.splitlines()) == 1, p.stderr
        assert ("prof-bpf cannot be started: /dev/null cannot be opened; mknod"
                in p.stderr), p.stderr


def test_a_user_under_no_new_privs_is_not_told_of_sudo(tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        for tool in ("profpipe", "prof-bpf"):
            shutil.copy(f"{BUILD}/{tool}", folder)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
                f"{folder}/profpipe"]
        for argv in (["doctor"], ["record", "-o", f"{folder}/x.folded"]):
            p = run([*user, *argv])
            said = p.stdout + p.stderr
            assert (p.returncode == 1 and "by sudo" not in said
                    and "no_new_privs is set" in said), said


def test_missing_rights_of_a_user_are_named():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        for tool in ("profpipe", "prof-bpf"):
            shutil.copy(f"{BUILD}/{tool}", folder)
        p = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                 f"{folder}/profpipe", "doctor"])
    line = r"^capabilities +fatal +without CAP_BPF and CAP_PERFMON; .*sudo$"
    assert p.returncode == 1 and re.search(line, p.stdout, re.M), p.stdout + p.stderr


def test_a_kernel_that_may_lock_up_is_refused_by_name_unless_told(made, tmp_path):
    """The kernel's code cannot be read here, so its version decides. Where the code can be read, it
    decides, and this kernel's code is fine."""
    def bpf(release, *options, hide=True):
        env = dict(os.environ, LD_PRELOAD=made("uname.so"), FAKE_RELEASE=release,
                   ASAN_OPTIONS="verify_asan_link_order=0")
        argv = [f"{BUILD}/prof-bpf", *options]
        return run(mounts("mount --bind /dev/null /proc/kallsyms", *argv) if hide else argv,
                   env=env)

    record_some = ("-d", "0.2", "-o", tmp_path / "x.prof")
    p = bpf("6.1.20-generic", *record_some)
    assert p.returncode == 1 and len(p.stderr.splitlines()) == 1, p.stderr
    assert ("6.1.20-generic" in p.stderr and "6.1.36" in p.stderr
            and "--ignore-unsafe-kernel" in p.stderr)
    p = bpf("6.1.20-generic", "--check")
    assert p.returncode == 1 and re.match("kernel +fatal ", p.stdout)
    p = bpf("6.1.20-generic", "--check", "--ignore-unsafe-kernel")
    assert p.returncode == 0 and re.match("kernel +degraded ", p.stdout), p.stdout
    p = bpf("6.1.20-generic", *record_some, "--ignore-unsafe-kernel")
    assert p.returncode == 0, p.stderr
    for release, hide in (("6.1.36", True), ("5.15.0-1", True), ("6.1.20-generic", False)):
        assert re.match("kernel +fine ", bpf(release, "--check", hide=hide).stdout), release


def test_a_run_without_samples_is_reported(tmp_path):
    # One tick a second gives none in a third of a second.
    p = profpipe("record", "-q", "-F", "1", "-d", "0.3", "-o", tmp_path / "x.folded")
    # Other programs of this host may take more than their share meanwhile.
    said = [line for line in p.stderr.splitlines()
            if not re.search("takes more than its share|lacks", line)]
    assert (p.returncode == 0 and len(said) == 1
            and "no samples: no process ran at any sampling time" in said[0]), p.stderr
    # The profiled process may sleep through all ticks.
    p = profpipe("record", "-q", "-F", "2", "-d", "1.6", "-o", tmp_path / "x.folded", "--", "sleep",
                 "60")
    assert (p.returncode == 0 and len(p.stderr.splitlines()) == 1
            and "no samples: sleep did not run at any sampling time" in p.stderr), p.stderr


STAND_IN = """#!/usr/bin/python3 -S
import os, struct, sys
fd = int(sys.argv[sys.argv.index("--status-fd") + 1])
def word(verdict, name, found, magic=0x7066636b):
    os.write(fd, struct.pack("<II32s320s320s320s", magic, verdict, name, found, b"", b""))
{how}
"""


@pytest.mark.parametrize("how",
                         ["", "sys.exit(3)", "os.write(fd, os.urandom(4000))",
                          "word(0, b'x', b'y', magic=1)", "word(7, b'x', b'y')",
                          "os.kill(os.getpid(), 9)", "word(0, b'x' * 32, b'y')"])
def test_useless_output_of_prof_bpf_is_an_error(how, tmp_path):
    shutil.copy(f"{BUILD}/profpipe", tmp_path)
    (tmp_path / "prof-bpf").write_text(STAND_IN.replace("{how}", how))
    (tmp_path / "prof-bpf").chmod(0o755)
    p = run([tmp_path / "profpipe", "doctor"])
    assert (p.returncode == 1 and "reported nothing" in p.stderr
            and all(line.startswith(LAUNCHERS) for line in p.stdout.splitlines()))


def test_output_of_prof_bpf_is_escaped_and_bounded(tmp_path):
    shutil.copy(f"{BUILD}/profpipe", tmp_path)
    (tmp_path / "prof-bpf").write_text(
        STAND_IN.replace("{how}", r"for _ in range(500): word(2, b'x', b'\x1b[2J\r\xff')"))
    (tmp_path / "prof-bpf").chmod(0o755)
    p = run([tmp_path / "profpipe", "doctor"])
    assert (p.returncode == 1 and r"\x1b[2J" in p.stdout and "\x1b" not in p.stdout
            and len(p.stdout) < 20_000)
    p = run([tmp_path / "profpipe", "doctor", "--json"])
    assert p.returncode == 1 and len(json.loads(p.stdout)["checks"]) <= 64
