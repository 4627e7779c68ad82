"""What is read again and again beside the engines themselves: where others keep metrics and logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from collector.domain.errors import InputError
from dashboard.masked import Secret

if TYPE_CHECKING:
    from collector.sources.entries import LogSource
    from collector.sources.http import Endpoint
    from collector.storage.engine import Database

SHORTEST_SECONDS: Final = 1.0
"""Between two looks."""


class Feed(Protocol):
    """An opened source."""

    @property
    def run_ids(self) -> Collection[int]:
        """The runs it told of since it is open."""

    @property
    def problems(self) -> Mapping[str, str]:
        """What is to be said of some of them, by what names them."""

    def step(self) -> bool:
        """Store the next piece; whether more may be there already.

        Raises:
            SourceError: the source does not answer as it should; what was stored before stays.
            InputError: what it gives cannot be used.
            StorageError: the database refused; opened anew, it goes on there.
        """

    def close(self) -> None:
        """Give back what is held open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(ABC):
    """One ``[[sources]]`` of the settings.

    Attributes:
        deployment: what the runs belong to.
        labels: put on every run.
        interval_seconds: between two looks.
    """

    kind: ClassVar[str]

    deployment: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    interval_seconds: float = 15.0

    @property
    @abstractmethod
    def place(self) -> str:
        """What names it, without secrets."""

    def check(self) -> None:
        """Look whether what was said of it fits.

        Raises:
            InputError: it does not.
        """
        if not self.interval_seconds >= SHORTEST_SECONDS:
            raise InputError(
                f"interval_seconds {self.interval_seconds:g} is too short", hint=f"{SHORTEST_SECONDS:g} or more"
            )

    @abstractmethod
    def open(self, database: Database, now: Callable[[], float]) -> Feed:
        """Begin, or go on where it was left; ``now`` gives seconds since 1970.

        Raises:
            InputError: it cannot be used as the settings say.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSource(Source, ABC):
    """A source with an HTTP API.

    Attributes:
        url: the address in front of the API's own paths.
        api_key: sent as bearer token. user, password: sent as basic authentication.
        tenant: sent as ``X-Scope-OrgID``. headers: sent as they are.
        ca_file: certificates to trust in place of the system's. verify_tls: whether to check them at all.
        timeout_seconds: for one whole answer.
    """

    url: str
    api_key: Secret | None = None
    user: str = ""
    password: Secret | None = None
    tenant: str = ""
    headers: Mapping[str, Secret] = field(default_factory=dict, hash=False)
    ca_file: str = ""
    verify_tls: bool = True
    timeout_seconds: float = 60.0

    @property
    def place(self) -> str:
        """The address without a password."""
        from collector.domain.redaction import redact_text

        return redact_text(self.url)

    def check(self) -> None:
        """Also whether the address is one, and one way to say who asks."""
        from dashboard.targets import is_address

        Source.check(self)
        if not is_address(self.url):
            raise InputError("url is no address", hint='url = "http://prometheus:9090"')
        if self.api_key and self.user:
            raise InputError("api_key and user exclude each other", hint="leave one out")

    def endpoint(self, largest: int) -> Endpoint:
        """Its server, whose answers have so many bytes at most."""
        import base64

        from collector.sources.http import Endpoint

        headers = {name: value.reveal() for name, value in self.headers.items()}
        if self.tenant:
            headers["X-Scope-OrgID"] = self.tenant
        if self.user:
            word = self.password.reveal() if self.password else ""
            headers["Authorization"] = "Basic " + base64.b64encode(f"{self.user}:{word}".encode()).decode()
        return Endpoint(
            self.url,
            api_key=self.api_key.reveal() if self.api_key else None,
            headers=headers,
            timeout=self.timeout_seconds,
            verify=(self.ca_file or True) if self.verify_tls else False,
            largest=largest,
        )


def opened_logs(
    source: Source, place: LogSource, database: Database, now: Callable[[], float], *, since: int = 0
) -> Feed:
    """The logs of a place, read on where the last look ended.

    Raises:
        StorageError: the data folder cannot be used.
    """
    from collector.log_writer import Owner
    from collector.sources.spool import forget_old
    from collector.streamed_logs import StreamedLogs
    from dashboard.database import streams_folder

    folder = streams_folder(database.name)
    forget_old(folder, now())
    owner = Owner(database, now, source.deployment or None, source.labels)
    return StreamedLogs(owner, folder, place, since=since)
