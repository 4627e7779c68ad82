"""News for open pages: server-sent events that say that the list of runs changed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from collector.domain.errors import StorageError
from dashboard.store import RunStore

LOOK_SECONDS: Final = 2.0
"""Between two looks; all open pages share one."""
LIFE_SECONDS: Final = 60.0
"""After so long a stream ends and the browser opens the next, so that the service can stop at any time."""

router = APIRouter(prefix="/api/v1")


class _Stream(StreamingResponse):
    media_type = "text/event-stream"


class News:
    """What the list of runs is like now, asked at most once in :data:`LOOK_SECONDS`."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._looked_at = 0.0
        self._state = ""

    async def state(self) -> str:
        """The state of the list; that of before while the database does not answer."""
        async with self._lock:
            if time.monotonic() - self._looked_at >= LOOK_SECONDS:
                with contextlib.suppress(StorageError):  # every page that is asked for tells it
                    self._state = await asyncio.to_thread(self._store.list_state)
                self._looked_at = time.monotonic()
            return self._state


@router.get(
    "/events",
    summary="Server-sent events: `runs` whenever the list of runs changed",
    response_class=_Stream,
    responses={200: {"description": "A stream that ends after a minute; `data` is the state of the list.",
                     "content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)  # fmt: skip
async def events(request: Request) -> StreamingResponse:
    """The state as it is now comes first; browsers open the stream again when it ends."""
    news: News = request.app.state.news
    return _Stream(_told(news), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def _told(news: News) -> AsyncIterator[str]:
    began, told = time.monotonic(), None
    yield "retry: 2000\n\n"
    while time.monotonic() - began < LIFE_SECONDS:
        state: Any = await news.state()
        if state != told:
            told = state
            yield f"event: runs\ndata: {state}\n\n"
        await asyncio.sleep(LOOK_SECONDS)
