# SPDX-License-Identifier: Apache-2.0
"""The page that prof-export writes, in a browser."""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import pytest

from streams import BODY, END, HELLO, LOST, ROOT, WHOLE, export, namesakes


def test_other_losses_are_told_apart_from_lost_samples():
    data = HELLO + "\n" + BODY + LOST + "lost reason=8 count=7447 cpu=1\n" + END
    page = export(data, "-f", "html").text
    lost, missed = (json.loads(re.search(rf'"{key}":(\[\[.*?\]\])', page)[1])
                    for key in ("lost", "missed"))
    assert [(word, n) for word, _, n in lost] == [("ring-full", 12)]
    assert [(word, n) for word, _, n in missed] == [("untracked", 7447)]
    comments = gzip.decompress(export(data, "-f", "pprof", raw=True).stdout)
    assert (b"lost ring-full: 12" in comments and b"missed untracked: 7447" in comments
            and b"lost untracked" not in comments)


def test_page_asks_no_network_and_runs_only_its_own_scripts(tmp_path):
    page = export(WHOLE, "-f", "html").text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    assert (policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
            and "http" not in policy)
    assert not re.search(r"<(?:link|img|iframe|object|embed)\b|<script[^>]+src=|@import|url\(",
                         page)
    scripts = list(pathlib.Path(ROOT, "tools/prof-export/page").glob("*.js"))
    assert len(scripts) == 3
    for script in scripts:
        assert not re.search(
                r"innerHTML|outerHTML|insertAdjacent|document\.write|\.html\(|eval\(|new "
                r"Function", script.read_text(encoding="utf-8"))


def test_names_cannot_leave_the_data(tmp_path):
    name = r"</script><script>document.title='owned'</script><!-- \x22\x5c\xe2\x80\xa8"
    lines = WHOLE.replace('name="main"', f'name="{name}"')
    lines = lines.replace('comm="server"', r'comm="</script>&"')
    page = export(lines, "-f", "html").text
    data = re.search(r'<script id="profile" type="application/json">(.*?)</script>', page, re.S)[1]
    assert "<" not in data and "\u2028" not in data
    strings = json.loads(data)["strings"]
    assert "</script>&" in strings
    assert ("</script><script>document.title='owned'</script><!-- \"\\\\xe2\\x80\\xa8"
            in strings)


