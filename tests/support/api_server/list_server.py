"""An API server in a thread that lists, shows and patches objects, and refuses a user what it is told to refuse: for
commands as a user runs them."""

import json
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

Object = dict[str, Any]
_COLLECTIONS: Final = ("trainingjobs", "schedulingpolicies", "nodes", "pods", "gpupools", "events")


class ListServer:
    """Objects by plural. `hidden` are collections that may not be listed at all, `elsewhere` those that may be listed
    in one namespace only. `patches` keeps what was patched for good."""

    def __init__(self, **objects: list[Object]) -> None:
        self.objects = objects
        self.hidden: set[str] = set()
        self.elsewhere: set[str] = set()
        self.patches: list[Object] = []
        self.logs: dict[str, str] = {}
        """What pods have printed, by their names."""
        self.record: dict[str, tuple[int, bytes]] = {}
        """What the dashboard answers through the proxy for Services, by path below /api/v1/; empty: there is none."""
        self.lists = Counter[str]()
        """How often each collection was listed."""
        self.changes: dict[str, queue.Queue[Object]] = defaultdict(queue.Queue)
        """By plural: events that the newest watch is sent."""
        self.ended = threading.Event()
        self.watched = True
        """Whether collections may be watched."""
        self.asked: list[tuple[str, str]] = []
        """Queries and tokens that came to the dashboard."""

    def get(self, path: str) -> tuple[int, Object]:
        """The answer to a GET."""
        parts = path.strip("/").split("/")
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else ""
        if parts[-1] in _COLLECTIONS or parts[-2] not in _COLLECTIONS:
            plural = parts[-1]
            self.lists[plural] += 1
            if plural in self.hidden or (plural in self.elsewhere and not namespace):
                return 403, {"code": 403, "reason": "Forbidden", "message": f"{plural} is forbidden"}
            listed = self._namespaces() if plural == "namespaces" else self.objects.get(plural, [])
            items = [one for one in listed if not namespace or _namespace(one) == namespace]
            return 200, {"metadata": {"resourceVersion": "10"}, "items": items}
        found = self._find(parts[-2], namespace, parts[-1])
        if found is None:
            message = f'{parts[-2]}.kube-synergy.dev "{parts[-1]}" not found'
            return 404, {"code": 404, "reason": "NotFound", "message": message}
        return 200, found

    def from_service(self, path: str, query: str, token: str) -> tuple[int, bytes]:
        """The answer to a GET that goes through the proxy for Services."""
        if not self.record:
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "services/proxy is forbidden"}
            return 403, json.dumps(status).encode()
        self.asked.append((query, token))
        return self.record.get(path, (404, b'{"error": "there is nothing"}'))

    def changed(self, plural: str) -> Iterator[bytes]:
        """The lines of a watch, until the server ends."""
        while not self.ended.is_set():
            with suppress(queue.Empty):
                yield json.dumps(self.changes[plural].get(timeout=0.05)).encode() + b"\n"

    def patch(self, path: str, body: Object, *, dry: bool) -> tuple[int, Object]:
        """The answer to a merge patch of a cluster-wide object."""
        plural, name = path.strip("/").split("/")[-2:]
        found = self._find(plural, "", name) or {"metadata": {"name": name}}
        if not dry:
            self.patches.append(body)
        return 200, {**found, "spec": {**found.get("spec", {}), **body.get("spec", {})}}

    def _namespaces(self) -> list[Object]:
        """Those that objects have."""
        names = {_namespace(one) for objects in self.objects.values() for one in objects}
        return [{"metadata": {"name": name}} for name in sorted(names) if name]

    def _find(self, plural: str, namespace: str, name: str) -> Object | None:
        same = [one for one in self.objects.get(plural, []) if one["metadata"]["name"] == name]
        return next((one for one in same if _namespace(one) == namespace), None)


def _namespace(item: Mapping[str, Any]) -> str:
    found: str = item["metadata"].get("namespace", "")
    return found


@contextmanager
def serving(server: ListServer, folder: Path) -> Iterator[Path]:
    """Serve, and the kubeconfig of a user whose context has the namespace `team`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            *_, pod, last = asked.path.split("/")
            _, proxied, path = asked.path.partition("/services/kube-synergy-dashboard:http/proxy/api/v1/")
            if proxied:
                token = self.headers.get("X-Synergy-Token", "")
                code, text = server.from_service(path, asked.query, token)
                self._send(code, "application/json", text)
            elif last == "log" and pod in server.logs:
                self._send(200, "text/plain", server.logs[pod].encode())
            elif last == "log":
                self._answer(400, {"code": 400, "reason": "BadRequest", "message": f"{pod} is waiting to start"})
            elif "watch" in parse_qs(asked.query):
                self._watch(last)
            else:
                self._answer(*server.get(asked.path))

        def _watch(self, plural: str) -> None:
            if not server.watched:
                self._answer(403, {"code": 403, "reason": "Forbidden", "message": f"{plural} may not be watched"})
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.writelines(server.changed(plural))

        def do_PATCH(self) -> None:
            asked = urlsplit(self.path)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(*server.patch(asked.path, body, dry="dryRun" in parse_qs(asked.query)))

        def _answer(self, code: int, document: Object) -> None:
            self._send(code, "application/json", json.dumps(document).encode())

        def _send(self, code: int, kind: str, text: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{web.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }  # fmt: skip
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    try:
        yield file
    finally:
        server.ended.set()
        web.shutdown()
        web.server_close()
