"""`kube-synergy bench verbs`: what reading a request of kube-scheduler costs, by decoder and by kind of route."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from statistics import median
from typing import Any, NamedTuple

import click
import msgspec
from fastapi import FastAPI, Request, Response
from starlette.applications import Starlette
from starlette.routing import Route

from synergy_cli.text_table import text_table
from synergy_extender.verbs import schemas, wire
from synergy_extender.web.verb_routes import BareApp, BareRoute

_WARM = 2
_TARGET_S = 0.5
"""Seconds of measuring for each figure, at least five requests."""

AsgiApp = Callable[..., Awaitable[None]]


class Case(NamedTuple):
    """One figure: `what` is `decode` or `route`, `form` is `names` or `nodes`. `ratio` compares with msgspec."""

    what: str
    form: str
    megabytes: float
    way: str
    milliseconds: float
    ratio: float


@click.command("verbs")
@click.option("--nodes", default=5000, show_default=True, type=click.IntRange(1), help="Number of nodes in a request.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def verbs_command(nodes: int, as_json: bool) -> None:
    """Measure how long a filter request takes to decode: msgspec and pydantic, Starlette's and FastAPI's routes."""
    cases = [case for form in ("names", "nodes") for case in asyncio.run(_measure(form, nodes))]
    if as_json:
        click.echo(json.dumps({"benchmark": "verbs", "nodes": nodes, "cases": [case._asdict() for case in cases]}))
        return
    rows = [
        (case.what, case.form, f"{case.megabytes:.2f}", case.way, f"{case.milliseconds:.3f}", f"{case.ratio:.2f}")
        for case in cases
    ]
    click.echo(text_table(("what", "form", "MB", "way", "ms", "ratio"), rows))


def request_body(form: str, nodes: int) -> bytes:
    """A filter request with `nodes` nodes, as `names` or as whole `nodes` of about 5 KB each."""
    names = [f"gpu-node-{index:05}.cluster.example" for index in range(nodes)]
    whole = {"metadata": {}, "items": [_node(name) for name in names]} if form == "nodes" else None
    env = [{"name": f"SETTING_{index}", "value": "v" * 20} for index in range(20)]
    labels = {"kube-synergy.dev/job": "train", "kube-synergy.dev/run": "1", "kube-synergy.dev/rank": "0"}
    pod = {
        "metadata": {"name": "train-1-0", "namespace": "team", "uid": "0" * 36, "labels": labels},
        "spec": {"containers": [{"name": "train", "image": "train:1", "env": env}]},
    }
    return json.dumps({"Pod": pod, "Nodes": whole, "NodeNames": None if whole else names}).encode()


async def _measure(form: str, nodes: int) -> list[Case]:
    body = request_body(form, nodes)
    decoder = msgspec.json.Decoder(wire.ExtenderArgs)
    decoders: dict[str, Callable[[], object]] = {
        "msgspec": lambda: wire.offered_nodes(decoder.decode(body)),
        "pydantic, from bytes": lambda: schemas.ExtenderArgs.model_validate_json(body),
        "pydantic, as FastAPI calls it": lambda: schemas.ExtenderArgs.model_validate(json.loads(body)),
    }
    found = [("decode", way, _seconds(call)) for way, call in decoders.items()]
    for way, app in _routes(decoder).items():
        found.append(("route", way, await _route_seconds(app, body)))
    least = {what: next(seconds for other, _, seconds in found if other == what) for what in ("decode", "route")}
    size = len(body) / 1e6
    return [Case(what, form, size, way, seconds * 1e3, seconds / least[what]) for what, way, seconds in found]


def _routes(decoder: "msgspec.json.Decoder[wire.ExtenderArgs]") -> dict[str, AsgiApp]:
    async def raw(request: Request) -> Response:
        return Response(
            msgspec.json.encode(wire.FilterResult(wire.offered_nodes(decoder.decode(await request.body()))))
        )

    async def typed(args: schemas.ExtenderArgs) -> Response:
        names = args.node_names or [node.metadata.name for node in (args.nodes.items if args.nodes else None) or []]
        return Response(msgspec.json.encode(wire.FilterResult(names)))

    bare, by_request, by_model = BareApp(), FastAPI(), FastAPI()
    bare.router.route_class = BareRoute
    for app in (bare, by_request):
        app.post("/filter", response_model=None)(raw)
    by_model.post("/filter", response_model=None)(typed)
    return {
        "Starlette, msgspec": Starlette(routes=[Route("/filter", raw, methods=["POST"])]),
        "the verbs' own route, msgspec": bare,
        "FastAPI's own route, msgspec": by_request,
        "FastAPI, pydantic": by_model,
    }


def _seconds(call: Callable[[], object]) -> float:
    """Median of many calls."""
    found: list[float] = []
    while len(found) < 5 + _WARM or sum(found) < _TARGET_S:
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return median(found[_WARM:])


async def _route_seconds(app: AsgiApp, body: bytes) -> float:
    """Median of many requests, without a socket."""
    found: list[float] = []
    while len(found) < 5 + _WARM or sum(found) < _TARGET_S:
        began = time.perf_counter()
        await _ask(app, body)
        found.append(time.perf_counter() - began)
    return median(found[_WARM:])


async def _ask(app: AsgiApp, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/filter",
        "raw_path": b"/filter",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
    }

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise click.ClickException(f"a route answered with {message['status']}")

    await app(scope, receive, send)


def _node(name: str) -> dict[str, Any]:
    conditions = [
        {"type": f"Condition{index}", "status": "True", "message": "m" * 40, "reason": "r" * 20} for index in range(5)
    ]
    images = [{"names": [f"images.example/x@sha256:{'a' * 64}"], "sizeBytes": 1 << 30} for _ in range(20)]
    return {
        "metadata": {
            "name": name,
            "labels": {f"nvidia.com/label-{index}": f"value-{index}" for index in range(40)},
            "annotations": {f"annotation-{index}": "a" * 60 for index in range(8)},
        },
        "status": {"capacity": {"cpu": "96", "nvidia.com/gpu": "8"}, "conditions": conditions, "images": images},
    }
