"""Reads the options of GPU sharing."""

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from synergy_cli.errors import BadInputError
from synergy_cli.files import read_input
from synergy_core.colocation.predictors.model_format import parse_model
from synergy_core.model.config import THESIS_MODES, ColocationMode
from synergy_core.model.measurement import Predictor
from synergy_core.model.names import not_there
from synergy_core.model.snapshot_format import SnapshotError

MODES: tuple[str, ...] = get_args(ColocationMode)


def mode_of(name: str) -> ColocationMode:
    """Check the mode; raises BadInputError that names the option."""
    if name not in MODES:
        raise BadInputError(f"--colocation: {not_there(name, MODES)}")
    return cast(ColocationMode, name)


def predictors_of(files: Sequence[str], mode: ColocationMode) -> Mapping[str, Predictor]:
    """The fitted models by GPU type: of the thesis' mode its own. Raises BadInputError that names file and field."""
    found: dict[str, Predictor] = {}
    for name in files:
        try:
            model = parse_model(read_input(name, "--colocation-model"))
        except SnapshotError as error:
            raise BadInputError(f"--colocation-model: {name}: {error}") from error
        if not model.gpu_type:
            raise BadInputError(f"--colocation-model: {name}: gpu_type: is empty; fit it with --gpu-type")
        if model.gpu_type in found:
            raise BadInputError(f"--colocation-model: {name}: gpu_type: {model.gpu_type} has a model already")
        found[model.gpu_type] = model.predictor(sums=mode in THESIS_MODES)
    return found
