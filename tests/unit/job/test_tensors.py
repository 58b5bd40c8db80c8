"""What a script says of its model's tensors."""

from typing import Any

import pytest

import synergy_job
from synergy_job import tensor_sizes


class Parameter:
    """As PyTorch's: what the library asks it."""

    def __init__(self, count: int, size: int = 4, *, trained: bool = True) -> None:
        self.requires_grad = trained
        self._count, self._size = count, size

    def numel(self) -> int:
        return self._count

    def element_size(self) -> int:
        return self._size


class Module:
    def __init__(self, *parameters: Parameter) -> None:
        self._parameters = parameters

    def parameters(self) -> Any:
        return iter(self._parameters)


def test_a_module_is_measured_by_its_trained_parameters() -> None:
    sizes = tensor_sizes(Module(Parameter(100), Parameter(25, 2), Parameter(10**6, trained=False)))
    assert (sizes.largest_bytes, sizes.model_bytes) == (400, 450)


def test_a_list_of_bytes_will_do() -> None:
    sizes = tensor_sizes([392_000_000, 5, 7])
    assert (sizes.largest_bytes, sizes.model_bytes) == (392_000_000, 392_000_012)


@pytest.mark.parametrize("model", [3, "model", b"x", [1, 0], [1.5], [True], None])
def test_what_is_no_model_is_refused_with_what_to_give(model: object) -> None:
    with pytest.raises(ValueError, match="give a PyTorch module, or a list of the bytes of each tensor"):
        tensor_sizes(model)


@pytest.mark.parametrize("model", [[], Module()])
def test_a_model_without_tensors_is_refused(model: object) -> None:
    with pytest.raises(ValueError, match="model has no tensor"):
        tensor_sizes(model)


def test_iterate_refuses_it_before_anything_begins() -> None:
    with pytest.raises(ValueError, match="model is int"):
        synergy_job.iterate([1, 2], model=3)
