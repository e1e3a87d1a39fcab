# SPDX-License-Identifier: Apache-2.0
"""The installed units and users, as systemd's own tools see them, and the tools as the units run
them, without a launcher."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from conftest import BUILD
from otlp_rules import profiles, requests
from receivers import GrpcReceiver

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ["prof-bpf", "prof-deltas", "prof-symd", "prof-export"]
SERVICES = [*TOOLS, "prof-send"]
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
    """Makes a folder reachable for other users than the one that runs the tests."""
    for path in (folder, *folder.parents):
        if not path.stat().st_mode & 0o1:
            path.chmod(path.stat().st_mode | 0o1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    reachable(root)
    p = subprocess.run(["make", "-C", TOP, f"B={os.path.relpath(BUILD, TOP)}", "install",
                        f"DESTDIR={root}", "PREFIX=/usr"], capture_output=True, text=True,
                       env={**os.environ, "MAKEFLAGS": ""}, timeout=120)
    assert p.returncode == 0, p.stdout + p.stderr
    return root


@pytest.fixture(scope="module")
def pod():
    with open(f"{TOP}/packaging/kubernetes/daemonset.yaml") as f:
        daemonset, = [d for d in yaml.safe_load_all(f) if d["kind"] == "DaemonSet"]
    return daemonset["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def containers(pod):
    return {c["name"]: c for c in pod["containers"]}


@pytest.fixture(scope="module")
def file_caps():
    """The capabilities of prof-bpf's file in the image, as setcap takes them."""
    with open(f"{TOP}/packaging/container/Containerfile") as f:
        first, rest = re.search(r"caps=(\S+) && \\\n +setcap \$caps(\S+) "
                                r"/usr/libexec/profpipe/prof-bpf$", f.read(), re.M).groups()
        return first + rest


@pytest.fixture(scope="module")
def units(installed):
    return {t: (installed / f"usr/lib/systemd/system/{t}.service").read_text()
            for t in SERVICES}


def test_units_expose_little(installed):
    for tool, most in zip(SERVICES, (2.3, 1.0, 1.0, 1.0, 1.7)):
        p = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager",
                            f"{installed}/usr/lib/systemd/system/{tool}.service"],
                           capture_output=True, text=True, timeout=60)
        last = p.stdout.strip().splitlines()[-1]
        print(last)
        assert float(re.search(r"(\d+\.\d+)", last)[1]) <= most, last + p.stderr


def test_units_are_well_formed(installed):
    folder = installed / "usr/lib/systemd/system"
    for t in ("sysinit", "basic", "shutdown", "multi-user"):
        (folder / f"{t}.target").write_text(f"[Unit]\nDescription={t}\nDefaultDependencies=no\n")
    for unit in ("profpipe.target", *(f"{t}.service" for t in SERVICES)):
        p = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--root={installed}",
                            f"/usr/lib/systemd/system/{unit}"], capture_output=True, text=True,
                           timeout=60)
        assert p.returncode == 0 and p.stdout + p.stderr == "", unit + p.stdout + p.stderr


def test_units_start_what_is_installed_with_options_that_it_knows(installed, units):
    for tool, unit in units.items():
        argv = settings(unit)["ExecStart"]
        assert os.access(f"{installed}{argv[0]}", os.X_OK)
        usage = subprocess.run([f"{installed}{argv[0]}", "--help"], capture_output=True, text=True,
                               timeout=60).stdout
        for option in (a for a in argv if a.startswith("--")):
            assert option in usage, option
        assert settings(unit)["User"] == [tool] and settings(unit)["Group"] == ["profpipe"]


