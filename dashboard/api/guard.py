"""What stands around every answer: security headers, and a page instead of a traceback."""

from __future__ import annotations

import logging
import secrets
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.api import bodies
from dashboard.api.errors import ErrorParts, error_response
from dashboard.uploading import LARGEST_UPLOAD

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

LARGEST_BODY: Final = 4 << 20
"""Bytes of a request's body; more is refused before it is read whole."""
LARGER: Final = {
    "/upload": LARGEST_UPLOAD,
    "/api/v1/uploads": LARGEST_UPLOAD,
    "/api/v1/logs": bodies.LARGEST_BODY + 1,  # these say themselves what is too much
    "/api/v1/requests": bodies.LARGEST_BODY + 1,
}
"""Where files, logs and request results are taken, bodies are as large as those may be."""

_LOG: Final = logging.getLogger(__name__)


class Guard:
    """The outermost layer: nothing gets out without the headers, no exception without a number."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False
        taken = 0
        largest = LARGER.get(scope.get("path", ""), LARGEST_BODY)

        async def receive_bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > largest:
                raise HTTPException(413)
            return message

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        try:
            await self.app(scope, receive_bounded, send_guarded)
        except Exception:
            number = secrets.token_hex(4)
            _LOG.exception("error %s: %s %s", number, scope["method"], scope["path"])
            if started:
                raise
            parts = ErrorParts(
                what="draftscope failed to answer",
                why="a fault of draftscope; nothing was changed",
                where=f"{scope['path']}, error {number}",
                hint=f"the log of draftscope has the details under {number}",
            )
            await error_response(scope["path"], 500, parts)(scope, receive, send_guarded)
