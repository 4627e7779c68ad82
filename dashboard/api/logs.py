"""Logs that senders bring: Vector, Fluent Bit, or any program that posts lines."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from collector.domain.errors import RefusedError
from collector.pushed_logs import PushedLogs
from dashboard.api.bodies import content_of
from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token

_DEPLOYMENT: Final = "deployment"

_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": ErrorDocument, "description": "The body is broken, or a document of it has no line."},
    401: {"model": ErrorDocument, "description": "The token is missing or another one."},
    403: {"model": ErrorDocument, "description": "Another site's page sent the request."},
    413: {"model": ErrorDocument, "description": "The body is too large."},
    415: {"model": ErrorDocument, "description": "The body is packed or written in a way that is not read."},
    422: {"model": ErrorDocument, "description": "A header is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
    503: {"model": ErrorDocument, "description": "The lines cannot be kept now; send them again."},
}

router = APIRouter(prefix="/api/v1")


class TakenLines(BaseModel):
    """Lines that were new, lines that had come before, and the names of their logs."""

    lines: int
    repeated: int
    logs: tuple[str, ...]


@router.post(
    "/logs",
    summary="Take lines of engines' logs",
    responses=_ANSWERS,
    dependencies=[Depends(require_token)],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {} for kind in ("text/plain", "application/json", "application/x-ndjson")},
        }
    },
)
async def take_logs(
    request: Request,
    content_encoding: Annotated[str, Header()] = "",
    idempotency_key: Annotated[str, Header(max_length=200)] = "",
) -> TakenLines:
    """Lines of text, JSON documents with a line each (``message`` or ``log``), or an array of them.

    Query parameters are labels of the runs and tell logs apart, beside host, file, pod and container of the
    documents; ``deployment`` names the deployment. A body that is sent again adds nothing.
    """
    pushed: PushedLogs | None = request.app.state.pushed
    if pushed is None:
        raise RefusedError("this service takes no logs", hint="send them to draftscope serve")
    if "msgpack" in request.headers.get("content-type", ""):
        raise HTTPException(415, "MessagePack is not read: set the sender's format to JSON lines")
    body = await content_of(request, content_encoding)
    labels = dict(request.query_params)
    deployment = labels.pop(_DEPLOYMENT, None)
    taken = await run_in_threadpool(pushed.add, body, labels, deployment=deployment, key=idempotency_key)
    return TakenLines(lines=taken.lines, repeated=taken.repeated, logs=taken.logs)
