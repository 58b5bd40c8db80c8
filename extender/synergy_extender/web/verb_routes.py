"""The FastAPI application of the four scheduler verbs, with their schemas in its OpenAPI document."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from synergy_extender.metrics import Metrics
from synergy_extender.verbs import schemas

Handler = Callable[[bytes], Awaitable[object]]

_REFS = "#/components/schemas/{model}"
_ENCODER = msgspec.json.Encoder()
_TEXT: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_LIMITS: dict[int | str, dict[str, Any]] = {
    403: {**_TEXT, "description": "The client's certificate has a name that may not call the verbs."},
    408: {**_TEXT, "description": "The body did not come in time."},
    413: {**_TEXT, "description": "The body is too large."},
}


class Verb(NamedTuple):
    """What the OpenAPI document says of a verb."""

    summary: str
    request: type[BaseModel]
    answer: Any


VERBS: Mapping[str, Verb] = {
    "filter": Verb("The nodes that a pod may use", schemas.ExtenderArgs, schemas.ExtenderFilterResult),
    "prioritize": Verb("The score of each node", schemas.ExtenderArgs, schemas.HostPriorityList),
    "bind": Verb("Bind a pod to its planned node", schemas.ExtenderBindingArgs, schemas.ExtenderBindingResult),
    "preempt": Verb("Victims of a preemption", schemas.ExtenderPreemptionArgs, schemas.ExtenderPreemptionResult),
}


class BareRoute(APIRoute):
    """A route whose endpoint takes the request and returns the response: Starlette runs it, since there is nothing for
    FastAPI to resolve, to validate or to close."""

    def __init__(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.app = request_response(endpoint)


class BareApp(FastAPI):
    """FastAPI without its own middleware and telemetry: the verbs have no files or dependencies to close, `LimitBody`
    bounds bodies, and each layer costs every pod microseconds in the kube-scheduler's serial loop (decision 35)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Past FastAPI's telemetry."""
        await Starlette.__call__(self, scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Only what answers errors."""
        return ServerErrorMiddleware(ExceptionMiddleware(self.router))


def verbs_app(handlers: Mapping[str, Handler], metrics: Metrics) -> FastAPI:
    """One POST route for each verb. A handler gets the body as it came and returns what msgspec encodes.

    The routes take the request itself, so FastAPI does not decode or validate: a handler answers a body that cannot be
    read with status 200 and the reason, and reads large bodies faster (decision 35).
    """
    app = BareApp(
        title="kube-synergy scheduler extender",
        version="v1",
        description="The protocol of k8s.io/kube-scheduler/extender/v1.",
        docs_url=None,
        redoc_url=None,
    )
    app.router.route_class = BareRoute
    for name, verb in VERBS.items():
        app.post(
            f"/{name}",
            summary=verb.summary,
            description=handlers[name].__doc__ or "",
            operation_id=name,
            response_model=None,
            responses={200: {"model": verb.answer, "description": "Also a refusal: the body says why."}, **_LIMITS},
            openapi_extra={"requestBody": {"required": True, "content": _json(verb.request)}},
        )(_endpoint(handlers[name], metrics.verbs.seconds.labels(name)))
    written = app.openapi

    def openapi() -> dict[str, Any]:
        """FastAPI's document with the schemas of the requests, which it does not know of."""
        if app.openapi_schema is None:
            requests = dict.fromkeys(verb.request for verb in VERBS.values())
            _, definitions = models_json_schema([(model, "validation") for model in requests], ref_template=_REFS)
            known = written().setdefault("components", {}).setdefault("schemas", {})
            known.update({name: schema for name, schema in definitions["$defs"].items() if name not in known})
        return app.openapi_schema or written()

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def _endpoint(handler: Handler, seconds: Any) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def endpoint(request: Request) -> Response:
        started = time.perf_counter()
        answer = await handler(await request.body())
        response = Response(_ENCODER.encode(answer), media_type="application/json")
        seconds.observe(time.perf_counter() - started)
        return response

    return endpoint


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REFS.format(model=model.__name__)}}}
