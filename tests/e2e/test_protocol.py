# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md is what the message table prints."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("PROFPIPE_BUILD", "build/release")


def test_the_page_equals_the_output_of_the_table():
    printed = subprocess.run([BUILD / "tests/print-protocol"], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    page = (ROOT / "docs/protocol.md").read_text()
    assert page == printed, "renew it: build/release/tests/print-protocol > docs/protocol.md"


def test_every_message_of_the_table_has_its_heading():
    table = (ROOT / "common/wire/messages.def").read_text()
    names = [line.split("(")[1].split(",")[1].strip()
             for line in table.splitlines() if line.startswith("MSG_BEGIN(")]
    page = (ROOT / "docs/protocol.md").read_text()
    assert len(names) > 20
    for name in names:
        assert f" `{name}`\n" in page
