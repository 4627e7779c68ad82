"""Logs that senders bring: Vector, Fluent Bit, or any program that posts lines."""

from __future__ import annotations

import zlib
from typing import Annotated, Any, Final

import zstandard
from fastapi import APIRouter, Depends, Header, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from collector.domain.errors import MalformedInput, RefusedError
from collector.pushed_logs import PushedLogs
from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token

LARGEST_BODY: Final = 16 << 20
"""Bytes of one request as it is sent."""
LARGEST_CONTENT: Final = 64 << 20
"""Bytes of one request, unpacked."""
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
    body = _unpacked(await _body(request), content_encoding.strip().lower())
    labels = dict(request.query_params)
    deployment = labels.pop(_DEPLOYMENT, None)
    taken = await run_in_threadpool(pushed.add, body, labels, deployment=deployment, key=idempotency_key)
    return TakenLines(lines=taken.lines, repeated=taken.repeated, logs=taken.logs)


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise HTTPException(413)
        parts.append(part)
    return b"".join(parts)


def _unpacked(body: bytes, encoding: str) -> bytes:
    """The body without its compression.

    Raises:
        MalformedInput: it is damaged.
        HTTPException: it is too large, or packed otherwise.
    """
    try:
        if encoding in ("gzip", "deflate"):
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
            content = unpacker.decompress(body, LARGEST_CONTENT + 1)
            cut = not unpacker.eof and len(content) <= LARGEST_CONTENT
        elif encoding == "zstd":
            with zstandard.ZstdDecompressor().stream_reader(body) as reader:
                content = reader.read(LARGEST_CONTENT + 1)
            cut = False
        elif encoding in ("", "identity"):
            content, cut = body, False
        else:
            raise HTTPException(415, f"bodies packed with {encoding} are not read: use gzip")
    except (zlib.error, zstandard.ZstdError) as error:
        raise MalformedInput("the packed body is damaged", why=str(error)) from None
    if len(content) > LARGEST_CONTENT:
        raise HTTPException(413)
    if cut:
        raise MalformedInput("the packed body is cut off", hint="send it again")
    return content
