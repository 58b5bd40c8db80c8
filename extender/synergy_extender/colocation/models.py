"""Predictors that were fitted to measurements of this cluster's GPU types: files that `kube-synergy colocation fit`
has written."""

from collections.abc import Mapping
from pathlib import Path

from synergy_core.colocation.predictors.model_format import SharingModel, parse_model
from synergy_core.model.config import THESIS_MODES, ColocationMode
from synergy_core.model.measurement import Predictor
from synergy_core.model.snapshot_format import SnapshotError

FOLDER_VARIABLE = "SYNERGY_SHARING_MODELS"


def read_models(folder: str) -> dict[str, SharingModel]:
    """The models of the folder's `.json` files by GPU type; none without a folder.

    Raises ValueError, which names the file, for one that is no model of a GPU type under MPS, or the second of a type.
    """
    found: dict[str, SharingModel] = {}
    if folder and not Path(folder).is_dir():
        raise ValueError(f"{folder} is no folder")
    for path in sorted(Path(folder).glob("*.json")) if folder else ():
        try:
            model = parse_model(path.read_bytes())
        except (OSError, SnapshotError) as error:
            raise ValueError(f"{path}: {error}") from None
        if not model.gpu_type:
            raise ValueError(f"{path} names no GPU type; fit it with --gpu-type")
        if not model.mps:
            raise ValueError(f"{path} is of jobs that took turns; clusters share GPUs under MPS")
        if model.gpu_type in found:
            raise ValueError(f"{path} is the second model of GPU type {model.gpu_type}; keep one")
        found[model.gpu_type] = model
    return found


def predictors(models: Mapping[str, SharingModel], mode: ColocationMode) -> dict[str, Predictor]:
    """What each of them predicts with in this mode."""
    return {name: model.predictor(sums=mode in THESIS_MODES) for name, model in models.items()}
