"""The routes of what only the history tells."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from synergy_dashboard.api.answers import DecisionsPage, RoundsPage, UsagePage
from synergy_dashboard.api.job.page import job_page
from synergy_dashboard.api.live_pages import round_s_of
from synergy_dashboard.api.parts import ApiParts
from synergy_dashboard.api.past.decisions import decisions
from synergy_dashboard.api.past.export import archive
from synergy_dashboard.api.past.job_history import job_history
from synergy_dashboard.api.problems import Refusal
from synergy_dashboard.api.rounds_page import MOST_ROUNDS, rounds_page
from synergy_dashboard.facts import Usage
from synergy_view.history import History
from synergy_view.usage import UsageRow

WEEK_S: Final = 7 * 86_400.0
MOST_DECISIONS: Final = 1_000
MOST_WAITING: Final = 4
"""Exports that wait for their turn."""
TABS: Final = 4
"""Pages with rounds that one user has open. All load the new round at once."""
Seconds = Annotated[float | None, Query(ge=0, le=1e12, allow_inf_nan=False)]
Answer = Callable[[Any], Response]


def add_past(router: APIRouter, parts: ApiParts, answer: Answer) -> None:
    """Add the routes. `answer` makes an answer of a value."""
    live, store = parts.live, parts.store
    exporting, deciding = _Turns(MOST_WAITING), _Turns(10 * MOST_WAITING)
    drawing = _Turns(10 * MOST_WAITING, of_user=TABS)

    async def rounds(
        request: Request, until_s: Seconds = None, rounds: Annotated[int, Query(ge=1, le=MOST_ROUNDS)] = 24
    ) -> Response:
        parts.check_synced()
        asker = await parts.people.asker(request)
        now, round_s = live.clock(), round_s_of(live)
        until = min(now, until_s) if until_s is not None else now
        async with drawing.turn(asker.user.name):
            found = await asyncio.to_thread(
                rounds_page, store, asker.scope.namespaces, now=now, until_s=until, rounds=rounds, round_s=round_s
            )
        return answer(found)

    async def decided(
        request: Request, rounds: Annotated[int, Query(ge=1, le=MOST_DECISIONS)] = 10, namespace: str | None = None
    ) -> Response:
        parts.check_synced()
        asker = await parts.people.asker_within(request, namespace)
        now, round_s = live.clock(), round_s_of(live)
        async with deciding.turn(asker.user.name):
            found = await asyncio.to_thread(decisions, store, asker.scope, now=now, rounds=rounds, round_s=round_s)
        since_s = await asyncio.to_thread(store.first_s)
        return answer(DecisionsPage(now=now, recorded_since_s=since_s, rounds=found))

    async def usage(request: Request, since_s: Seconds = None, namespace: str | None = None) -> Response:
        parts.check_synced()
        asker = await parts.people.asker_within(request, namespace)
        now = live.clock()
        since = now - WEEK_S if since_s is None else min(since_s, now)
        used = await asyncio.to_thread(store.usage, since, now, asker.scope.namespaces)
        recorded_since_s = await asyncio.to_thread(store.first_s)
        rows = sorted(map(_row, used), key=lambda row: (-row.gpu_hours, row.tenant, row.namespace))
        return answer(UsagePage(now=now, since_s=since, recorded_since_s=recorded_since_s, rows=rows))

    async def history(request: Request, namespace: str, name: str) -> Response:
        parts.check_synced()
        asker = await parts.people.asker_of(request, namespace)
        page = await job_page(parts, asker.scope, namespace=namespace, name=name)
        known = await asyncio.to_thread(store.job, namespace, name)
        same = known if known is not None and known.created_s == page.created_s else None
        return answer(job_history(page, same))

    async def download(request: Request, since_s: Seconds = None, namespace: str | None = None) -> Response:
        parts.check_synced()
        asker = await parts.people.asker_within(request, namespace)
        since = live.clock() - WEEK_S if since_s is None else since_s
        async with exporting.turn(asker.user.name):
            content = await archive(live, store, parts.client, asker.scope, since)
        headers = {"Content-Disposition": 'attachment; filename="kube-synergy-export.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    for path, handler, model, summary in (
        ("/rounds", rounds, RoundsPage, "The Gantt chart and the rounds in it"),
        ("/decisions", decided, DecisionsPage, "What the last rounds decided"),
        ("/usage", usage, UsagePage, "What tenants had of the cluster, by namespace"),
        ("/jobs/{namespace}/{name}/history", history, History, "All that has happened to a job"),
    ):
        router.get(path, summary=summary, responses={200: {"model": model}})(handler)
    router.get("/export", summary="Trace, profiles and cluster for the simulator, as a zip file")(download)


class _Turns:
    """One large answer at a time: it may read much of what the history or the API server has of jobs. Each user asks
    for `of_user`, and at most `most` wait: a question whose asker is gone is answered all the same."""

    def __init__(self, most: int, of_user: int = 1) -> None:
        self._most, self._of_user = most, of_user
        self._turn = asyncio.Lock()
        self._asked: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Wait for a user's turn. Raises Refusal 429 or 503."""
        if self._asked[user] >= self._of_user:
            raise Refusal(429, "an answer like this is being made for you; wait for it")
        if self._asked.total() > self._most:
            raise Refusal(503, "too many others ask for this; ask again in a minute")
        self._asked[user] += 1
        try:
            async with self._turn:
                yield
        finally:
            self._asked -= Counter((user,))


def _row(used: Usage) -> UsageRow:
    return UsageRow(
        tenant=used.tenant,
        namespace=used.namespace,
        jobs=used.jobs,
        finished=used.finished,
        gpu_hours=used.gpu_hours,
        waiting_hours=used.waiting_hours,
        gain=(used.gpu_hours + used.gained_gpu_hours) / used.gpu_hours if used.gpu_hours else None,
        preemptions=used.preemptions,
    )
