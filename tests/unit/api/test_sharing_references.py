"""A reference job shares, and names the model that it stands for."""

import pytest
from pydantic import ValidationError

from synergy_api.parts.sharing import Sharing

USAGE = {"gpuType": "V100", "compute": 0.4, "bandwidth": 0.2, "memory": "2Gi"}


@pytest.mark.parametrize(
    ("spec", "valid"),
    [
        ({"allowed": True, "reference": True, "usage": [{**USAGE, "model": "Net"}]}, True),
        ({"allowed": True, "reference": True, "usage": [USAGE]}, False),
        ({"allowed": True, "reference": True}, False),
        ({"reference": True, "usage": [{**USAGE, "model": "Net"}]}, False),
        ({"allowed": True, "usage": [USAGE]}, True),
    ],
)
def test_a_reference_shares_and_names_its_model(spec: dict[str, object], valid: bool) -> None:
    if valid:
        assert Sharing.model_validate(spec).allowed
    else:
        with pytest.raises(ValidationError, match="a reference needs allowed, and a usage that names its model"):
            Sharing.model_validate(spec)
