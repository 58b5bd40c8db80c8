"""The API for workers (leases) and for people (snapshot, plan), with its OpenAPI page under /docs."""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from synergy_api.timestamps import format_time
from synergy_core.model.snapshot_format import plan_document, snapshot_document
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.views import Key
from synergy_extender.failures import CALL_FAILED, explain
from synergy_extender.leases.reports import Report, progress_after
from synergy_extender.leases.review_turns import BusyError
from synergy_extender.leases.service import LeaseService, NotReadyError, NoWorkerError, TokenRefusedError
from synergy_extender.leases.tokens import Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.planning.future import planned_snapshot
from synergy_extender.planning.last_plan import LastPlan
from synergy_extender.planning.policy import PolicyInForce
from synergy_service.limits import App, LimitBody

_MOST_BYTES = 64 << 10


class VerdictAnswer(BaseModel):
    """What the worker shall do. Times in seconds from now; CPU and memory are what the worker may use now."""

    verdict: Literal["continue", "yield"]
    yield_in_s: float | None
    lease_remaining_s: float
    next_report_s: float
    cpu_millis: int
    memory_bytes: int


class ErrorDetail(BaseModel):
    """Why a request was refused."""

    detail: str


class ApiParts:
    """What the endpoints need."""

    def __init__(
        self,
        cache: ClusterCache,
        leases: LeaseService,
        reviewer: Reviewer,
        metrics: Metrics,
        *,
        policy: Callable[[], PolicyInForce],
        last_plan: Callable[[], LastPlan | None],
        leader: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self.cache = cache
        self.leases = leases
        self.reviewer = reviewer
        self.metrics = metrics
        self.policy = policy
        self.last_plan = last_plan
        self.leader = leader
        self.clock = clock


def api_app(parts: ApiParts) -> App:
    """The ASGI application."""
    app = FastAPI(title="kube-synergy extender", version="v1", redoc_url=None)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.post("/v1/lease", responses=_REFUSALS, summary="A worker reports and learns whether to train on")(_lease(parts))
    person = Depends(_person(parts))
    app.get(
        "/v1/snapshot",
        responses=_REFUSALS,
        dependencies=[person],
        summary="The cluster as the planner sees it, for `kube-synergy plan`",
    )(_snapshot(parts))
    app.get("/v1/plan", responses=_REFUSALS, dependencies=[person], summary="The newest plan of this replica")(
        _plan(parts)
    )
    app.get(
        "/v1/progress/{namespace}/{name}",
        responses={**_REFUSALS, 404: {"model": ErrorDetail, "description": "There is no such TrainingJob."}},
        dependencies=[person],
        summary="The newest progress of a job that this replica knows, which its status may not show yet",
    )(_progress(parts))
    return LimitBody(app, _MOST_BYTES)


_TEXT: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorDetail, "description": "The body cannot be read."},
    401: {"model": ErrorDetail, "description": "No token, or one that the API server refuses."},
    403: {"model": ErrorDetail, "description": "The token's owner may not do this."},
    408: {**_TEXT, "description": "The body did not come in time."},
    413: {**_TEXT, "description": "The body is too large."},
    503: {"model": ErrorDetail, "description": "This replica cannot answer now."},
}

Authorization = Annotated[str, Header(description="`Bearer` and a token.")]


def _lease(parts: ApiParts) -> Callable[..., Any]:
    async def lease(request: Request, report: Report, authorization: Authorization = "") -> VerdictAnswer:
        token = _token(authorization)
        with parts.metrics.leases.report_seconds.time():
            try:
                answer = await parts.leases.report(token, report, _peer(request))
            except TokenRefusedError as error:
                raise HTTPException(401, str(error)) from None
            except NoWorkerError as error:
                raise HTTPException(403, str(error)) from None
            except NotReadyError as error:
                raise HTTPException(503, str(error)) from None
        return VerdictAnswer(**vars(answer))

    return lease


def _not_valid(_: Request, error: Exception) -> Response:
    """422 with the fields and what is wrong with them. FastAPI's own answer repeats the input, and fails where that is
    no JSON: a NaN, half of a surrogate pair, bytes that are no UTF-8."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    detail = [{"loc": list(one["loc"]), "msg": one["msg"], "type": one["type"]} for one in problems]
    return Response(json.dumps({"detail": detail}), 422, media_type="application/json")


def _person(parts: ApiParts) -> Callable[..., Any]:
    async def person(request: Request, authorization: Authorization = "") -> None:
        token = _token(authorization)
        try:
            identity = await parts.reviewer.identify(token, None, peer=_peer(request))
            if identity is None:
                raise HTTPException(401, "the API server refuses the token")
            allowed = await parts.reviewer.may_read_jobs(identity, peer=_peer(request))
        except BusyError as error:
            raise HTTPException(503, f"the token cannot be reviewed now: {error}") from error
        except CALL_FAILED as error:
            raise HTTPException(503, f"the API server cannot review the token: {explain(error)}") from error
        if not allowed:
            raise HTTPException(403, f"{identity.username} may not get trainingjobs.kube-synergy.dev in all namespaces")

    return person


def _snapshot(parts: ApiParts) -> Callable[..., Any]:
    async def snapshot(mode: Literal["round", "fill"] = "round") -> JSONResponse:
        if not parts.cache.synced:
            raise HTTPException(503, "this replica has not read the cluster yet")
        built = await asyncio.to_thread(planned_snapshot, parts.cache.state(), parts.policy(), mode, parts.clock())
        return JSONResponse(snapshot_document(built.snapshot))

    return snapshot


def _plan(parts: ApiParts) -> Callable[..., Any]:
    async def plan() -> JSONResponse:
        last = parts.last_plan()
        if last is None:
            raise HTTPException(503, f"this replica has not planned; the leader is {parts.leader() or 'not known'}")
        document = plan_document(last.planned.plan, seconds=last.planned.seconds)
        about = {"mode": last.mode, "round": last.round_index, "planned_at": format_time(last.at)}
        return JSONResponse({**about, "plan": document})

    return plan


def _progress(parts: ApiParts) -> Callable[..., Any]:
    async def progress(namespace: str, name: str) -> JSONResponse:
        job = parts.cache.jobs.get(Key(namespace, name))
        if job is None:
            raise HTTPException(404, f"there is no TrainingJob {namespace}/{name}")
        written, heard = job.status.progress, parts.leases.progress.newest(job.key, job.uid)
        if heard is None or (written is not None and written.run > heard.reported.run):
            return JSONResponse({"source": "status", **(written.to_wire() if written is not None else {})})
        newest = progress_after(job, heard.reported, parts.clock(), parts.cache.jobs)
        return JSONResponse({"source": "report", **newest.to_wire()})

    return progress


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _token(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise HTTPException(401, "send the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
    return token.strip()
