"""How a model's bytes are spread over its tensors: what the plan's placement goes by (Tiresias, section 3.3)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

log = logging.getLogger("synergy_job")

MOST_BYTES = 1 << 50
"""The largest model that a report may speak of."""


@dataclass(frozen=True)
class TensorSizes:
    """Bytes of the largest trained tensor, and of all of them: 1 to 2^50 each."""

    largest_bytes: int
    model_bytes: int


def tensor_sizes(model: Any) -> TensorSizes | None:
    """Sizes of a PyTorch module's parameters, or of the tensors whose bytes are listed.

    A module is known by its `parameters()`; each of them has `numel()` and `element_size()`. Parameters that are not
    trained (`requires_grad` false) are not sent and do not count. Empty ones do not count either: they are placeholders
    for parameters that are kept elsewhere (DeepSpeed's ZeRO-3). None, with one warning in the log, for a module of
    which nothing is left: sizes are a hint for placement, and no reason not to train. Sizes above 2^50 bytes are scaled
    down, their ratio is kept. Raises ValueError for anything but a module or a list of whole numbers above 0.
    """
    if not callable(getattr(model, "parameters", None)):
        return _bounded(_of_list(model))
    sizes = _of_module(model)
    if not sizes:
        _warn_of_no_sizes()
        return None
    return _bounded(sizes)


def _bounded(sizes: list[int]) -> TensorSizes:
    largest, total = max(sizes), sum(sizes)
    if total > MOST_BYTES:
        return TensorSizes(max(1, largest * MOST_BYTES // total), MOST_BYTES)
    return TensorSizes(largest, total)


def _of_module(model: Any) -> list[int]:
    try:
        trained = [one for one in model.parameters() if getattr(one, "requires_grad", True)]
        sizes = [int(one.numel()) * int(one.element_size()) for one in trained]
    except Exception:  # lazy parameters, or another framework's: whatever they raise, training goes on
        log.debug("the sizes of the model's parameters cannot be read", exc_info=True)
        return []
    return [size for size in sizes if size > 0]


@lru_cache(maxsize=1)
def _warn_of_no_sizes() -> None:
    log.warning(
        "model has no trained parameter of known size, so its placement goes by what most models need; to change that "
        "give iterate(model=...) a list of the bytes of each trained tensor"
    )


def _of_list(model: Any) -> list[int]:
    wrong = f"model is {type(model).__name__}: give a PyTorch module, or a list of the bytes of each tensor"
    if not isinstance(model, Iterable) or isinstance(model, (str, bytes, Mapping, Set)):
        raise ValueError(wrong)
    sizes = list(model)
    if any(isinstance(size, bool) or not isinstance(size, int) or size <= 0 for size in sizes):
        raise ValueError(f"{wrong}, whole numbers above 0")
    if not sizes:
        raise ValueError("model has no tensor: give a PyTorch module with parameters, or the bytes of each tensor")
    return sizes
