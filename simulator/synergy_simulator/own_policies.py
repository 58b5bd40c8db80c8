"""Ordering policies of researchers' own: a function, `module:function`, or an installed package's entry point."""

import importlib
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
        register(name, _checked(name, policy))
        return name
    if policy not in POLICIES:
        register(policy, _checked(policy, _found(policy)))
    return policy


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
