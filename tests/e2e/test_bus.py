# SPDX-License-Identifier: Apache-2.0
"""The bus under a peer that breaks the rules."""
import subprocess

from conftest import BUILD


def test_a_hundred_peers_dropped_in_mid_message_wedge_nothing(tmp_path):
    (tmp_path / "bpf").mkdir()
    out = subprocess.run([f"{BUILD}/tests/drop-peers", str(tmp_path)], capture_output=True,
                         text=True, timeout=120, check=True).stdout
    gone, fds = map(int, out.split())
    assert gone == 100
    assert fds < 40


def test_peers_of_every_kind_harm_no_honest_one(tmp_path):
    (tmp_path / "bpf").mkdir()
    p = subprocess.run([f"{BUILD}/tests/unruly-peers", str(tmp_path), "400"], capture_output=True,
                       text=True, timeout=300, check=False)
    print(p.stdout, p.stderr)
    assert p.returncode == 0 and p.stdout.startswith("right ")
    of = dict(word.split("=") for word in p.stdout.split()[1:])
    assert int(of["came"]) > 100 and int(of["thrown"]) > 5 and int(of["content"]) > 50
    assert of["left"] == "0"
