"""Writes that the API server refuses: a validating webhook of the harness, registered for the time of a fault.

The API server answers with the code that the webhook names: 403 as a policy engine's, 429 with Retry-After and 500 as
its own under load.
"""

import base64
import json
import random
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from synergy_devcluster.control_plane.pki import Authority
from synergy_kube import KubeClient, NotFound, Resource

WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
_WORDS = {403: "denied by the policy of the harness", 429: "too many requests, says the harness", 500: "storm"}


@dataclass(frozen=True)
class Refusal:
    """Writes of a user that are refused: `resources` as in a webhook's rules, the code, and how often (0 to 1)."""

    user: str
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    code: int
    part: float = 1.0


class Refusals:
    """The webhook's server on a port of loopback. `refused` counts the writes that it refused by code."""

    def __init__(self, kube: KubeClient, authority: Authority, seed: int = 1) -> None:
        self.refused: dict[int, int] = {}
        self._kube = kube
        self._authority = authority
        self._chance = random.Random(f"refusals {seed}")
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._in_force: dict[str, Refusal] = {}

    async def __aenter__(self) -> "Refusals":
        pair = self._authority.server("webhook", ("localhost", "127.0.0.1"))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pair.certificate, pair.key)
        app = web.Application(client_max_size=1 << 23)
        app.router.add_post("/{name}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @asynccontextmanager
    async def in_force(self, name: str, refusal: Refusal, namespaces: Sequence[str]) -> AsyncIterator[None]:
        """Meanwhile the API server asks about such writes in these namespaces; `forget` it afterwards."""
        self._in_force[name] = refusal
        try:
            await self._kube.create(WEBHOOKS, self._configuration(name, refusal, namespaces))
            yield
        finally:
            self._in_force.pop(name, None)  # what still asks is allowed from now on

    async def forget(self, name: str) -> None:
        """Take the webhook away; nothing happens where it is gone."""
        try:
            await self._kube.delete(WEBHOOKS, name)
        except NotFound:
            return

    def _configuration(self, name: str, refusal: Refusal, namespaces: Sequence[str]) -> dict[str, Any]:
        rule = {
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": list(refusal.operations),
            "resources": list(refusal.resources),
        }  # fmt: skip
        bundle = base64.b64encode(self._authority.certificate.read_bytes()).decode()
        selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
        webhook = {
            "name": f"{name}.chaos.kube-synergy.dev",
            "clientConfig": {"url": f"https://127.0.0.1:{self._port}/{name}", "caBundle": bundle},
            "rules": [rule],
            "namespaceSelector": {"matchExpressions": [selector]},
            "matchConditions": [{"name": "user", "expression": f"request.userInfo.username == '{refusal.user}'"}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 2,
        }
        return {"metadata": {"name": name}, "webhooks": [webhook]}

    async def _answer(self, request: web.Request) -> web.Response:
        review = await request.json()
        answer: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": True}
        refusal = self._in_force.get(request.match_info["name"])
        if refusal is not None and self._chance.random() < refusal.part:
            self.refused[refusal.code] = self.refused.get(refusal.code, 0) + 1
            status: dict[str, Any] = {"code": refusal.code, "message": _WORDS[refusal.code]}
            if refusal.code == 429:
                status |= {"reason": "TooManyRequests", "details": {"retryAfterSeconds": 1}}
            answer |= {"allowed": False, "status": status}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer})


def user_of(kubeconfig: Path) -> str:
    """The service account's name as the API server calls it, from the token of a kubeconfig."""
    config: Mapping[str, Any] = yaml.safe_load(kubeconfig.read_text())
    claims = config["users"][0]["user"]["token"].split(".")[1]
    subject = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
    return str(subject)
