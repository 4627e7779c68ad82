"""Bodies of requests that bring lines: read up to a bound, and unpacked up to another."""

from __future__ import annotations

import zlib
from typing import Final

import zstandard
from fastapi import Request
from starlette.exceptions import HTTPException

from collector.domain.errors import MalformedInput

LARGEST_BODY: Final = 16 << 20
"""Bytes of one request as it is sent."""
LARGEST_CONTENT: Final = 64 << 20
"""Bytes of one request, unpacked."""


async def content_of(request: Request, encoding: str) -> bytes:
    """The body without its compression; ``encoding`` is the header's word for that.

    Raises:
        MalformedInput: it is damaged.
        HTTPException: it is too large, or packed otherwise.
    """
    return _unpacked(await _body(request), encoding.strip().lower())


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
