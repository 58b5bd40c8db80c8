"""`--watch`: how often an answer is asked for again."""

import pytest

from synergy_cli.live import watching


@pytest.mark.parametrize(("takes", "pauses"), [(0.0, 2.0), (0.1, 2.0), (3.0, 15.0)])
def test_who_watches_takes_a_part_of_the_api_server_only(
    monkeypatch: pytest.MonkeyPatch, takes: float, pauses: float
) -> None:
    now, slept = 0.0, list[float]()

    def write() -> None:
        nonlocal now
        now += takes
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "monotonic", lambda: now)
    monkeypatch.setattr(watching.time, "sleep", slept.append)
    watching.repeated(True, write)
    assert slept == pytest.approx([pauses, pauses])


def test_without_watch_it_is_asked_once() -> None:
    asked: list[None] = []
    watching.repeated(False, lambda: asked.append(None))
    assert len(asked) == 1
