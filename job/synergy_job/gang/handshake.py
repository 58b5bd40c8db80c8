"""Rank 0's side of a handshake: a stranger proves that it belongs to the gang before it learns about the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from synergy_job.gang.key import NO_PROOF, new_nonce, proof, proves
from synergy_job.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Container

    from synergy_job.environment import Worker
    from synergy_job.gang.door import Stranger


@dataclass(frozen=True)
class Admitted:
    """A process that belongs to the gang, and the steps that it has done."""

    rank: int
    step: int
    gpu_uuids: tuple[str, ...]


class Handshake:
    """Asks strangers for a proof that they know the gang's key, if it has one."""

    def __init__(self, worker: Worker, key: bytes | None) -> None:
        self._worker = worker
        self._key = key

    def next_word(self, stranger: Stranger, message: dict[str, Any], taken: Container[int]) -> Admitted | None:
        """Answer a stranger's message. `taken` are the ranks that have joined.

        Returns the process once it is admitted; None if it must prove itself first. Raises WireError, after an answer
        with the reason, if it does not belong to the gang.
        """
        if self._key is None:
            hello = message["hello"]
            keyed = "nonce" in hello
            return self._admitted(
                stranger, hello, taken, "it has a key of the run, and rank 0 has none" if keyed else ""
            )
        if stranger.hello is None:
            stranger.hello, stranger.challenge = dict(message["hello"]), new_nonce()
            if "nonce" not in stranger.hello:
                self._refuse(stranger, NO_PROOF)
            own = proof(self._key, "leader", stranger.hello, stranger.challenge)
            stranger.connection.send({"challenge": stranger.challenge, "proof": own})
            return None
        proved = proves(message["proof"], self._key, "member", stranger.hello, stranger.challenge)
        admitted = self._admitted(stranger, stranger.hello, taken, "" if proved else NO_PROOF)
        stranger.connection.send({"welcome": True})
        return admitted

    def _admitted(self, stranger: Stranger, hello: dict[str, Any], taken: Container[int], refusal: str) -> Admitted:
        refusal = refusal or self._refusal(hello, taken)
        if refusal:
            self._refuse(stranger, refusal)
        uuids = tuple(str(uuid) for uuid in hello["gpu_uuids"])
        return Admitted(int(hello["rank"]), int(hello["step"]), uuids)

    def _refuse(self, stranger: Stranger, why: str) -> NoReturn:
        stranger.connection.send({"refused": why})
        raise WireError(why)

    def _refusal(self, hello: dict[str, Any], taken: Container[int]) -> str:
        """Why the process that says this does not belong here, empty if it does."""
        mine = self._worker
        for field in ("job", "namespace", "run", "world_size"):
            if hello[field] != getattr(mine, field):
                return f"this is {field} {getattr(mine, field)!r}, not {hello[field]!r}"
        rank = int(hello["rank"])
        if not 0 < rank < mine.world_size:
            return f"there is no member of rank {rank} in a gang of {mine.world_size}"
        if rank in taken:
            return f"rank {rank} is here already"
        return ""
