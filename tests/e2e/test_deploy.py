# SPDX-License-Identifier: Apache-2.0
"""The installed unit, settings and group, as systemd's own tools see them, the manifest for
Kubernetes, and `profpipe run` with the rights that each of them leaves it."""
import os
import re
import signal
import subprocess
import time

import pytest
import yaml

from conftest import BUILD
from otlp_rules import profiles, requests
from receivers import GrpcReceiver
from running import children, kill_tool

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ["prof-bpf", "prof-deltas", "prof-symd", "prof-export"]
SPIN = """
import time
def inner():
    while True: sum(range(1000))
inner()
"""


def settings(unit):
    """A unit's settings as lists of words. A setting that stands twice is joined, and an empty one
    is an empty list."""
    found = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", unit.replace("\\\n", " "), re.M):
        found.setdefault(key, []).extend(value.split())
    return found


def reachable(folder):
    """Opens a folder to users other than the one that runs the tests."""
    for path in (folder, *folder.parents):
        if not path.stat().st_mode & 0o1:
            path.chmod(path.stat().st_mode | 0o1)


def install(root):
    """Installs like a package. The existing tools are used, since other tests run them: they are
    not built again for /usr."""
    with open(f"{BUILD}/folder") as f:
        made_for = f.read()
    return subprocess.run(["make", "-C", TOP, f"B={os.path.relpath(BUILD, TOP)}", "install",
                           f"DESTDIR={root}", "PREFIX=/usr", f"MADE_WITH_folder={made_for}"],
                          capture_output=True, text=True, env={**os.environ, "MAKEFLAGS": ""},
                          timeout=120)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    reachable(root)
    p = install(root)
    assert p.returncode == 0, p.stdout + p.stderr
    return root


@pytest.fixture(scope="module")
def unit(installed):
    return (installed / "usr/lib/systemd/system/profpipe.service").read_text()


@pytest.fixture(scope="module")
def pod():
    with open(f"{TOP}/packaging/kubernetes/daemonset.yaml") as f:
        daemonset, = [d for d in yaml.safe_load_all(f) if d["kind"] == "DaemonSet"]
    return daemonset["spec"]["template"]["spec"]


@pytest.fixture
def spinning():
    with subprocess.Popen(["/usr/bin/python3", "-c", SPIN]) as p:
        yield p
        p.kill()


def until(what, p, seconds=150):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end and p.poll() is None, "it does not come"
        time.sleep(0.05)


# --- what is installed ---

def test_the_unit_exposes_little(installed):
    p = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager",
                        f"{installed}/usr/lib/systemd/system/profpipe.service"],
                       capture_output=True, text=True, timeout=60)
    last = p.stdout.strip().splitlines()[-1]
    print(last)
    assert float(re.search(r"(\d+\.\d+)", last)[1]) <= 4.4, last + p.stderr


def test_the_unit_is_well_formed(installed):
    folder = installed / "usr/lib/systemd/system"
    for t in ("sysinit", "basic", "shutdown", "multi-user", "network"):
        (folder / f"{t}.target").write_text(f"[Unit]\nDescription={t}\nDefaultDependencies=no\n")
    (installed / "bin").mkdir(exist_ok=True)
    (installed / "bin/kill").write_text("#!/bin/sh\n")
    (installed / "bin/kill").chmod(0o755)
    p = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--root={installed}",
                        "/usr/lib/systemd/system/profpipe.service"], capture_output=True,
                       text=True, timeout=60)
    assert p.returncode == 0 and p.stdout + p.stderr == "", p.stdout + p.stderr