def test_the_users_of_the_units_are_made(installed):
    (installed / "etc").mkdir()
    p = subprocess.run(["systemd-sysusers", f"--root={installed}", "profpipe.conf"],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    users = [line.split(":") for line in (installed / "etc/passwd").read_text().splitlines()]
    assert [u[0] for u in users if u[0].startswith("prof-")] == SERVICES
    assert len({u[2] for u in users}) == len(users)
    assert all(u[2] != "0" for u in users if u[0] in SERVICES)
    assert re.search(r"^profpipe:", (installed / "etc/group").read_text(), re.M)


def stop(processes):
    for p in processes:
        p.kill()
        p.wait()
        p.stderr.close()


class Services:
    """Runs the four tools by the command lines, identities and capabilities of their units; this
    file defines none of them."""

    # A group and users that nobody has, below those that containers get.
    GID = 59300
    UIDS = dict(zip(SERVICES, range(59301, 59306)))

    def __init__(self, installed, units, folder, hz=99, seconds=1000, fmt="folded",
                 otlp=None):
        self.installed, self.units, self.processes = installed, units, {}
        self.run, self.state = folder / "run", folder / "state"
        self.values = {"PROFPIPE_HZ": hz, "PROFPIPE_SECONDS": seconds, "PROFPIPE_FORMAT": fmt,
                       "PROFPIPE_KEEP": 3, "PROFPIPE_KEEP_MIB": 100, "PROFPIPE_MEMORY": "128M",
                       "PROFPIPE_CPU": 100, "PROFPIPE_SEND": "--send" if otlp else "",
                       "PROFPIPE_OTLP": f"--otlp {otlp}"}
        for path, owner, mode in ((self.run, 0, 0o755), (self.run / "profpipe", 0, 0o755),
                                  (self.state, 0, 0o755),
                                  (self.state / "profpipe", self.UIDS["prof-export"], 0o750),
                                  (self.state / "profpipe-send", self.UIDS["prof-send"], 0o700)):
            path.mkdir()
            os.chown(path, owner, self.GID if owner else 0)
            path.chmod(mode)
        reachable(folder)

    def start(self, tool):
        s = settings(self.units[tool])
        for name in s.get("RuntimeDirectory", []):
            path = self.run / name
            subprocess.run(["rm", "-rf", path], check=True)
            path.mkdir()
            os.chown(path, self.UIDS[tool], self.GID)
            path.chmod(int(s["RuntimeDirectoryMode"][0], 8))
        ids = ":".join(map(str, (self.GID, *self.UIDS.values())))
        argv = []
        for word in s["ExecStart"]:
            word = re.sub(r"\$\{(\w+)\}", lambda m: str(self.values[m[1]]), word)
            word = word.replace("%t", str(self.run)).replace("%S", str(self.state))
            # systemd divides a variable without braces into words.
            argv += ([ids] if word.startswith("profpipe:")
                     else self.values[word[1:]].split() if word.startswith("$") else [word])
        argv[0] = f"{self.installed}{argv[0]}"
        caps = ",".join("+" + c.lower().removeprefix("cap_")
                        for c in s.get("AmbientCapabilities", []))
        argv = ["setpriv", f"--reuid={self.UIDS[tool]}", f"--regid={self.GID}", "--clear-groups",
                "--no-new-privs", f"--bounding-set=-all{',' * bool(caps)}{caps}",
                f"--inh-caps=-all{',' * bool(caps)}{caps}",
                f"--ambient-caps=-all{',' * bool(caps)}{caps}", *argv]
        self.processes[tool] = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                                text=True, cwd="/", env={})

    def start_all(self):
        for tool in ("prof-deltas", "prof-symd", "prof-export", "prof-bpf"):
            self.start(tool)

    def status(self, tool):
        with open(f"/proc/{self.processes[tool].pid}/status") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)

    def ended(self, tool):
        return self.processes[tool].wait(timeout=150), self.processes[tool].stderr.read()

    def profiles(self):
        return sorted(p.name for p in (self.state / "profpipe").iterdir()
                      if not p.name.endswith(".part"))

    def text(self, name):
        return (self.state / "profpipe" / name).read_text(errors="replace")

    def close(self):
        stop(self.processes.values())


@pytest.fixture
def spinning():
    with subprocess.Popen(["/usr/bin/python3", "-c", SPIN]) as p:
        yield p
        p.kill()


def until(what, seconds=150):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def test_unit_image_and_manifest_give_the_capabilities_that_prof_bpf_keeps(
        units, containers, file_caps):
    with open(f"{TOP}/common/cell/sandbox.c") as f:
        kept = set(re.findall(r"CAP_\w+",
                              re.search(r"bpf_caps\[\] = \{(.*?)\};", f.read(), re.S)[1]))
    with open(f"{TOP}/docs/privilege-separation.md") as f:
        told = set(re.findall(r"^\| (\w+) \| yes" + r" \| (?:yes|no)" * 3 + r" \|$", f.read(),
                              re.M))
    assert len(kept) >= 2
    s = settings(units["prof-bpf"])
    assert set(s["AmbientCapabilities"]) == set(s["CapabilityBoundingSet"]) == kept
    assert {"CAP_" + c
            for c in containers["prof-bpf"]["securityContext"]["capabilities"]["add"]} == kept
    assert {c.upper() for c in file_caps.removesuffix("=ep").split(",")} == kept
    assert {"CAP_" + c for c in told} == kept
    for tool in SERVICES[1:]:
        s = settings(units[tool])
        assert s["CapabilityBoundingSet"] == [] and "AmbientCapabilities" not in s


