# SPDX-License-Identifier: Apache-2.0
"""The bus under a peer that breaks the rules."""
import subprocess

from conftest import BUILD


def test_a_hundred_peers_dropped_in_mid_message_wedge_nothing(tmp_path):
    (tmp_path / "bpf").mkdir()
    out = subprocess.run([f"{BUILD}/tests/drop-peers", str(tmp_path)], capture_output=True, text=True, timeout=120, check=True).stdout
    gone, fds = map(int, out.split())
    assert gone == 100
    assert fds < 40