class Browser:
    """Chromium over its debugging pipe: JSON, each message ended by a zero byte."""

    def __init__(self, folder, width=1400, height=900):
        to_r, self.to = os.pipe()
        self.back, back_w = os.pipe()
        def plumb():
            a, b = os.dup2(to_r, 103), os.dup2(back_w, 104)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                         "--disable-quic", "--no-first-run",
                                         "--disable-background-networking",
                                         "--disable-component-update", "--disable-sync",
                                         f"--user-data-dir={folder}",
                                         f"--window-size={width},{height}",
                                         "--remote-debugging-pipe", "about:blank"],
                                        preexec_fn=plumb, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_r)
        os.close(back_w)
        self.next, self.pending, self.events = 0, b"", []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"]
                      == "page")
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        self.next += 1
        message = {"id": self.next, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.next:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def read(self):
        while b"\0" not in self.pending:
            chunk = os.read(self.back, 1 << 20)
            assert chunk, "chromium is gone"
            self.pending += chunk
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                      awaitPromise=True)
        assert "exceptionDetails" not in r, r
        return r["result"].get("value")

    def open(self, url, seconds=30):
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'", seconds)

    def wait(self, condition, seconds=10):
        end = time.time() + seconds
        while not self.js(condition):
            assert time.time() < end, f"{condition} does not come true; {self.problems()}"
            time.sleep(0.05)

    def key(self, key, text=""):
        codes = {"Enter": 13, "Escape": 27, "Backspace": 8, "ArrowUp": 38, "ArrowDown": 40}
        code = codes.get(key, ord(key[0]))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button="left" if kind != "mouseMoved" else "none", clickCount=1)

    def click(self, x, y):
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def problems(self):
        return [e for e in self.events
                if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]

    def requests(self):
        return [e["params"]["request"]["url"]
                for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def close(self):
        os.close(self.to)
        self.process.kill()
        self.process.wait()
        os.close(self.back)


@pytest.fixture(scope="module")
def browser():
    folder = tempfile.mkdtemp(prefix="prof-export-")
    b = Browser(folder)
    yield b
    b.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "x.html"
    export(WHOLE, "-o", path)
    return f"file://{path}"


def fragment(**state):
    return "#" + urllib.parse.urlencode(state, quote_via=urllib.parse.quote)


DATA = "document.documentElement.dataset."


def row_position(browser, d):
    """Where the row of depth d is on the screen, in the flame graph with its root at the bottom."""
    box = browser.js("(() => { const b = "
                     "document.getElementById('canvas').getBoundingClientRect(); return [b.left, "
                     "b.top, b.width, b.height]; })()")
    return box[0] + box[2] * 0.1, box[1] + box[3] - 18 * d - 9


def test_page_opens_from_a_file_without_a_complaint(browser, page):
    browser.open(page)
    assert set(browser.requests()) - {"about:blank"} == {page} and not browser.problems()
    text = browser.js("document.querySelector('header').innerText").replace("\n", " ")
    for what in ("build-7", "6.1.0-18-amd64 x86_64", "2.00 s", "cpu-clock at 99 Hz on 2 cpus",
                 "samples 5", "processes 2", "threads 3", "complete 4 (80.00 %)", "lost 12"):
        assert what in text
    assert browser.js(DATA + "samples") == "5"
    # all, process, main, work, inner, syscall, chain
    assert browser.js(DATA + "levels") == "7"


def test_page_searches_by_the_address(browser, page):
    browser.open(page + fragment(search="work|chain"))
    matched = browser.js("document.getElementById('matched').textContent")
    assert matched == "60.00 % matched (3 samples)"
    browser.open(page + fragment(search="["))
    assert browser.js("document.getElementById('search').getAttribute('aria-invalid')") == "true"
    # as it stands
    matched = browser.js("document.getElementById('matched').textContent")
    assert matched == "100.00 % matched (5 samples)"


def test_page_shows_one_process_or_thread(browser, page):
    for state, samples in [({"process": "server"}, "3"), ({"process": "200"}, "2"),
                           ({"process": "server", "thread": "worker 1"}, "1"),
                           ({"thread": "101"}, "1"), ({"process": "nobody"}, "0")]:
        browser.open(page + fragment(**state))
        assert browser.js(DATA + "samples") == samples, state
    assert (browser.js("document.getElementById('nothing').textContent")
            == "No samples of this process and thread.")


def test_page_zooms_by_name_click_key_and_back(browser, page):
    browser.open(page + fragment(zoom="ns::work(int)"))
    assert browser.js(DATA + "zoomed") == "ns::work(int)"
    browser.open(page)
    x, y = row_position(browser, 2)
    browser.mouse("mouseMoved", x, y)
    assert browser.js("document.getElementById('tip').innerText").split("\n") == [
        "main", "3 samples, 60.00 %", "/src/main.c:10", "/usr/bin/server"]
    browser.click(x, y)
    browser.wait(DATA + "zoomed === 'main'")
    assert "node=" in browser.js("location.hash")
    assert browser.js("[...document.querySelectorAll('#trail button')].map(b => "
                      "b.textContent).join('>')") == "all>server>main"
    browser.js("document.querySelectorAll('#trail button')[1].click()")
    browser.wait(DATA + "zoomed === 'server'")
    browser.js("history.back()")
    browser.wait(DATA + "zoomed === 'main'")
    browser.js("document.getElementById('graph').focus()")
    browser.key("Escape")
    browser.wait(DATA + "zoomed === 'all'")
    # Arrows choose, Enter zooms.
    for _ in range(3):
        browser.key("ArrowUp")
    browser.key("Enter")
    browser.wait(DATA + "zoomed === 'main'")
    assert not browser.problems()


def test_page_searches_by_keys(browser, page):
    browser.open(page)
    browser.key("/", "/")
    assert browser.js("document.activeElement.id") == "search"
    browser.type("INNER")
    browser.wait("document.getElementById('matched').textContent.startsWith('0.00 %')")
    browser.js("document.getElementById('search').select()")
    browser.type("inner")
    browser.wait("document.getElementById('matched').textContent === '60.00 % matched (3 samples)'")
    browser.key("Enter")
    browser.wait(DATA + "zoomed === 'inner'")
    browser.key("Escape")
    browser.wait("document.getElementById('matched').textContent === ''")
    browser.key("Escape")
    browser.wait(DATA + "zoomed === 'all'")


def test_page_lists_the_hottest_functions(browser, page):
    rows = ("[...document.querySelectorAll('#table tbody tr')].map(r => "
            "[...r.cells].map(c => c.textContent.replace(/\\s+/g, ' ').trim()))")
    browser.open(page + fragment(view="table"))
    got = browser.js(rows)
    assert got[0] == ["3 60.00 %", "3 60.00 %", "nft_do_chain_[k]", "[nf_tables]", ""]
    assert ["0 0.00 %", "3 60.00 %", "main", "server", "main.c:10"] in got
    assert ["0 0.00 %", "1 20.00 %", "[truncated: no-rows]", "libx (1).so", ""] in got
    browser.open(page + fragment(view="table", search="main"))
    assert [r[2] for r in browser.js(rows)] == ["main"]
    browser.js("document.querySelector('#table [data-sort=name]').click()")
    browser.wait("location.hash.includes('sort=name')")
    browser.js("document.querySelector('#table tbody tr').click()")
    browser.wait("location.hash.includes('search=%5Emain%24') && "
                 "!document.getElementById('graph').hidden")


def test_recursion_counts_once_in_total(browser, tmp_path):
    path = tmp_path / "x.html"
    lines = WHOLE.replace("frames=[4,3,2,1]", "frames=[1,2,1,2,1]")
    export(lines, "-o", path)
    browser.open(f"file://{path}" + fragment(view="table", search="^(main|inner)$"))
    rows = browser.js("[...document.querySelectorAll('#table tbody tr')].map(r => "
                      "[...r.cells].slice(0, 3).map(c => c.textContent.replace(/\\s+/g, ' "
                      "').trim()))")
    assert rows == [["3 60.00 %", "3 60.00 %", "main"], ["0 0.00 %", "3 60.00 %", "inner"]]


def test_page_tells_functions_of_one_name_apart_and_shows_lines(browser, tmp_path):
    path = tmp_path / "x.html"
    rows = ("[...document.querySelectorAll('#table tbody tr')].map(r => "
            "[...r.cells].map(c => c.textContent.replace(/\\s+/g, ' ').trim()))")
    for options, drawn, zoomed in (([], 5, "util.f (a/util.py:4)"),
                                   (["--lines"], 6, "util.f (a/util.py:4):6")):
        export(namesakes(), "-o", path, *options)
        browser.open(f"file://{path}" + fragment(view="table", search="util"))
        assert sorted(browser.js(rows)) == [["3 50.00 %", "3 50.00 %", f"util.f ({f}/util.py:4)",
                                             "[interpreted]", "util.py:4"] for f in "ab"]
        browser.open(f"file://{path}" + fragment(search=r"^util\.f \(a/util\.py:4\)$", zoom=zoomed))
        assert browser.js(DATA + "zoomed") == zoomed
        matched = browser.js("document.getElementById('matched').textContent")
        assert matched == "50.00 % matched (3 samples)"
        browser.open(f"file://{path}")
        assert browser.js(DATA + "drawn") == str(drawn)


def test_hostile_names_are_only_text(browser, tmp_path):
    path = tmp_path / "x.html"
    name = r"</script><img src=x onerror=document.title='owned'>"
    lines = WHOLE.replace('name="main"', f'name="{name}"')
    export(lines.replace('comm="server"', 'comm="<b>__proto__"'), "-o", path)
    for view in ("flame", "icicle", "table"):
        browser.open(f"file://{path}" + fragment(view=view, search="img", process="<b>__proto__"))
        assert browser.js("document.title") == "build-7: profpipe"
        assert browser.js(DATA + "samples") == "3"
        assert browser.js("document.querySelectorAll('img, b').length") == 0
        assert not browser.problems()
    assert (browser.js("document.querySelector('#table tbody button').textContent")
            == "</script><img src=x onerror=document.title='owned'>")


def test_deep_stacks_scroll_both_ways(browser, tmp_path):
    path, n = tmp_path / "x.html", 1000
    lines = HELLO + '\nprocess id=1 pid=1 comm="p"\nthread id=1 process=1 tid=1\n'
    for i in range(1, n + 1):
        lines += f'function id={i} name="f{i}"\nframe id={i} offset={i} functions=[{i}] lines=[1]\n'
    frames = ",".join(map(str, range(n, 0, -1)))
    lines += f"stack id=1 frames=[{frames}]\nsample stack=1 thread=1 time_ns=1\n" + END
    export(lines, "-o", path)
    for view, at_root in (("flame", "g.scrollTop + g.clientHeight >= g.scrollHeight - 2"),
                          ("icicle", "g.scrollTop === 0")):
        browser.open(f"file://{path}" + fragment(view=view))
        assert browser.js("document.getElementById('graph').scrollHeight") >= 1002 * 18
        assert browser.js(f"(g => {at_root})(document.getElementById('graph'))"), view
        # The root row is in sight, and after zooming to the leaf, the leaf's row.
        browser.open(f"file://{path}" + fragment(view=view, zoom="f1000"))
        top = "(g => %s - g.scrollTop)(document.getElementById('graph'))" % (
                "g.scrollHeight - 1002 * 18" if view == "flame" else "1001 * 18")
        assert 0 <= browser.js(top) < 700


def test_page_without_samples_says_so(browser, tmp_path):
    path = tmp_path / "x.html"
    export(HELLO + "\n" + END, "-o", path)
    browser.open(f"file://{path}")
    assert (browser.js("document.getElementById('nothing').textContent")
            == "This profile has no samples." and not browser.problems())
    assert browser.js("document.getElementById('fact-complete').textContent") == "0 (0.00 %)"


def test_large_profile_opens_in_seconds(browser, tmp_path):
    """200,000 distinct stacks."""
    path, lines = tmp_path / "x.html", [HELLO, 'process id=1 pid=1 comm="p"',
                                        "thread id=1 process=1 tid=1"]
    for i in range(1, 301):
        lines += [f'function id={i} name="function_{i}"',
                  f"frame id={i} offset={i} functions=[{i}] lines=[1]"]
    for i in range(200000):
        digits = [1 + (i // 300 ** k) % 300 for k in range(3)]
        stack = digits + [1 + (i * k) % 7 for k in range(2, 14)]
        lines += [f"stack id={i + 1} frames={str(stack).replace(' ', '')}",
                  f"sample stack={i + 1} thread=1 time_ns=1"]
    export("\n".join(lines) + "\n" + END, "-o", path)
    began = time.time()
    browser.open(f"file://{path}")
    assert time.time() - began < 10 and browser.js(DATA + "samples") == "200000"
    began = time.time()
    browser.open(f"file://{path}" + fragment(view="table", search="function_2"))
    assert time.time() - began < 10