def test_the_manifest_gives_nothing_else(pod, containers, installed):
    assert list(containers) == TOOLS and pod["hostPID"] and pod["securityContext"]["runAsNonRoot"]
    assert not {"hostNetwork", "hostIPC", "initContainers",
                "hostUsers"} & set(pod) and pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(set(v) == {"name", "emptyDir"} for v in pod["volumes"])
    written, shares = {}, 0
    for tool, c in containers.items():
        s = c["securityContext"]
        assert ("privileged" not in s and s["readOnlyRootFilesystem"] is True
                and s["capabilities"]["drop"] == ["ALL"])
        # With no_new_privs, a file's capabilities have no effect.
        assert s["allowPrivilegeEscalation"] is (tool == "prof-bpf")
        assert ("add" in s["capabilities"]) is (tool == "prof-bpf")
        asked, most = (int(c["resources"][k]["memory"].removesuffix("Mi"))
                       for k in ("requests", "limits"))
        assert asked <= most
        shares += asked
        usage = subprocess.run([f"{installed}{c['command'][0]}", "--help"], capture_output=True,
                               text=True, timeout=60).stdout
        ids = None
        for option in c["command"][1:]:
            name, _, value = option.partition("=")
            assert name in usage, option
            ids = value if name == "--ids" else ids
        assert ids.split(":") == [str(pod["securityContext"]["runAsGroup"])] + [
                str(containers[t]["securityContext"]["runAsUser"]) for t in TOOLS]
        for m in c["volumeMounts"]:
            if not m.get("readOnly"):
                written.setdefault(m["name"], []).append(tool)
    assert written == {"sockets-bpf": ["prof-bpf"], "sockets-export": ["prof-export"],
                       "profiles": ["prof-export"]}
    assert shares == 128
    with open(f"{TOP}/packaging/container/Containerfile") as f:
        image = f.read()
    first = containers["prof-bpf"]["securityContext"]["runAsUser"]
    assert (f"-g {pod['securityContext']['runAsGroup']} profpipe" in image
            and f"u={first} && for t in {' '.join(TOOLS)};" in image)
    assert [c["securityContext"]["runAsUser"]
            for c in containers.values()] == list(range(first, first + 4))


def test_tools_without_a_launcher_record_with_the_rights_of_their_units(
        installed, units, tmp_path, spinning):
    s = Services(installed, units, tmp_path, seconds=3)
    try:
        s.start_all()
        until((s.run / "profpipe/bpf/stream.sock").exists)
        # A service has its user a moment before its capabilities. It cannot work in between.
        until(lambda: s.processes["prof-bpf"].poll() is not None
              or s.status("prof-bpf")["CapAmb"] == "0" * 16)
        caps = sum(1 << n for n in (39, 38, 19, 40, 2, 34))
        for tool in TOOLS:
            st = s.status(tool)
            assert st["Uid"].split() == [str(s.UIDS[tool])] * 4
            assert st["Gid"].split() == [str(s.GID)] * 4
            assert int(st["CapPrm"],
                       16) & ~(caps if tool == "prof-bpf"
                               else 0) == 0 and st["NoNewPrivs"] == "1", st
        for tool in reversed(TOOLS):
            code, said = s.ended(tool)
            assert code == 0, (tool, said)
        name, = s.profiles()
        assert re.fullmatch(r"\d{8}T\d{6}Z\.folded", name)
        st = (s.state / "profpipe" / name).stat()
        assert (st.st_mode & 0o777, st.st_uid) == (0o640, s.UIDS["prof-export"])
        # The name of a Python function: it was read from the process's memory.
        assert re.search(r"inner[; ]", s.text(name))
    finally:
        s.close()


