"""A mail server on this machine that answers as it is told, and keeps what it got."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP


@dataclass
class MailServer:
    """``answer`` is what follows a mail; ``refused`` are addresses that get 550."""

    answer: str = "250 OK"
    refused: tuple[str, ...] = ()
    silent_seconds: float = 0.0
    hang_up: bool = False
    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)

    async def handle_RCPT(self, _server: SMTP, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.hang_up:
            server.transport.abort()
        await asyncio.sleep(self.silent_seconds)
        if self.answer.startswith("2"):
            self.got.append(message_from_bytes(envelope.content, policy=policy.default))
        return self.answer


@contextmanager
def mail_server(**options: Any) -> Iterator[MailServer]:
    handler = MailServer(**options)
    loop = asyncio.new_event_loop()
    made = loop.create_server(lambda: SMTP(handler, hostname="mail.invalid", loop=loop), "127.0.0.1", 0)
    server = loop.run_until_complete(made)
    handler.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield handler
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _stop(server: asyncio.Server) -> None:
    server.close()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)
