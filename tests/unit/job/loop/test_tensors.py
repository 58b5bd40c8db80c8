"""What a script says of its model's tensors."""

import logging
from typing import Any

import pytest

import synergy_job
from synergy_extender.leases.reports import Report
from synergy_job import TensorSizes, tensor_sizes
from synergy_job.loop import tensors


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
    assert sizes == TensorSizes(400, 450)


def test_a_list_of_bytes_will_do() -> None:
    sizes = tensor_sizes([392_000_000, 5, 7])
    assert sizes == TensorSizes(392_000_000, 392_000_012)


@pytest.mark.parametrize("model", [3, "model", b"x", [1, 0], [1.5], [True], None, {5: 1}, {5}])
def test_what_is_no_model_is_refused_with_what_to_give(model: object) -> None:
    with pytest.raises(ValueError, match="give a PyTorch module, or a list of the bytes of each tensor"):
        tensor_sizes(model)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="model has no tensor"):
        tensor_sizes([])


class Lazy(Parameter):
    """Not initialized yet: PyTorch's raises on every question."""

    def numel(self) -> int:
        raise ValueError("Attempted to use an uninitialized parameter")


def test_empty_parameters_are_left_out() -> None:
    assert tensor_sizes(Module(Parameter(0), Parameter(3), Parameter(0))) == TensorSizes(12, 12)


@pytest.mark.parametrize(
    "module",
    [Module(), Module(Parameter(0), Parameter(0)), Module(Parameter(9, trained=False)), Module(Parameter(9), Lazy(1))],
    ids=["no parameters", "placeholders", "frozen", "lazy"],
)
def test_a_module_that_does_not_tell_its_sizes_trains_all_the_same(
    module: Module, caplog: pytest.LogCaptureFixture
) -> None:
    tensors._warn_of_no_sizes.cache_clear()
    with caplog.at_level(logging.WARNING, "synergy_job"):
        for _ in range(2):
            assert tensor_sizes(module) is None
            assert list(synergy_job.iterate([1, 2], model=module)) == [1, 2]
    (said,) = caplog.messages
    assert "list of the bytes of each trained tensor" in said


@pytest.mark.parametrize("sizes", [[2**51], [2**50, 2**50], [1, 2**90], [2**48] * 16, [1] * 3])
def test_no_report_is_refused_for_its_sizes(sizes: list[int]) -> None:
    found = tensor_sizes(sizes)
    assert found is not None
    Report(step=1, largest_tensor_bytes=found.largest_bytes, model_bytes=found.model_bytes)
    assert found.largest_bytes / found.model_bytes == pytest.approx(max(sizes) / sum(sizes)), "the skew is kept"


def test_iterate_refuses_it_before_anything_begins() -> None:
    with pytest.raises(ValueError, match="model is int"):
        synergy_job.iterate([1, 2], model=3)
