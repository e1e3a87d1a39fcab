# SPDX-License-Identifier: Apache-2.0
"""The OpenTelemetry Collector, built by its own builder, receives our gRPC and HTTP requests. The
requests that it writes have the samples of our text output, one by one."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import BUILD, GO_CACHE, profpipe
from otlp_rules import assert_same, clocks, profiles, requests
from recordings import messages
from streams import ROOT
from test_otlp_live import report

MANIFEST = f"{ROOT}/tests/collector/builder.yaml"
FOLDER = os.path.join(os.path.dirname(BUILD), "collector")

# One file for each protocol. The debug exporter decodes everything, and writes it as text.
CONFIG = """
receivers:
  otlp/grpc: {{protocols: {{grpc: {{endpoint: 127.0.0.1:{grpc}}}}}}}
  otlp/http: {{protocols: {{http: {{endpoint: 127.0.0.1:{http}}}}}}}
exporters:
  file/grpc: {{path: {folder}/grpc.otlp, format: proto, flush_interval: 100ms}}
  file/http: {{path: {folder}/http.otlp, format: proto, flush_interval: 100ms}}
  debug: {{verbosity: detailed}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    profiles/grpc: {{receivers: [otlp/grpc], exporters: [file/grpc, debug]}}
    profiles/http: {{receivers: [otlp/http], exporters: [file/http, debug]}}
"""

pytestmark = pytest.mark.check_all


@pytest.fixture(scope="session")
def collector():
    """The program. It is built again when its manifest has changed."""
    assert shutil.which("go"), "go: not found; install golang-go 1.25 or later, or go.dev's Go"
    with open(MANIFEST, encoding="utf-8") as f:
        manifest = f.read()
    program, built = f"{FOLDER}/out/collector", f"{FOLDER}/built"
    with contextlib.suppress(FileNotFoundError), open(built, encoding="utf-8") as f:
        if f.read() == manifest and os.path.exists(program):
            return program
    version = re.search(r"^  version: (\S+)", manifest, re.M)[1]
    # The builder would tidy the module, which also fetches modules that only tests of others need.
    # So it finds a module with the requirements that it would write itself. The compiler adds the
    # rest.
    env = {**os.environ, "GOCACHE": GO_CACHE, "GOBIN": FOLDER,
           "GOFLAGS": "-buildvcs=false -mod=mod"}

    def run(*argv):
        p = subprocess.run(argv, cwd=FOLDER, env=env, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, check=False)
        assert p.returncode == 0, (
            f"{' '.join(argv)}: failed; see `go env GOPROXY`:\n{p.stdout[-4000:]}")
    modules = re.findall(r"gomod: (\S+ \S+)", manifest)
    modules.append(f"go.opentelemetry.io/collector/otelcol v{version}")
    os.makedirs(f"{FOLDER}/out", exist_ok=True)
    with open(f"{FOLDER}/out/go.mod", "w", encoding="utf-8") as f:
        f.write("module collector\n\n" + "".join(f"require {module}\n" for module in modules))
    run("go", "install", f"go.opentelemetry.io/collector/cmd/builder@v{version}")
    with open(f"{FOLDER}/builder.yaml", "w", encoding="utf-8") as f:
        f.write(manifest.replace("dist:\n", f"dist:\n  output_path: {FOLDER}/out\n"))
    run(f"{FOLDER}/builder", "--config", f"{FOLDER}/builder.yaml", "--skip-get-modules")
    with open(built, "w", encoding="utf-8") as f:
        f.write(manifest)
    return program


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [s.getsockname()[1] for s in sockets]


@pytest.fixture
def running(collector, tmp_path):
    """A Collector: the URLs of its receivers, by protocol. `stop` ends it, and returns its log."""
    class Running:
        def __init__(self):
            ports = dict(zip(("grpc", "http"), free_ports(2)))
            self.urls = {k: f"http://127.0.0.1:{port}" for k, port in ports.items()}
            config, log = tmp_path / "collector.yaml", tmp_path / "collector.log"
            config.write_text(CONFIG.format(folder=tmp_path, **ports))
            self.log = log
            with open(log, "wb") as f:
                self.p = subprocess.Popen(
                    [collector, "--config", config, "--feature-gates=+service.profilesSupport"],
                    stdout=f, stderr=subprocess.STDOUT)
            until = time.monotonic() + 60
            while "Everything is ready" not in log.read_text(errors="replace"):
                assert self.p.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.1)

        def stop(self):
            self.p.send_signal(signal.SIGTERM)
            assert self.p.wait(60) == 0, self.log.read_text()
            return self.log.read_text(errors="replace")
    r = Running()
    yield r
    r.p.kill()
    r.p.wait()


# Native, interpreted and kernel frames; one process sets its service name.
LOAD = """OTEL_SERVICE_NAME=shop /usr/bin/python3 -c '
import os, time
while time.process_time() < 1: os.stat("/"); sum(range(1000))' &
openssl speed -seconds 1 md5 & wait"""


STEADY = ("--window-jitter", "0")  # the same windows each time


def test_the_collector_writes_the_same_as_prof_export(running, tmp_path):
    out = tmp_path / "run.prof"
    p = profpipe("record", "-F", "299", "-o", out, "--env", "OTEL_SERVICE_NAME", "--cmdline", "--",
                 "sh", "-c", LOAD)
    assert p.returncode == 0, p.stderr
    protocols = {"grpc": "grpc", "http": "http/protobuf"}
    for name, protocol in protocols.items():
        p = profpipe("report", out, "--otlp", running.urls[name], "--otlp-protocol", protocol,
                     *STEADY)
        assert p.returncode == 0, p.stderr
    log = running.stop()
    text = report(out, "text").decode(errors="replace")
    ours = requests(report(out, "otlp", *STEADY))
    for name in protocols:
        theirs = requests((tmp_path / f"{name}.otlp").read_bytes(), ours=False)
        n, frames = assert_same(theirs, text, clocks(out.read_bytes()), exact=True)
        assert n > 100 and frames > 5 * n
        # All attributes arrive as well.
        assert sorted(map(str, (r for _, r, _ in profiles(theirs)))) == sorted(
            map(str, (r for _, r, _ in profiles(ours))))
        assert {"shop", "openssl"} <= {r["service.name"] for _, r, _ in profiles(theirs)}
        assert any(r.get("process.command_args", [])[1:2] == ["speed"]
                   for _, r, _ in profiles(theirs))
    assert not re.search(r"^\S+\t(warn|error)\t.*", log, re.M), log[-4000:]
    samples = sum(1 for kind, _ in messages(out.read_bytes()) if kind == 11)
    assert log.count("service.name: Str(shop)") >= 2 and samples == n
