# SPDX-License-Identifier: Apache-2.0
"""Makes the two halves of the page from page.html: with the style, the scripts, and a policy that
allows only these."""
import base64
import hashlib
import pathlib
import sys

SCRIPT = ["profile.js", "flame.js", "table.js"]  # one function, in this order


def main():
    source, d3, target = map(pathlib.Path, sys.argv[1:4])
    if not d3.is_file():
        sys.exit(f"{d3}: not there; install Debian's libjs-d3, or name the file with D3=")
    parts = {
        "STYLE": (source / "style.css").read_text(encoding="utf-8"),
        "D3": d3.read_text(encoding="utf-8").strip(),
        "SCRIPT": "\n".join((source / name).read_text(encoding="utf-8") for name in SCRIPT),
    }
    for name, text in parts.items():
        if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
            sys.exit(f"{name}: would end its element")

    def digest(name):
        sha256 = hashlib.sha256(parts[name].encode()).digest()
        return f"'sha256-{base64.b64encode(sha256).decode()}'"

    parts["POLICY"] = (f"default-src 'none'; script-src {digest('D3')} {digest('SCRIPT')}; "
                       f"style-src {digest('STYLE')}; "
                       "img-src data:; base-uri 'none'; form-action 'none'")
    page = (source / "page.html").read_text(encoding="utf-8")
    head, tail = page.split("{{DATA}}")
    for name, half in (("head", head), ("tail", tail)):
        for key, text in parts.items():
            half = half.replace("{{" + key + "}}", text)
        (target / f"page-{name}.html").write_text(half, encoding="utf-8", newline="\n")


main()
