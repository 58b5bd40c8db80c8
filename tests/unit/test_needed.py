"""A check that CI skips is not a check."""

import pytest

from support import needed


def test_what_a_machine_lacks_skips_a_test_but_fails_it_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs a thing"):
        needed.lacks("needs a thing")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs a thing"):
        needed.lacks("needs a thing")
