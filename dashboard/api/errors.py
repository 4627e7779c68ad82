"""Errors over HTTP: one shape, an honest status, and the same four parts on pages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from collector.domain.errors import (
    DraftscopeError,
    ImpossibleFigure,
    InputError,
    RefusedError,
    SourceError,
    StorageError,
    UnknownName,
)
from dashboard.pages.templating import render

JSON_PATHS: Final = ("/api/", "/healthz", "/openapi.json", "/metrics")
"""Addresses whose errors are JSON; all others answer people."""

_STATUS: Final[tuple[tuple[type[DraftscopeError], int], ...]] = (
    (UnknownName, 404),
    (InputError, 400),
    (ImpossibleFigure, 400),
    (RefusedError, 403),
    (SourceError, 502),
    (StorageError, 503),
)


class TokenMissingError(RefusedError):
    """A writing request without the token, or with a wrong one."""


class ErrorParts(BaseModel):
    """What happened, why if known, where, and what to try; "" where a part is not known."""

    what: str = Field(examples=["no run has the id '17'"])
    why: str = ""
    where: str = Field(default="", examples=["/api/v1/runs/17/diagnosis"])
    hint: str = Field(default="", serialization_alias="try", examples=["GET /api/v1/runs lists them"])


class ErrorDocument(BaseModel):
    """The shape of every error."""

    error: ErrorParts


def status_of(error: DraftscopeError) -> int:
    """The HTTP status of one of our errors."""
    if isinstance(error, TokenMissingError):
        return 401
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_response(path: str, status: int, parts: ErrorParts) -> Response:
    """An error as JSON for programs, as a page for people."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    if path.startswith(JSON_PATHS):
        return JSONResponse(ErrorDocument(error=parts).model_dump(by_alias=True), status, headers)
    shown = {"status": f"{status} {HTTPStatus(status).phrase}", **parts.model_dump(by_alias=False)}
    shown["what"] = parts.what[:1].upper() + parts.what[1:]
    return HTMLResponse(render("error.html", shown), status, headers)


def install(app: FastAPI) -> None:
    """Answer every known kind of error in our shape."""

    @app.exception_handler(DraftscopeError)
    def ours(request: Request, error: DraftscopeError) -> Response:
        parts = ErrorParts(what=error.what, why=error.why, where=error.where or request.url.path, hint=error.hint)
        return error_response(request.url.path, status_of(error), parts)

    @app.exception_handler(HTTPException)
    def of_the_protocol(request: Request, error: HTTPException) -> Response:
        what, hint = _PROTOCOL.get(error.status_code, (str(error.detail), ""))
        response = error_response(
            request.url.path, error.status_code, ErrorParts(what=what, where=request.url.path, hint=hint)
        )
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        parts = ErrorParts(
            what=f"{place} is not valid",
            why=first["msg"],
            where=f"{request.url.path}, {first['loc'][0]} {place}",
            hint="/openapi.json says what is accepted",
        )
        return error_response(request.url.path, 422, parts)


_PROTOCOL: Final = {
    404: ("There is nothing at this address", "all runs are at /, the API is described at /openapi.json"),
    413: ("The request is too large", "the command line reads files of any size"),
    405: ("This address does not take that method", "/openapi.json says which it takes"),
}
