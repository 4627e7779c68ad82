"""Who may write, and where the service may listen."""

from __future__ import annotations

import hmac
import ipaddress
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request

from collector.domain.errors import RefusedError
from dashboard.api.errors import TokenMissingError

_FROM_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})


def refuse_open_bind(host: str, token: str | None) -> None:
    """Listening where others can reach it needs a token.

    Raises:
        RefusedError: ``host`` is not a loopback address and no token is set.
    """
    if token or is_loopback(host):
        return
    raise RefusedError(
        f"refusing to listen on {host or 'every address'} without a token",
        why="anybody who reaches the port could write",
        where="--host",
        hint="set DRAFTSCOPE_TOKEN, or listen on 127.0.0.1",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token(request: Request) -> None:
    """A dependency for every endpoint that writes.

    With a token set the request must carry it. Without one, which is only possible on loopback,
    a browser must not have been sent here by a page of another site.

    Raises:
        TokenMissingError: a token is set, and the request has none or another.
        RefusedError: another site's page caused the request.
    """
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    check_token(request, given if scheme.lower() == "bearer" else "")


def check_token(request: Request, given: str) -> None:
    """The same for a token that came with a form.

    Raises:
        TokenMissingError: a token is set, and this is none or another.
        RefusedError: another site's page caused the request.
    """
    token: str | None = request.app.state.token
    if token:
        if not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise TokenMissingError(
                "this needs the token",
                why="the request has none" if not given else "the request has another one",
                hint="send the header Authorization: Bearer TOKEN, or fill in the form's token",
            )
        return
    origin = request.headers.get("origin")
    elsewhere = origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
    if elsewhere or request.headers.get("sec-fetch-site") in _FROM_ELSEWHERE:
        raise RefusedError(
            "a page of another site may not write here",
            why="no token is set, so only this machine's own pages and programs may",
            hint="open the dashboard itself, or set DRAFTSCOPE_TOKEN",
        )
