"""What the operator wrote into a worker's environment, read and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_job.checkpoints.fence import DEFAULT_SECONDS

DEFAULT_PEER_PORT = 29499
DEFAULT_TERMINATION_LOG = "/dev/termination-log"


class ConfigError(ValueError):
    """A variable of the worker's environment is missing or wrong; the message names it."""


@dataclass(frozen=True)
class LeaseAccess:
    """Where leases are renewed and with what proof."""

    url: str
    token_file: str
    ca_cert: str


@dataclass(frozen=True)
class Worker:
    """One training process of a TrainingJob's run."""

    job: str
    namespace: str
    run: int
    steps: int | None = None
    epochs: int | None = None
    max_run_seconds: int | None = None
    """One of these three says when the job is done."""
    trained_seconds: int = 0
    """Seconds of training of the job's earlier runs."""
    paused_seconds: int = 0
    """The part of them in which it paused."""
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    master_addr: str = "127.0.0.1"
    peer_port: int = DEFAULT_PEER_PORT
    gang_key_file: str = ""
    lease: LeaseAccess | None = None
    gpu_uuids: tuple[str, ...] = ()
    termination_log: str = DEFAULT_TERMINATION_LOG
    fence_s: float = DEFAULT_SECONDS
    """How long the worker may go on without an answer of the extender."""


@dataclass(frozen=True)
class Profile:
    """One process of a profile run: `socket` is where the harness listens."""

    socket: str
    rank: int = 0


def read_environment(environ: Mapping[str, str]) -> Worker | Profile | None:
    """What this process is: a worker, part of a profile run, or neither (outside a cluster).

    Raises `ConfigError` for a variable that is missing or not what the operator writes.
    """
    socket_name = environ.get("SYNERGY_PROFILE_SOCKET", "")
    if socket_name:
        return Profile(socket=socket_name, rank=read_integer(environ, "RANK", 0))
    if not environ.get("SYNERGY_JOB"):
        return None
    world_size = read_integer(environ, "WORLD_SIZE", 1, least=1)
    rank = read_integer(environ, "RANK", 0)
    if rank >= world_size:
        raise ConfigError(f"RANK is {rank} but WORLD_SIZE is {world_size}: ranks run from 0 to {world_size - 1}")
    return Worker(
        job=environ["SYNERGY_JOB"],
        namespace=_text(environ, "SYNERGY_NAMESPACE"),
        run=read_integer(environ, "SYNERGY_RUN", None),
        **_length(environ),
        trained_seconds=read_integer(environ, "SYNERGY_TRAINED_SECONDS", 0),
        paused_seconds=read_integer(environ, "SYNERGY_PAUSED_SECONDS", 0),
        rank=rank,
        world_size=world_size,
        local_rank=read_integer(environ, "LOCAL_RANK", 0),
        master_addr=_text(environ, "MASTER_ADDR") if rank > 0 else environ.get("MASTER_ADDR", "127.0.0.1"),
        peer_port=read_integer(environ, "SYNERGY_PEER_PORT", DEFAULT_PEER_PORT, least=1, most=65535),
        gang_key_file=environ.get("SYNERGY_GANG_KEY_FILE", ""),
        lease=_lease(environ),
        gpu_uuids=visible_uuids(environ.get("NVIDIA_VISIBLE_DEVICES", "")),
        termination_log=environ.get("SYNERGY_TERMINATION_LOG", DEFAULT_TERMINATION_LOG),
        fence_s=float(read_integer(environ, "SYNERGY_FENCE_SECONDS", int(DEFAULT_SECONDS), least=10)),
    )


def _length(environ: Mapping[str, str]) -> dict[str, int]:
    """When the job is done: the one of the three that is set, else the steps, which must be."""
    for field, name in (("epochs", "SYNERGY_EPOCHS"), ("max_run_seconds", "SYNERGY_MAX_RUN_SECONDS")):
        if environ.get(name):
            return {field: read_integer(environ, name, None, least=1)}
    return {"steps": read_integer(environ, "SYNERGY_STEPS", None, least=1)}


def _lease(environ: Mapping[str, str]) -> LeaseAccess | None:
    url = environ.get("SYNERGY_EXTENDER_URL", "")
    if not url:
        return None
    if not url.startswith("https://"):
        raise ConfigError(f"SYNERGY_EXTENDER_URL is {url!r}: it must begin with https://, the pod's token goes there")
    return LeaseAccess(url, _text(environ, "SYNERGY_TOKEN_FILE"), _text(environ, "SYNERGY_CA_CERT"))


def visible_uuids(visible: str) -> tuple[str, ...]:
    """The UUIDs in NVIDIA_VISIBLE_DEVICES; indices and words such as `all` name no device for others."""
    return tuple(name for name in visible.split(",") if name.startswith(("GPU-", "MIG-")))


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise ConfigError(f"{name} is not set: the operator writes it into every worker of a TrainingJob")
    return value


def read_integer(
    environ: Mapping[str, str], name: str, default: int | None, least: int = 0, most: int | None = None
) -> int:
    """The whole number in a variable. Raises `ConfigError` naming it where it is none, or is missing and has no
    default."""
    if default is not None and not environ.get(name):
        return default
    text = _text(environ, name)
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{name} is {text!r}: it must be a whole number") from None
    if value < least or (most is not None and value > most):
        raise ConfigError(f"{name} is {value}: it must be at least {least}" + (f", at most {most}" if most else ""))
    return value
