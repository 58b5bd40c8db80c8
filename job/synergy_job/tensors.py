"""How a model's bytes are spread over its tensors: what the plan's placement goes by (Tiresias, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TensorSizes:
    """Bytes of the largest trained tensor, and of all of them."""

    largest_bytes: int
    model_bytes: int


def tensor_sizes(model: Any) -> TensorSizes:
    """Sizes of a PyTorch module's parameters, or of the tensors whose bytes are listed.

    A module is known by its `parameters()`; each of them has `numel()` and `element_size()`. Those that are not trained
    (`requires_grad` false) are sent to nobody and do not count. Raises ValueError for what is neither, or has nothing.
    """
    sizes = _of_module(model) if callable(getattr(model, "parameters", None)) else _of_list(model)
    if not sizes:
        raise ValueError("model has no tensor: give a PyTorch module with parameters, or the bytes of each tensor")
    return TensorSizes(max(sizes), sum(sizes))


def _of_module(model: Any) -> list[int]:
    trained = (one for one in model.parameters() if getattr(one, "requires_grad", True))
    return [one.numel() * one.element_size() for one in trained]


def _of_list(model: Any) -> list[int]:
    wrong = f"model is {type(model).__name__}: give a PyTorch module, or a list of the bytes of each tensor"
    if not isinstance(model, Iterable) or isinstance(model, (str, bytes)):
        raise ValueError(wrong)
    sizes = list(model)
    if any(isinstance(size, bool) or not isinstance(size, int) or size <= 0 for size in sizes):
        raise ValueError(f"{wrong}, whole numbers above 0")
    return sizes
