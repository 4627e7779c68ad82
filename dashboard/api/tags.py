"""ETags: an answer that the client has already is not sent again."""

from __future__ import annotations

import hashlib
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TAGGED: Final = ("/api/v1/", "/openapi.json")
_STREAMS: Final = "/api/v1/events"


class Tags:
    """Gives answers of the API a digest of their content as ETag, and answers 304 where the client names it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "GET" or not path.startswith(TAGGED) or path == _STREAMS:
            await self.app(scope, receive, send)
            return
        known = {tag.strip().removeprefix("W/") for tag in Headers(scope=scope).get("if-none-match", "").split(",")}
        start: Message = {}
        body = b""

        async def send_tagged(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if message.get("more_body", False):
                return
            if start["status"] == 200:
                tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
                MutableHeaders(scope=start)["ETag"] = tag
                if tag in known:
                    headers = MutableHeaders(raw=list(start["headers"]))
                    for name in ("content-length", "content-type"):
                        del headers[name]
                    start = {**start, "status": 304, "headers": headers.raw}
                    body = b""
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, send_tagged)
