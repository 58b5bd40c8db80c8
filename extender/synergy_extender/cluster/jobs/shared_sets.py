"""Less memory for models that are kept by the thousand."""

from functools import lru_cache
from typing import Final

from synergy_api.base import ApiModel

_MOST_KNOWN: Final = 4096


def share_field_sets(model: ApiModel) -> None:
    """Let models that were given the same fields have one set of these fields' names: the model, and those in it.

    Otherwise each has a set of its own, which is a third of a job's view. Copies of models get sets of their own.
    """
    names = model.__pydantic_fields_set__
    object.__setattr__(model, "__pydantic_fields_set__", _shared(frozenset(names)))
    for value in model.__dict__.values():
        if isinstance(value, ApiModel):
            share_field_sets(value)
        elif isinstance(value, list) and value and isinstance(value[0], ApiModel):
            for one in value:
                share_field_sets(one)


@lru_cache(maxsize=_MOST_KNOWN)
def _shared(names: frozenset[str]) -> set[str]:
    return set(names)
