"""Ordering policies of researchers' own: a function, `module:function`, or an installed package's entry point."""

import hashlib
import importlib
import inspect
import socket
import sys
from collections import Counter
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, Self

from synergy_core.model.names import not_there
from synergy_core.model.snapshot import FieldError
from synergy_core.policies import POLICIES, Policy, register
from synergy_core.policies.queue import Queue, Ranking

GROUP: Final = "kube_synergy.policies"
"""The group of entry points. An entry point's name is the policy's."""


_SOURCES: Final[dict[str, str]] = {}
"""Of policies that were registered here, as they were then."""


class PolicyError(FieldError):
    """A policy that cannot be used: one line that names it and says what to change."""

    def __init__(self, problem: str) -> None:
        super().__init__("policy", problem)

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.problem,)


def known_policy(policy: str | Policy) -> str:
    """The name under which plans of this process have a policy.

    Args:
        policy: a name of the project's own policies, the name of an entry point, `module:function`, or a function. The
            current folder is searched for modules too.

    Raises:
        PolicyError: there is no such policy, or it cannot be imported.
    """
    if not isinstance(policy, str):
        name = f"{policy.__module__}:{policy.__qualname__}"
        _register(name, policy)
        return name
    if policy not in POLICIES:
        _register(policy, _found(policy))
    return policy


def source_of(name: str) -> str:
    """A digest of the module with a policy, as it was when `known_policy` found it; empty for the project's own."""
    return _SOURCES.get(name, "")


def same_source(name: str, source: str) -> None:
    """Raises PolicyError where the policy is from another file here than where `source_of` said this source."""
    if source_of(name) != source:
        raise PolicyError(
            f"{name!r} is another on {socket.gethostname()}; copy the module there and start its workers anew"
        )


def _register(name: str, policy: Any) -> None:
    register(name, _checked(name, policy))
    _SOURCES[name] = _digest(policy)


def _digest(policy: Any) -> str:
    """Of its file. A function of a notebook has none, and does not leave its process."""
    try:
        return hashlib.sha256(Path(inspect.getsourcefile(policy) or "").read_bytes()).hexdigest()[:24]
    except (OSError, TypeError):
        return "no file"


def _found(name: str) -> Any:
    module, colon, function = name.partition(":")
    if colon:
        return _imported(name, module, function)
    for entry in entry_points(group=GROUP, name=name):
        try:
            return entry.load()
        except (ImportError, AttributeError) as error:
            raise PolicyError(f"{name!r} is an entry point that cannot be loaded: {error}") from error
    names = sorted({*POLICIES, *entry_points(group=GROUP).names})
    raise PolicyError(not_there(name, names))


def _imported(name: str, module: str, function: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return getattr(importlib.import_module(module), function)
    except ImportError as error:
        raise PolicyError(f"{name!r} cannot be imported: {error}; give module:function") from error
    except (AttributeError, ValueError):
        raise PolicyError(f"{name!r}: {module or 'the module'} has no function {function!r}") from None


def _checked(name: str, policy: Callable[[Queue], Ranking]) -> Policy:
    if not callable(policy):
        raise PolicyError(f"{name!r} is no function; give one that takes a Queue and returns a Ranking")

    def rank(queue: Queue) -> Ranking:
        ranking: object = policy(queue)
        if not isinstance(ranking, Ranking):
            problem = f"returned {type(ranking).__name__}; return a Ranking, for example ranked(queue, key)"
            raise PolicyError(f"{name!r} {problem}")
        given, wanted = Counter(ranking.names), Counter(job.name for job in queue.jobs)
        if given != wanted:
            wrong = sorted((given - wanted) | (wanted - given))[0]
            raise PolicyError(f"{name!r} names job {wrong!r} {given[wrong]} times; name each job of the queue once")
        return ranking

    return rank
