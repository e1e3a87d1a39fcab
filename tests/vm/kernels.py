# SPDX-License-Identifier: Apache-2.0
"""Debian's kernels of other releases than this machine's. They come from the mirror in its own
sources, with lists and a cache of our own, so that apt's state does not change."""
import glob
import os
import re
import subprocess
import time

# The meta-package of the smallest flavour: it has the same source as the others and, for our
# purposes, the same options.
META = "linux-image-cloud-amd64"
SUITES = ("bullseye", "bookworm", "trixie", "trixie-backports", "sid")
SECURED = ("bullseye", "bookworm", "trixie")
NEWEST = "newest"
WANTED = ("5.10", "6.1", "6.12", NEWEST)
# Seconds before each download: a temporary failure is retried, and a lasting one costs this time.
PAUSES = (0, 10, 30)
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class KernelError(Exception):
    """Something is missing. The text names it, and the remedy."""


def run(argv, timeout=120, **kw):
    """Runs argv, and returns its output and its exit status. A timeout counts as a failure."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, errors="replace",
                              timeout=timeout, **kw)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "",
                                           f"{argv[0]} was not at its end after {timeout} s")


def mirrors():
    """The sources of Debian's packages and security updates of this machine."""
    with open("/etc/os-release") as f:
        codename = re.search(r"^VERSION_CODENAME=(\S+)", f.read(), re.M)
    got = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
               "Created-By: Packages"]).stdout.split("\n")
    release = {r: uri for uri, r in (line.split() for line in got if line)}
    main = release.get(codename[1]) if codename else None
    main = main or release.get("stable") or release.get("sid")
    if not main:
        raise KernelError("apt's sources name no mirror of Debian's main archive: a deb line of "
                          "this machine's release is needed")
    security = next((uri for r, uri in release.items() if r.endswith("-security")), None)
    return main.rstrip("/"), security and security.rstrip("/")


class Archive:
    """apt-get and apt-cache over sources, lists and a cache in `folder`."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        for sub in ("lists/partial", "cache/archives/partial", "kernels"):
            os.makedirs(f"{self.folder}/{sub}", exist_ok=True)
        main, security = mirrors()
        with open(f"{self.folder}/sources.list", "w") as f:
            for uri, suites in ((main, SUITES),
                                (security, [f"{s}-security" for s in SECURED] if security else [])):
                f.writelines(f"deb [signed-by={KEYRING} arch=amd64] {uri} {suite} main\n"
                             for suite in suites)
        open(f"{self.folder}/status", "w").close()
        self.options = [word for key, value in {
            "Dir::Etc::sourcelist": f"{self.folder}/sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::Lists": f"{self.folder}/lists",
            "Dir::State::status": f"{self.folder}/status",
            "Dir::Cache": f"{self.folder}/cache",
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::Check-Valid-Until": "false",  # a release that is kept but no longer refreshed
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }.items() for word in ("-o", f"{key}={value}")]
        # A release that the mirror lacks is an error only for its kernel.
        for pause in PAUSES:
            time.sleep(pause)
            self.trouble = run(["apt-get", *self.options, "update"], timeout=300).stderr.strip()
            if all(self.newest(series) for series in WANTED):
                break

    def cache(self, *args):
        return run(["apt-cache", *self.options, *args]).stdout

    def newest(self, series):
        """The newest version of the meta-package, of one series or of all; None: there is none."""
        versions = [line.split("|")[1].strip() for line in self.cache("madison", META).splitlines()]
        versions = [v for v in versions if "~rc" not in v
                    and (series == NEWEST or v.startswith(f"{series}."))]
        best = None
        for v in versions:
            greater = ["dpkg", "--compare-versions", v, "gt", best]
            if best is None or subprocess.run(greater).returncode == 0:
                best = v
        return best

    def depends(self, package, version):
        text = re.search(r"^Depends: (.*)", self.cache("show", f"{package}={version}"), re.M)
        return re.findall(r"(linux-(?:image|binary)-\d[^\s,|]*)", text[1]) if text else []

    def fetch(self, series):
        """The path of the kernel, and its version as Debian counts."""
        version = self.newest(series)
        if not version:
            raise KernelError(f"no Linux {series} to boot: the releases in "
                              f"{self.folder}/sources.list have no {META} of it. apt said: "
                              f"{self.trouble or 'nothing'}")
        images = self.depends(META, version)
        if not images:
            raise KernelError(f"{META} {version} names no kernel")
        # From 7.2 on the image's package is empty, and names another.
        for package in [p for i in images for p in (i, *self.depends(i, version))]:
            folder = f"{self.folder}/kernels/{package}_{version.replace('~', '-')}"
            if not kernel_in(folder):
                self.unpack(package, version, folder)
            if kernel_in(folder):
                return kernel_in(folder), version
        raise KernelError(f"no kernel is in {' or '.join(images)} {version}")

    def unpack(self, package, version, folder):
        os.makedirs(folder, exist_ok=True)
        for pause in PAUSES:
            time.sleep(pause)
            p = run(["apt-get", *self.options, "download", f"{package}={version}"], cwd=folder,
                    timeout=300)
            debs = glob.glob(f"{folder}/*.deb")
            if p.returncode == 0 and debs:
                break
        else:
            raise KernelError(f"{package} {version} cannot be downloaded: {p.stderr.strip()}")
        # None of its modules is used.
        with subprocess.Popen(["dpkg", "--fsys-tarfile", debs[0]], stdout=subprocess.PIPE) as whole:
            run(["tar", "-xC", folder, "--wildcards", "./boot/vmlinuz-*",
                 "./usr/lib/modules/*/vmlinuz"], stdin=whole.stdout)
        os.unlink(debs[0])


def kernel_in(folder):
    got = glob.glob(f"{folder}/boot/vmlinuz-*") + glob.glob(f"{folder}/usr/lib/modules/*/vmlinuz")
    return got[0] if got else None