def test_services_send_beside_their_files(installed, units, tmp_path, spinning):
    with GrpcReceiver() as r:
        s = Services(installed, units, tmp_path, seconds=3, otlp=r.url)
        try:
            s.start_all()
            s.start("prof-send")
            until((s.run / "profpipe/export/otlp.sock").exists)
            for tool in ("prof-export", "prof-bpf"):
                code, said = s.ended(tool)
                assert code == 0, (tool, said)
            code, said = s.ended("prof-send")
            assert code == 0, said
            name, = s.profiles()
            folded = sum(int(x.rsplit(" ", 1)[1]) for x in s.text(name).splitlines())
            rs = requests(b"".join(len(x).to_bytes(4, "big") + x for x in r.taken))
            assert folded == sum(len(x.timestamps_unix_nano) for _, _, p in profiles(rs)
                                 for x in p.samples) > 50
        finally:
            s.close()


def received(services):
    """How many samples the journal holds."""
    folder = services.state / "profpipe"
    stream = b"".join(p.read_bytes() for p in folder.iterdir() if ".journal" in p.name)
    said = subprocess.run([f"{BUILD}/tests/symd-peer", "print"], input=stream, capture_output=True,
                          check=True).stdout
    return len(re.findall(rb"^sample ", said, re.M))


def test_a_service_that_is_started_again_finds_its_place(installed, units, tmp_path, spinning):
    s = Services(installed, units, tmp_path)
    try:
        # The tools start in any order: the first ones wait for the others.
        for tool in reversed(TOOLS):
            s.start(tool)
        until(lambda: (s.run / "profpipe/bpf/stream.sock").exists()
              and (s.run / "profpipe/export/named.sock").exists())
        until(lambda: received(s) >= 100)
        s.processes["prof-symd"].kill()
        s.ended("prof-symd")
        s.start("prof-symd")
        assert s.processes["prof-export"].poll() is None and s.processes["prof-bpf"].poll() is None
        s.processes["prof-deltas"].kill()
        s.ended("prof-deltas")
        s.start("prof-deltas")
        before = received(s)
        until(lambda: received(s) >= before + 200)
        status = [p.poll() for p in s.processes.values()]
        assert all(x is None for x in status), status
        # As `systemctl stop profpipe.target` does: prof-bpf stops first, and all end with the
        # stream. On a host that is too busy to pass its end on in time, the profile is written, and
        # says that it was cut short.
        s.processes["prof-bpf"].send_signal(signal.SIGTERM)
        code, said = s.ended("prof-bpf")
        assert code == 0, said
        s.processes["prof-export"].send_signal(signal.SIGTERM)
        code, said = s.ended("prof-export")
        assert code == 0 or code == 3 and "has no end message" in said, said
        for tool in ("prof-symd", "prof-deltas"):
            code, said = s.ended(tool)
            assert code in (0, 1, 75), (tool, said)
        assert len(s.profiles()) == 1
        assert re.search(r"inner[; ]", s.text(s.profiles()[0]))
    finally:
        s.close()


@pytest.mark.parametrize("who", ["writer", "both"])
def test_a_killed_prof_export_loses_nothing_of_the_file_that_it_had_begun(
        installed, units, tmp_path, spinning, who):
    s = Services(installed, units, tmp_path)
    try:
        s.start_all()
        # More samples than can be on their way at the end.
        until(lambda: received(s) >= 500)
        export = s.processes["prof-export"]
        with open(f"/proc/{export.pid}/task/{export.pid}/children") as f:
            writer, = map(int, f.read().split())
        # Samples on their way to it are lost with it.
        os.kill(writer, signal.SIGSTOP)
        until(lambda: re.search(r"^State:\s+T", Path(f"/proc/{writer}/status").read_text(), re.M))
        before = received(s)
        if who == "both":
            export.kill()
        os.kill(writer, signal.SIGKILL)
        assert s.ended("prof-export")[0] != 0
        until(lambda: not os.path.exists(f"/proc/{writer}"))
        # As Restart=always does, for both.
        code, said = s.ended("prof-symd")
        assert code in (1, 75), said
        s.start("prof-symd")
        s.start("prof-export")
        until(lambda: received(s) > before)
        wanted = received(s)
        s.processes["prof-bpf"].send_signal(signal.SIGTERM)
        s.processes["prof-export"].send_signal(signal.SIGTERM)
        code, said = s.ended("prof-export")
        assert code in (0, 3) and "its writer was killed; continuing it" in said, said
        name, = s.profiles()
        kept = sum(int(line.rsplit(" ", 1)[1]) for line in s.text(name).splitlines())
        assert kept >= wanted, (kept, before, wanted)
    finally:
        s.close()


