"""Refusals of the API, and how they are answered."""

import json
import logging
from collections.abc import Mapping
from typing import Final

import aiohttp
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from synergy_kube import ApiError

_LOG = logging.getLogger(__name__)
CALL_FAILED: Final = (ApiError, aiohttp.ClientError, TimeoutError, OSError)
"""The ways in which calls of the API server fail."""


class Refusal(HTTPException):
    """An error answer with its text."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, text, dict(headers or {}))


def explain(error: BaseException) -> str:
    """The error's message. A timeout has none, so it gets one here."""
    return str(error) or type(error).__name__


def answer_problems(app: FastAPI) -> None:
    """Let every error of the application be `{"error": "..."}`."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(SQLAlchemyError, _no_history)
    app.add_exception_handler(Exception, _failed)


def problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error answer."""
    return Response(json.dumps({"error": text}), status, dict(headers or {}), media_type="application/json")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), error.headers)


async def _not_valid(_: Request, error: Exception) -> Response:
    """The first wrong field. FastAPI's own answer repeats the input, which need not be valid JSON."""
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": str(error)}
    path = ".".join(str(part) for part in first["loc"])
    return problem(422, f"{path}: {first['msg']}")


async def _no_history(_: Request, error: Exception) -> Response:
    _LOG.warning("the history cannot be read: %s", error)
    return problem(503, "the history cannot be read now: its database does not answer")


async def _failed(_: Request, error: Exception) -> Response:
    return problem(500, "the request failed; the log of the dashboard says why")
