"""A real Prometheus: `make prometheus` puts Debian's package beside the virtual environment, without its service."""

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
BIN = ROOT / ".venv" / ".prometheus" / "usr" / "bin"
RULES = ROOT / "helm" / "kube-synergy" / "alerts" / "rules.yaml"
DASHBOARDS = ROOT / "helm" / "kube-synergy" / "dashboards"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`."""
    path = BIN / name
    if not path.exists():
        raise FileNotFoundError(f"{path}: run `make prometheus` first")
    return str(path)


class Prometheus:
    """A running server on the loopback."""

    def __init__(self, port: int, targets: Path) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"
        self._targets = targets

    def scrape(self, targets: Collection[str]) -> None:
        """From now on, scrape these `host:port` addresses and no others."""
        text = json.dumps([{"targets": sorted(targets)}])
        if not self._targets.exists() or self._targets.read_text() != text:
            new = self._targets.with_suffix(".new")
            new.write_text(text)
            new.replace(self._targets)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Series of an instant query. Raises urllib.error.HTTPError for an expression that it does not take."""
        found: list[dict[str, Any]] = self._get("query", query=expr)["result"]
        return found

    def firing(self) -> set[str]:
        """Names of the alerts that fire."""
        return {one["labels"]["alertname"] for one in self._get("alerts")["alerts"] if one["state"] == "firing"}

    def ready(self) -> bool:
        """It answers queries."""
        try:
            self.query("1")
        except OSError:
            return False
        return True

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"{self._url}/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]


@contextmanager
def evaluating(alerts: Mapping[str, Any], folder: Path) -> Iterator[Prometheus]:
    """A server that scrapes its targets and evaluates `alerts` each second. At first it has no targets."""
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "kube-synergy", "file_sd_configs": [{"files": ["targets.json"]}]}],
    }
    (folder / "rules.yaml").write_text(yaml.safe_dump(dict(alerts)))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        program("prometheus"), f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=folder)
    try:
        server = Prometheus(port, folder / "targets.json")
        deadline = time.monotonic() + 60
        while not server.ready():
            assert process.poll() is None, "prometheus has ended"
            assert time.monotonic() < deadline, "prometheus does not answer"
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def rules() -> dict[str, Any]:
    """The chart's alerts."""
    loaded: dict[str, Any] = yaml.safe_load(RULES.read_text())
    return loaded


def expressions() -> dict[str, list[str]]:
    """The queries of the chart's dashboards, by dashboard and panel."""
    found: dict[str, list[str]] = {}
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            found[f"{path.stem}: {panel['title']}"] = [target["expr"] for target in panel["targets"]]
    return found