# As a container runtime does by the manifest: a mount namespace, a read-only root, and the volumes.
# prof-bpf is a file with capabilities, as in the image, on a file system where these count.
CONTAINER = """
volumes=$1 rootless=$2 caps=$3; shift 3
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/profpipe/bpf /run/profpipe/export /run/bin
cp "$rootless" /run/bin/ && chmod 755 /run/bin/*
[ "$caps" = none ] || setcap "$caps" /run/bin/prof-bpf
for v in $volumes; do mount --bind "${v%%:*}" "${v#*:}"; done
mount -o remount,ro /run
exec "$@"
"""


def test_containers_record_with_the_rights_of_the_manifest(
        installed, pod, containers, file_caps, tmp_path, spinning):
    reachable(tmp_path)
    gid, processes = pod["securityContext"]["runAsGroup"], {}
    volumes = {v["name"]: tmp_path / v["name"] for v in pod["volumes"]}
    for path in volumes.values():
        # As an emptyDir with fsGroup is.
        path.mkdir()
        os.chown(path, 0, gid)
        path.chmod(0o2777)
    try:
        for tool in ("prof-deltas", "prof-symd", "prof-export", "prof-bpf"):
            c = containers[tool]
            s = c["securityContext"]
            mounts = " ".join(f"{volumes[m['name']]}:{m['mountPath']}"
                              for m in c["volumeMounts"] if m["mountPath"].startswith("/run/"))
            command = [a.replace("--duration=3600", "--duration=3")
                       .replace("--frequency=20", "--frequency=99").replace("pprof", "folded")
                       for a in c["command"]]
            command = [a.replace("/var/lib/profpipe", str(volumes["profiles"])) for a in command]
            bounds = "".join(",+" + cap.lower() for cap in s["capabilities"].get("add", []))
            argv = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", CONTAINER, "sh",
                    mounts, f"{installed}{command[0]}", file_caps if tool == "prof-bpf" else "none",
                    "setpriv", f"--reuid={s['runAsUser']}", f"--regid={gid}", f"--groups={gid}",
                    f"--bounding-set=-all{bounds}", "--inh-caps=-all", "--ambient-caps=-all",
                    *([] if s["allowPrivilegeEscalation"] else ["--no-new-privs"]),
                    f"/run/bin/{tool}", *command[1:]]
            processes[tool] = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                               text=True, cwd="/", env={"PATH": os.environ["PATH"]})
        for tool in reversed(TOOLS):
            code, said = processes[tool].wait(timeout=150), processes[tool].stderr.read()
            assert code == 0, (tool, said)
        profile, = volumes["profiles"].iterdir()
        assert re.search(r"inner[; ]", profile.read_text(errors="replace"))
    finally:
        stop(processes.values())


def test_the_package_is_built_with_what_the_build_needs():
    with open(f"{TOP}/packaging/deps.sh") as f:
        build = set(re.search(r'^build="(.*?)"', f.read(), re.M | re.S)[1].split())
    with open(f"{TOP}/debian/control") as f:
        control = re.search(r"^Build-Depends: (.*(?:\n .*)*)$", f.read(), re.M)[1]
    listed = {re.sub(r" .*", "", p) for p in re.split(r",\s+", control)}
    # The compiler, make and libc's headers are there wherever packages are built.
    assert listed - {"debhelper-compat"} == build - {"gcc", "make"}


@pytest.mark.parametrize("tool", ["prof-bpf", "prof-deltas", "prof-symd", "prof-export"])
def test_a_relative_run_folder_is_refused_by_each_tool(tool, tmp_path):
    (tmp_path / "run" / "export").mkdir(parents=True)
    options = ["-f", "folded", "--output-dir", "out"] if tool == "prof-export" else []
    p = subprocess.run([f"{BUILD}/{tool}", "--run-dir", "run", *options], cwd=tmp_path,
                       capture_output=True, text=True, timeout=30)
    assert (p.returncode == 2 and p.stderr.count("\n") == 1 and p.stderr.startswith(
        f"{tool}: error: --run-dir: run: not an absolute path; ")), p.stderr
