"""Paths of the API server."""

import pytest

from synergy_kube.errors import ApiError, Conflict, Gone, NotFound, error_of
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS


def test_paths_of_core_and_grouped_resources() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("team") == "/api/v1/namespaces/team/pods"
    assert PODS.path("team", "p", "binding") == "/api/v1/namespaces/team/pods/p/binding"
    assert NODES.path(None, "n") == "/api/v1/nodes/n"
    assert TRAINING_JOBS.path("team", "j", "status") == (
        "/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs/j/status"
    )


def test_one_namespaced_object_needs_its_namespace() -> None:
    with pytest.raises(ValueError, match="Pod p needs a namespace"):
        PODS.path(None, "p")


@pytest.mark.parametrize(("code", "want"), [(404, NotFound), (409, Conflict), (410, Gone), (422, ApiError)])
def test_errors_carry_the_servers_words(code: int, want: type[ApiError]) -> None:
    error = error_of(code, {"reason": "Invalid", "message": "spec.gpus: must be positive"})
    assert type(error) is want
    assert (error.code, error.reason, error.message) == (code, "Invalid", "spec.gpus: must be positive")


def test_an_answer_that_is_no_status_object_is_still_told() -> None:
    assert error_of(502, "bad gateway").message == "bad gateway"
