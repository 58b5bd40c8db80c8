"""The state file: everything a devcluster has started or changed, written before it matters.

``down`` works from this file alone: it ends and removes exactly what ``up`` started and made. Each reader reads it anew
and each writer changes it under a lock. Several processes may thus work on one cluster's components.
"""

import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.options import Options
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.processes import ProcessId

FORMAT = 1
Phase = Literal["starting", "running", "stopping"]


@dataclass
class ComponentRecord:
    """One long-running program: how it is started, where it logs, and its process when it was started."""

    argv: list[str]
    log: str
    process: ProcessId | None = None


@dataclass
class State:
    """One devcluster on this machine. ``holders`` are the processes that hold the real nodes' mount namespaces open."""

    options: Options
    programs: dict[str, str]
    boot_id: str
    instance: str = field(default_factory=lambda: uuid.uuid4().hex)
    phase: Phase = "starting"
    holders: dict[str, ProcessId] = field(default_factory=dict)
    components: dict[str, ComponentRecord] = field(default_factory=dict)
    sysctls: dict[str, str] = field(default_factory=dict)
    made_folders: list[str] = field(default_factory=list)
    firewall: str = ""

    def this_boot(self) -> bool:
        """Say whether the recorded processes can still exist: they cannot after a restart of the machine."""
        return self.boot_id == boot_id()

    def usable(self) -> bool:
        """Say whether the cluster came up completely and its nodes' mount namespaces still exist."""
        whole = self.phase == "running" and self.this_boot() and bool(self.holders)
        return whole and all(holder.alive() for holder in self.holders.values())

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"format": FORMAT, **asdict(self), "options": self.options.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "State":
        """Read what :meth:`to_json` wrote."""
        options = Options.from_json(value.pop("options"))
        holders = {name: ProcessId(**holder) for name, holder in value.pop("holders").items()}
        components = {
            name: ComponentRecord(record["argv"], record["log"], _process(record["process"]))
            for name, record in value.pop("components").items()
        }
        return cls(options=options, holders=holders, components=components, **value)


@dataclass(frozen=True)
class StateFile:
    """The file, and the lock under which it is changed."""

    path: Path
    lock: Path

    @classmethod
    def of(cls, paths: Paths) -> "StateFile":
        """Return the state file of one devcluster."""
        return cls(paths.state_file, paths.state_lock)

    def load(self) -> State | None:
        """Read the state; None when there is no devcluster.

        Raises:
            DevclusterError: the file is not readable, not one of ours, or was written by another version.
        """
        try:
            value: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            if value.pop("format") != FORMAT:
                raise DevclusterError(
                    f"{self.path} was written by another version: run that version's 'devcluster down'"
                )
            return State.from_json(value)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise DevclusterError(f"{self.path} is not readable: run as root") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DevclusterError(f"{self.path} is not a devcluster state file ({error}): move it away") from error

    def save(self, state: State) -> None:
        """Write the file in one step: a reader never sees half of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self.path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            json.dump(state.to_json(), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    @contextmanager
    def change(self) -> Iterator[State]:
        """Read the state, let the caller change it, and write it, all under the lock.

        What the caller changed is written even when it raises: a process may have been started already.

        Raises:
            DevclusterError: there is no devcluster.
        """
        with self.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.load()
            if state is None:
                raise DevclusterError("no devcluster is here: start one with 'kube-synergy devcluster up'")
            try:
                yield state
            finally:
                self.save(state)


def _process(value: dict[str, int] | None) -> ProcessId | None:
    return ProcessId(**value) if value else None


def boot_id() -> str:
    """Return the identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
