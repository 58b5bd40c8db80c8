"""The state file: everything a devcluster has started or changed, written before it matters.

``down`` works from this file alone, so that it ends and removes exactly what ``up`` started and made.
"""

import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.options import Options
from synergy_devcluster.processes import ProcessId

FORMAT = 1
Phase = Literal["starting", "running", "stopping"]


@dataclass
class ComponentRecord:
    """One long-running program: how it is started, where it logs, and its process when it runs."""

    argv: list[str]
    log: str
    process: ProcessId | None = None


@dataclass
class State:
    """One devcluster on this machine."""

    options: Options
    programs: dict[str, str]
    boot_id: str
    instance: str = field(default_factory=lambda: uuid.uuid4().hex)
    phase: Phase = "starting"
    components: dict[str, ComponentRecord] = field(default_factory=dict)
    sysctls: dict[str, str] = field(default_factory=dict)
    made_folders: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the file in one step, so that a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(self), "options": self.options.to_json()}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def this_boot(self) -> bool:
        """Say whether the recorded processes can still exist: they cannot after a restart of the machine."""
        return self.boot_id == boot_id()


def load(path: Path) -> State | None:
    """Read the state file; None when there is none.

    Raises:
        DevclusterError: the file is not one of ours, or was written by another version.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if value.pop("format") != FORMAT:
            raise DevclusterError(f"{path} was written by another version: run that version's 'devcluster down'")
        options = Options.from_json({**value.pop("options"), "bin_dir": None})
        components = {name: _component(record) for name, record in value.pop("components").items()}
        return State(options=options, components=components, **value)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DevclusterError(f"{path} is not a devcluster state file ({error}): move it away") from error


def _component(value: dict[str, Any]) -> ComponentRecord:
    process = value["process"]
    return ComponentRecord(value["argv"], value["log"], ProcessId(**process) if process else None)


def boot_id() -> str:
    """Return the identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