def test_the_unit_starts_the_installed_tool_and_settings(installed, unit):
    argv = settings(unit)["ExecStart"]
    assert os.access(f"{installed}{argv[0]}", os.X_OK)
    assert argv[1:] == ["run", "-q", "--settings", "/etc/profpipe/profpipe.conf"]
    p = subprocess.run([f"{installed}{argv[0]}", "run", "--check", f"{installed}{argv[-1]}"],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and p.stdout.endswith("1 settings, all valid\n"), p.stderr
    assert settings(unit)["StateDirectory"] == ["profpipe", "profpipe-send"]


def test_each_setting_in_a_comment_is_valid(installed, tmp_path):
    text = (installed / "etc/profpipe/profpipe.conf").read_text()
    keys = re.findall(r"^#([a-z-]+ = .*)$", text, re.M)
    assert len(keys) > 10 and "otlp-spool = /var/lib/profpipe-send" in keys
    token, spool, file = tmp_path / "token", tmp_path / "spool", tmp_path / "profpipe.conf"
    token.write_text("authorization: Bearer x\n")
    token.chmod(0o600)
    spool.mkdir()
    text = re.sub(r"^#([a-z-]+ = .*)$", r"\1", text, flags=re.M)
    file.write_text(text.replace("/etc/profpipe/otlp-headers", str(token))
                    .replace("/var/lib/profpipe-send", str(spool)))
    p = subprocess.run([f"{BUILD}/profpipe", "run", "--check", file], capture_output=True,
                       text=True, timeout=60)
    assert (p.returncode, p.stdout) == (0, f"{file}: {len(keys) + 1} settings, all valid\n"), \
        p.stderr


def test_settings_that_are_there_stay(installed):
    file = installed / "etc/profpipe/profpipe.conf"
    before = file.read_text()
    file.write_text("frequency = 7\n")
    assert install(installed).returncode == 0
    assert file.read_text() == "frequency = 7\n"
    file.write_text(before)


def test_the_group_of_the_profiles_is_made(installed, unit):
    p = subprocess.run(["systemd-sysusers", f"--root={installed}", "profpipe.conf"],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    assert settings(unit)["Group"] == ["profpipe"]
    assert re.search(r"^profpipe:", (installed / "etc/group").read_text(), re.M)


def test_unit_and_manifest_give_the_capabilities_that_the_tables_name(unit, pod):
    with open(f"{TOP}/common/cell/confine/sandbox.c") as f:
        kept = set(re.findall(r"CAP_(\w+)",
                              re.search(r"bpf_caps\[\] = \{(.*?)\};", f.read(), re.S)[1]))
    with open(f"{TOP}/docs/privilege-separation.md") as f:
        text = f.read()
    of_bpf = set(re.findall(r"^\| (\w+) \| yes" + r" \| (?:yes|no)" * 4 + r" \|$", text, re.M))
    others = {name: (where_unit == "yes", where_pod == "yes") for name, where_unit, where_pod in
              re.findall(r"^\| (\w+) \| (yes|no) \| (yes|no) \| [^|]*\|$", text, re.M)}
    assert kept == of_bpf and len(others) >= 5
    assert set(settings(unit)["CapabilityBoundingSet"]) == {
        f"CAP_{c}" for c in kept | {c for c, w in others.items() if w[0]}}
    assert set(pod["containers"][0]["securityContext"]["capabilities"]["add"]) == (
        kept | {c for c, w in others.items() if w[1]})


def test_the_manifest_gives_nothing_else_and_has_one_variable_to_set(pod, installed):
    container, = pod["containers"]
    s = container["securityContext"]
    assert pod["hostPID"] and pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostIPC", "initContainers", "hostUsers"} & set(pod)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(set(v) == {"name", "emptyDir"} for v in pod["volumes"])
    assert ("privileged" not in s and s["readOnlyRootFilesystem"] is True
            and s["allowPrivilegeEscalation"] is False and s["capabilities"]["drop"] == ["ALL"])
    usage = subprocess.run([f"{installed}/usr/bin/profpipe", "--help"], capture_output=True,
                           text=True, timeout=60).stdout
    assert container["args"][0] == "run"
    for option in container["args"][1:]:
        assert option.partition("=")[0] in usage, option
    assert [e["name"] for e in container["env"] if "value" in e] == ["OTLP_ENDPOINT"]
    limit = next(a for a in container["args"] if a.startswith("--memory-limit="))
    asked, most = (int(container["resources"][k]["memory"].removesuffix("Mi"))
                   for k in ("requests", "limits"))
    assert limit == f"--memory-limit={asked}M" and most * 2 >= asked * 3


def test_the_package_lists_all_build_dependencies():
    with open(f"{TOP}/packaging/deps.sh") as f:
        build = set(re.search(r'^build="(.*?)"', f.read(), re.M | re.S)[1].split())
    with open(f"{TOP}/debian/control") as f:
        control = re.search(r"^Build-Depends: (.*(?:\n .*)*)$", f.read(), re.M)[1]
    listed = {re.sub(r" .*", "", p) for p in re.split(r",\s+", control)}
    # The compiler, make and libc's headers are there wherever packages are built.
    assert listed - {"debhelper-compat"} == build - {"gcc", "make"}


# --- with these rights ---

# A mount namespace with a read-only root, as systemd and container runtimes make one. The first
# folder is /run there; others up to `--` stay writable.
CONFINED = """
mount --bind "$1" /run; shift
while [ "$1" != -- ]; do mount --bind "$1" "$1"; shift; done; shift
mount -t tmpfs none /var/tmp
mount -o remount,bind,ro /
exec "$@"
"""


def confined(caps, run, writable, argv, gid=0, env=None, err=subprocess.PIPE):
    """Runs as root with these capabilities, and no other rights."""
    run.mkdir(mode=0o755)
    reachable(run)
    bounds = "".join(f",+{c.lower().removeprefix('cap_')}" for c in caps)
    return subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-euc",
                             CONFINED, "sh", *map(str, [run, *writable]), "--", "setpriv",
                             f"--regid={gid}", "--clear-groups", "--no-new-privs",
                             f"--bounding-set=-all{bounds}", "--inh-caps=-all",
                             "--ambient-caps=-all", *map(str, argv)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                            text=True, cwd="/", env=env or {})


def status_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def test_the_service_profiles_with_the_rights_of_its_unit(installed, unit, tmp_path, spinning):
    profiles_of, file, gid = tmp_path / "profiles", tmp_path / "profpipe.conf", 59300
    profiles_of.mkdir(mode=0o750)
    os.chown(profiles_of, 0, gid)
    text = (installed / "etc/profpipe/profpipe.conf").read_text()
    file.write_text(text.replace("/var/lib/profpipe\n", f"{profiles_of}\n") +
                    "rotate = 3s\nformat = folded\nfrequency = 99\ncpu-limit = 100\n")
    s = settings(unit)
    argv = [f"{installed}{s['ExecStart'][0]}", "run", "--settings", file]
    with open(tmp_path / "stderr", "w+") as err:
        p = confined(s["CapabilityBoundingSet"], tmp_path / "run", [profiles_of], argv, gid,
                     err=err)
        try:
            until(lambda: len(list(profiles_of.glob("*.folded"))) >= 2, p)
            tools = children(p.pid)
            assert set(tools) >= set(TOOLS)
            uids = {t: status_of(tools[t])["Uid"].split()[0] for t in TOOLS}
            assert len(set(uids.values())) == 4 and "0" not in uids.values()
            for t in TOOLS:
                st = status_of(tools[t])
                assert st["NoNewPrivs"] == "1" and st["CapBnd"] == "0" * 16
                assert (st["CapEff"] == "0" * 16) is (t != "prof-bpf")
            p.terminate()
            assert p.wait(60) == 0
        finally:
            p.kill()
            p.wait()
        err.seek(0)
        said = err.read()
    assert "not sampled" not in said and (
        "nothing was lost" in said or "no sample was lost" in said), said
    assert [x.name for x in (tmp_path / "run").glob("profpipe*")] == ["profpipe.lock"]
    whole = sorted(profiles_of.iterdir())
    assert all((x.stat().st_mode & 0o777, x.stat().st_gid) == (0o640, gid) for x in whole)
    # The name of a Python function: it was read from the process's memory.
    assert any(re.search(r"inner[; ]", x.read_text(errors="replace")) for x in whole)


def test_the_pod_sends_with_the_rights_of_the_manifest(installed, pod, tmp_path, spinning):
    container, = pod["containers"]
    with GrpcReceiver() as r:
        values = {"OTLP_ENDPOINT": r.url, "NODE_NAME": "node-7"}
        args = [re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], a) for a in container["args"]]
        p = confined(container["securityContext"]["capabilities"]["add"], tmp_path / "run", [],
                     [f"{installed}/usr/bin/profpipe", *args, "-F", "99", "--cpu-limit", "100",
                      "--window", "1"])
        try:
            assert r.wait(2, 60), p.poll()
            # A successor finds its folder empty, and may make its sockets there.
            kill_tool(p.pid, "prof-export")
            assert r.wait(len(r.taken) + 3, 60), p.poll()
            p.send_signal(signal.SIGTERM)
            said = p.communicate(timeout=60)[1]
        finally:
            p.kill()
            p.wait()
        assert p.returncode == 0, said
        assert [x.name for x in (tmp_path / "run").glob("profpipe*")] == ["profpipe.lock"]
        rs = requests(b"".join(len(x).to_bytes(4, "big") + x for x in r.taken))
        assert not r.wrong
        assert b"node-7" in b"".join(r.taken)
        assert sum(len(x.timestamps_unix_nano) for _, _, p in profiles(rs)
                   for x in p.samples) > 50


@pytest.mark.parametrize("tool", TOOLS)
def test_a_relative_run_folder_is_refused_by_each_tool(tool, tmp_path):
    (tmp_path / "run" / "export").mkdir(parents=True)
    options = ["-f", "folded", "--output-fd", "1"] if tool == "prof-export" else []
    p = subprocess.run([f"{BUILD}/{tool}", "--run-dir", "run", *options], cwd=tmp_path,
                       capture_output=True, text=True, timeout=30)
    assert (p.returncode == 2 and p.stderr.count("\n") == 1 and p.stderr.startswith(
        f"{tool}: error: --run-dir: run: not an absolute path; ")), p.stderr
