"""Fitted predictors as JSON text: one file for a GPU type, with MPS or without."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from synergy_core.colocation.predictors.effects import Effects
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.features import LOAD, RANDOM
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.predictors.sums import LinearSums
from synergy_core.model.measurement import Predictor
from synergy_core.model.snapshot import FieldError
from synergy_core.model.snapshot_format import SnapshotError, one_line

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_DIGITS = 7


@dataclass(frozen=True, kw_only=True)
class SharingModel:
    """What was fitted to the measurements of one GPU type."""

    gpu_type: str
    """Empty: not told."""
    mps: bool
    """Whether the jobs shared the GPU under MPS; without, they took turns."""
    measurements: int
    sums: LinearSums
    effects: Effects
    references: References | None = None
    """Models that were measured together, from which predictions are made (`predictors.estimator`)."""

    def predictor(self, *, sums: bool) -> Predictor:
        """What it predicts with: the sums if asked for, else the estimator where there are references, else effects.

        It is the same object each time: by that a plan knows that predictions are those of the last one.
        """
        return self.sums if sums else self._by_models

    @cached_property
    def _by_models(self) -> Predictor:
        return self.effects if self.references is None else Estimator(self.references)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effects:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    names: tuple[tuple[str, str], ...]
    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    """The lower triangle, a row for each name."""
    variances: dict[str, Annotated[float, Field(gt=0)]]

    def __post_init__(self) -> None:
        for index, (kind, _) in enumerate(self.names):
            if kind not in (*LOAD, *RANDOM):
                raise FieldError(f"names[{index}][0]", f"{kind!r} is no kind of weight; fit the model anew")
        if len(self.mean) != len(self.names):
            raise FieldError("mean", f"has {len(self.mean)} numbers for {len(self.names)} names; fit the model anew")
        if [len(row) for row in self.covariance] != list(range(1, len(self.names) + 1)):
            problem = "is not the lower triangle with a row for each name; fit the model anew"
            raise FieldError("covariance", problem)
        for kind in (*RANDOM, "job", "together"):
            if kind not in self.variances:
                raise FieldError(f"variances.{kind}", "missing; fit the model anew")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    base: float
    compute: float
    bandwidth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    kept: tuple[tuple[Annotated[float, Field(ge=0, le=1)] | None, ...], ...]

    def __post_init__(self) -> None:
        if len(set(self.models)) < len(self.models):
            raise FieldError("models", "names one twice; fit the model anew")
        if [len(row) for row in self.kept] != [len(self.models)] * len(self.models):
            raise FieldError("kept", "has not a row and a column for each model; fit the model anew")
        if all(one is None for row in self.kept for one in row):
            raise FieldError("kept", "has no pair; fit the model anew")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    format: Literal[1]
    gpu_type: str
    mps: bool
    measurements: int
    sums: _Sums
    effects: _Effects
    references: _References | None = None
    counters: bool = False


_MODEL = TypeAdapter(_Model)


def model_text(model: SharingModel) -> str:
    """The JSON form."""
    effects, sums = model.effects, model.sums
    document: dict[str, Any] = {
        "format": 1,
        "gpu_type": model.gpu_type,
        "mps": model.mps,
        "measurements": model.measurements,
        "sums": {"base": sums.base, "compute": sums.compute, "bandwidth": sums.bandwidth},
        "effects": {
            "names": [list(name) for name in effects.names],
            "mean": _rounded(effects.mean.tolist()),
            "covariance": [_rounded(row[: index + 1]) for index, row in enumerate(effects.covariance.tolist())],
            "variances": dict(effects.variances),
        },
    }
    if model.sums.counters:
        document["counters"] = True
    if model.references is not None:
        kept = [[None if np.isnan(one) else one for one in _rounded(row)] for row in model.references.kept.tolist()]
        document["references"] = {"models": list(model.references.models), "kept": kept}
    return json.dumps(document)


def parse_model(text: str | bytes) -> SharingModel:
    """A model from its JSON form; raises SnapshotError naming the first bad field."""
    try:
        read = _MODEL.validate_json(text)
    except ValidationError as error:
        raise SnapshotError(one_line(error.errors()[0], whole="model")) from None
    return SharingModel(
        gpu_type=read.gpu_type,
        mps=read.mps,
        measurements=read.measurements,
        sums=LinearSums(read.sums.base, read.sums.compute, read.sums.bandwidth, read.counters),
        effects=Effects(
            names=read.effects.names,
            mean=np.array(read.effects.mean),
            covariance=_square(read.effects.covariance),
            variances=read.effects.variances,
            counters=read.counters,
        ),
        references=None if read.references is None else _as_array(read.references),
    )


def _as_array(read: _References) -> References:
    kept = [[np.nan if one is None else one for one in row] for row in read.kept]
    return References(read.models, np.array(kept, dtype=float))


def _rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def _square(rows: tuple[tuple[float, ...], ...]) -> np.typing.NDArray[np.float64]:
    lower = np.zeros((len(rows), len(rows)))
    for index, row in enumerate(rows):
        lower[index, : index + 1] = row
    return lower + np.tril(lower, -1).T
