"""The effect of a change on the jobs of the cluster, simulated in a separate process.

A simulation takes seconds and much memory. A process of its own can be stopped, and returns all its memory when it
ends.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from dataclasses import asdict, fields
from typing import Any, Final

from fastapi import Request
from pydantic import TypeAdapter, ValidationError

from synergy_dashboard.api.future_answers import HelpAnswer, Remedy, Totals, WhatIfAnswer, WhatIfJob, WhatIfRequest
from synergy_dashboard.api.people import Asker
from synergy_dashboard.api.problems import Refusal

MOST_BYTES: Final = 256 << 10
MOST_WAITING: Final = 4
MOST_OF_USER: Final = 2
"""Questions of one user: one that is answered, and one that waits. Others get their turn between them."""
SECONDS: Final = 60.0
PROGRAM: Final = ("-m", "synergy_dashboard.api.future")
_BODY_SECONDS: Final = 10.0
_KNOWN: Final = frozenset(field.name for field in fields(WhatIfRequest))
_REQUEST: Final = TypeAdapter(WhatIfRequest)


class Futures:
    """Runs one simulation at a time. Few more may wait."""

    def __init__(self, kubeconfig: str | None, *, seconds: float = SECONDS, program: tuple[str, ...] = PROGRAM) -> None:
        self._kubeconfig = kubeconfig
        self._seconds = seconds
        self._program = program
        self._turn = asyncio.Lock()
        self._waiting = Counter[str]()

    async def what_if(self, wanted: WhatIfRequest, asker: Asker) -> WhatIfAnswer:
        """The two futures, with the jobs that the user may see. Raises Refusal 403, 422, 429 or 503."""
        scope, added = asker.scope, _name_of(wanted.add_job)
        if added and not scope.names(added):
            raise Refusal(403, f"add_job: you may not get TrainingJobs in the namespace of {added}")
        answer = await self._asked({"request": asdict(wanted)}, asker.user.name)
        jobs = [_job(one) for one in answer["jobs"] if scope.names(one["job"])]
        return WhatIfAnswer(
            as_is=Totals(**answer["as_is"]), what_if=Totals(**answer["what_if"]), jobs=jobs, seconds=answer["seconds"]
        )

    async def help(self, job: str, asker: Asker) -> HelpAnswer:
        """What would make the job NAMESPACE/NAME start in the next round. Raises Refusal 429 or 503."""
        answer = await self._asked({"help": job}, asker.user.name)
        return HelpAnswer(
            planned=answer["planned"],
            starts_anyway=answer["starts_anyway"],
            remedies=[Remedy(**one) for one in answer["remedies"]],
            complete=answer["complete"],
        )

    async def _asked(self, question: dict[str, Any], user: str) -> dict[str, Any]:
        """The answer of the process, when it is this question's turn."""
        if self._waiting[user] >= MOST_OF_USER:
            raise Refusal(429, f"{self._waiting[user]} questions of yours are being answered; wait for one of them")
        if self._waiting.total() > MOST_WAITING:
            raise Refusal(503, "too many others ask for a future; ask again in a minute")
        self._waiting[user] += 1
        try:
            async with self._turn:
                answer = await self._run({"kubeconfig": self._kubeconfig, **question})
        finally:
            self._waiting[user] -= 1
            if not self._waiting[user]:
                del self._waiting[user]
        if "error" in answer:
            raise Refusal(answer["code"], answer["error"])
        return answer

    async def _run(self, question: dict[str, Any]) -> dict[str, Any]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, *self._program, stdin=pipe, stdout=pipe, env=dict(os.environ)
        )
        try:
            async with asyncio.timeout(self._seconds):
                answer, _ = await process.communicate(json.dumps(question).encode())
        except TimeoutError:
            raise Refusal(503, f"the future of this cluster takes more than {self._seconds:.0f} s to find") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            found: dict[str, Any] = json.loads(answer)
        except ValueError:
            raise Refusal(503, "the future could not be found; the log of the dashboard says why") from None
        return found


async def read_request(request: Request) -> WhatIfRequest:
    """The request's body. Raises Refusal 408, 413 or 422."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise Refusal(413, f"the request is larger than {MOST_BYTES} bytes")
    except TimeoutError:
        raise Refusal(408, "the request took too long") from None
    try:
        document = json.loads(bytes(body) or b"{}")
        unknown = sorted(document.keys() - _KNOWN) if isinstance(document, dict) else []
        if unknown:
            raise Refusal(422, f"{unknown[0]}: unknown field; choose among {', '.join(sorted(_KNOWN))}")
        return _REQUEST.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal(422, f"{'.'.join(str(part) for part in first['loc']) or 'body'}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise Refusal(422, "the body is no JSON") from None


def _name_of(manifest: dict[str, object] | None) -> str:
    """NAMESPACE/NAME of a manifest. Raises Refusal 422."""
    if manifest is None:
        return ""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        raise Refusal(422, "add_job: metadata.name is missing; add it")
    namespace = metadata.get("namespace") or "default"
    return f"{namespace}/{name}"


def _job(one: dict[str, Any]) -> WhatIfJob:
    (start, other_start), (finish, other_finish) = one["start_s"], one["finish_s"]
    return WhatIfJob(job=one["job"], start_s=(start, other_start), finish_s=(finish, other_finish))
