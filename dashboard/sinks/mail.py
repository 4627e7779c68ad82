"""E-mail over SMTP."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime, parseaddr
from enum import StrEnum
from typing import Final

from dashboard.masked import Secret
from dashboard.sinks import base
from dashboard.sinks.addresses import public_address
from dashboard.sinks.base import SendError, Sink, SinkConfig
from dashboard.sinks.notice import Notice
from dashboard.sinks.posting import words_of
from dashboard.sinks.words import cut, plain_text, subject_of

LONGEST_SUBJECT: Final = 200
_DOMAIN: Final = "draftscope.invalid"
"""Message ids need one; the reserved one belongs to nobody."""

_LACKING: Final = "the mail server does not offer what is needed: encryption, or a way to log in"

logging.getLogger("aiosmtplib").setLevel(logging.WARNING)


class Encryption(StrEnum):
    """How the connection to a mail server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailConfig(SinkConfig):
    """The mail server and who gets the mail. ``ca_file``: certificates to trust in place of the system's."""

    host: str
    port: int = 587
    encryption: Encryption = Encryption.STARTTLS
    username: str = ""
    password: Secret | None = None
    sender: str
    to: tuple[str, ...]
    ca_file: str = ""
    allow_private: bool = True
    group_seconds: float = 30.0


class MailSink(Sink):
    """Sends each message as one mail in plain text; mails about one finding form a thread."""

    kind = "email"
    Config = MailConfig
    config: MailConfig
    groups = True

    @classmethod
    def check(cls, config: MailConfig) -> str:
        """Addresses are well-formed, and the password never goes over an open line."""
        if not config.host or not 0 < config.port < 65536:
            return "host and port name no server"
        if not config.to or not all(map(_is_address, (config.sender, *config.to))):
            return "sender and to need addresses such as ops@example.org"
        if bool(config.username) != (config.password is not None):
            return "username and password belong together"
        if config.password is not None and config.encryption is Encryption.NONE:
            return "a password needs an encrypted connection"
        return ""

    def render(self, message_id: str, notices: Sequence[Notice]) -> EmailMessage:
        """The mail; pure."""
        mail = EmailMessage(policy=SMTP_POLICY)
        mail["Subject"] = cut(subject_of(notices), LONGEST_SUBJECT)
        mail["From"] = self.config.sender
        mail["To"] = ", ".join(self.config.to)
        mail["Date"] = format_datetime(datetime.fromtimestamp(int(notices[0].at), UTC))
        mail["Message-ID"] = f"<{message_id}@{_DOMAIN}>"
        if len(notices) == 1:
            mail["References"] = f"<{notices[0].key}@{_DOMAIN}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(plain_text(notices) + "\n", cte="quoted-printable")
        return mail

    async def send(self, message_id: str, notices: Sequence[Notice], *, at: float) -> str:
        """Hand one mail to the server."""
        del at
        import aiosmtplib

        mail = self.render(message_id, notices)
        base.refuse_oversize(mail.as_bytes())
        try:
            async with asyncio.timeout(base.TIME_LIMIT_SECONDS):
                return await self._hand_over(mail)
        except (TimeoutError, aiosmtplib.SMTPTimeoutError):
            raise SendError(f"no answer within {base.TIME_LIMIT_SECONDS:g} s", permanent=False) from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [refused.code for refused in error.recipients]
            raise SendError(_answered(max(codes)), permanent=min(codes) >= 500) from None
        except aiosmtplib.SMTPAuthenticationError as error:
            raise SendError(f"{_answered(error.code)} to the password", permanent=error.code >= 500) from None
        except aiosmtplib.SMTPResponseException as error:
            raise SendError(_answered(error.code), permanent=500 <= error.code < 600) from None
        except aiosmtplib.SMTPServerDisconnected:
            raise SendError("the mail server closed the connection", permanent=False) from None
        except OSError as error:  # among them the library's own errors of connections
            raise SendError(words_of(error).replace("receiver", "mail server"), permanent=False) from None
        except aiosmtplib.SMTPException:
            raise SendError(_LACKING, permanent=True) from None

    async def _hand_over(self, mail: EmailMessage) -> str:
        from aiosmtplib import SMTP

        config = self.config
        host = config.host if config.allow_private else await public_address(config.host, config.port)
        client = SMTP(
            hostname=config.host,
            sock=await _connected(host, config.port),
            use_tls=config.encryption is Encryption.TLS,
            start_tls=config.encryption is Encryption.STARTTLS,
            tls_context=ssl.create_default_context(cafile=config.ca_file or None),
            local_hostname="draftscope",
            timeout=base.TIME_LIMIT_SECONDS,
        )
        try:
            await client.connect()
            if config.password is not None:
                await client.login(config.username, config.password.reveal())
            refused, _ = await client.send_message(mail)
        finally:
            client.close()
        return f"250 accepted, {len(refused)} of {len(config.to)} addresses refused" if refused else "250 accepted"


async def _connected(host: str, port: int) -> socket.socket:
    """A connection to the first address that takes one.

    Raises:
        OSError: there is none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for last, (family, kind, protocol, _, address) in enumerate(found, 1 - len(found)):
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        try:
            await loop.sock_connect(opened, address)
        except BaseException as error:
            opened.close()
            if last == 0 or not isinstance(error, OSError):
                raise
        else:
            return opened
    raise OSError("no address")


def _answered(code: int) -> str:
    return f"the mail server answered {code}"


def _is_address(text: str) -> bool:
    name, _, domain = parseaddr(text)[1].partition("@")
    return bool(name and domain) and text.isprintable()
