# SPDX-License-Identifier: Apache-2.0
"""Containers that podman makes: their ids in profiles and as targets, and a sidecar, which samples
the processes of one container from another."""
import shutil
import subprocess

import pytest

from conftest import BUILD, few, profpipe
from otlp_rules import requests

# runc also runs where the host has both versions of cgroups. Higher limits than these would need
# rights that a container may lack itself.
PODMAN = ["podman", "--cgroup-manager", "cgroupfs", "--runtime", "runc"]
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--network", "none"]
BUSY = "inner() { i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; }; while :; do inner; done"


def podman(*args, **kw):
    p = subprocess.run([*PODMAN, *map(str, args)], capture_output=True, text=True, timeout=120,
                       **kw)
    assert p.returncode == 0, p.stderr
    return p.stdout


@pytest.fixture
def container(tmp_path):
    """Starts a busy container of busybox, and returns its id."""
    root = tmp_path / "root"
    for folder in ("bin", "proc", "sys", "dev", "tmp", "etc"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    tmp_path.chmod(0o755)
    made = podman("run", "-d", *LIMITS, "--rootfs", root, "/bin/busybox", "sh", "-c", BUSY).strip()
    yield made
    podman("rm", "-f", "-t", "0", made)


def test_a_container_has_podmans_id_in_profiles_and_as_a_target(container, tmp_path):
    out = tmp_path / "x.otlp"
    p = profpipe("record", "-F", "199", "-d", "2", "--container", container[:12], "-o", out)
    assert p.returncode == 0, p.stderr
    ids = {a.value.string_value for request in requests(out.read_bytes())
           for rp in request.resource_profiles for a in rp.resource.attributes
           if a.key == "container.id"}
    assert ids == {container}
    folded = tmp_path / "x.folded"
    p = profpipe("record", "-F", "199", "-d", "2", "--exclude-container", container, "-o", folded)
    assert p.returncode == 0, p.stderr
    assert "busybox" not in folded.read_text(errors="replace")


def test_a_sidecar_samples_the_processes_of_its_pod_only(container):
    """The sidecar shares the pid namespace of the container, and has a file system and a cgroup of
    its own. A busy process of the host must not appear."""
    with subprocess.Popen(["/bin/busybox", "sh", "-c", BUSY.replace("inner", "outer")]) as other:
        try:
            out = podman("run", "--rm", *LIMITS, "--privileged", "--pid", f"container:{container}",
                         "--rootfs", "/:O", f"{BUILD}/profpipe", "record", "-q", "-F", "199", "-d",
                         "2", "-f", "text", "-o", "/dev/stdout")
        finally:
            other.kill()
    # The tools themselves are in that namespace as well.
    busy = [s for s in out.split("\n\n") if "/busybox)" in s]
    assert {s.split()[1] for s in busy} == {"1/1"}
    assert len(busy) > 20 and sum("truncated" in s for s in busy) <= few(len(busy))
