# SPDX-License-Identifier: Apache-2.0
"""Programs that cause endless definitions (docs/fairness.md). tests/unit/prof-bpf/emit.c reaches
the ceilings themselves."""
import re
import subprocess

from conftest import record

RENAMES = 256  # tools/prof-bpf/host/processes/processes.h
NAMES = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
int main(void)
{
	char name[16];

	for (unsigned long i = 0; clock() < 1.5 * CLOCKS_PER_SEC; i++) {
		snprintf(name, sizeof(name), "n%lu", i);
		prctl(PR_SET_NAME, name);
		for (volatile int k = 0; k < 200000; k++)
			;
	}
	return 0;
}
"""


def test_a_thread_has_only_so_many_names(tmp_path):
    """Each sample sees another name."""
    program = tmp_path / "names"
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], input=NAMES, text=True,
                   check=True)
    got = record(tmp_path, "-F", "997", "-f", "text", command=[program], ending=".txt")
    heads = re.findall(r"^(n\d+) \d+/\d+ \[", got.path.read_text(), re.M)
    assert len(heads) > 2 * RENAMES, got.summary
    assert RENAMES / 2 < len(set(heads)) <= RENAMES + 10, len(set(heads))
    assert not got.summary["lost"], got.summary
