"""Which engines are watched: the settings of each, and the addresses that they stand for now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from collector.domain.errors import DraftscopeError, MalformedInput
from collector.domain.redaction import redact_text
from dashboard.masked import Secret
from dashboard.strict import read_table

if TYPE_CHECKING:
    from collector.sources.discovery import Group
    from collector.sources.http import Endpoint

SHORTEST_SECONDS: Final = 1.0
"""Between two scrapes; more often would disturb the engine."""
_PLACES: Final = ("url", "file", "dns", "kubernetes", "docker")
_ADDRESSES: Final = ("url", "dns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One ``[[targets]]`` of the settings: an engine by its address, or several by a file or a name.

    Attributes:
        url: address of the engine.
        file: a file with addresses in the form of Prometheus (``file_sd``), read again when it changes.
        dns: an address whose host name stands for several machines.
        kubernetes: a selector of labels of pods. namespace: where they are, "" for all.
        docker: a label of containers on this machine, or on that of ``DOCKER_HOST``.
        port: where the engines of pods and containers listen, 0 for what those state.
        deployment: what their runs belong to.
        api_key: the key the engines were started with.
        ca_file: certificates to trust in place of the system's. verify_tls: whether to check them at all.
        certificate_file, certificate_key_file: shown to engines that ask who is there; the key may stand in the first.
        interval_seconds, timeout_seconds: between two scrapes, and for one whole answer.
        take_iterations: take iterations out of TensorRT-LLM's queue.
        labels: put on every run.
    """

    url: str = ""
    file: str = ""
    dns: str = ""
    kubernetes: str = ""
    namespace: str = ""
    docker: str = ""
    port: int = 0
    deployment: str = ""
    api_key: Secret | None = None
    ca_file: str = ""
    verify_tls: bool = True
    certificate_file: str = ""
    certificate_key_file: str = ""
    interval_seconds: float = 15.0
    timeout_seconds: float = 10.0
    take_iterations: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def place(self) -> str:
        """What the settings say."""
        return self.url or self.file or self.dns or self.kubernetes or self.docker

    @property
    def access(self) -> dict[str, Any]:
        """How its engines are asked, as :class:`collector.sources.http.Server` takes it."""
        return {
            "api_key": self.api_key.reveal() if self.api_key else None,
            "timeout": self.timeout_seconds,
            "verify": (self.ca_file or True) if self.verify_tls else False,
            "certificate": self.certificate_file,
            "certificate_key": self.certificate_key_file,
        }


@dataclass(frozen=True, slots=True)
class Found:
    """One address of a target, with the labels of its runs."""

    address: str
    target: Target
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The address without a password."""
        return redact_text(self.address)

    def endpoint(self) -> Endpoint:
        """The engine there.

        Raises:
            InputError: the address is none, the key cannot be sent, or the certificates cannot be read.
        """
        from collector.sources.http import Endpoint

        return Endpoint(self.address, **self.target.access)


def read_targets(entries: Any, where: str) -> tuple[Target, ...]:
    """The ``[[targets]]`` of the settings.

    Raises:
        UnknownName: a key does not exist.
        MalformedInput: a value does not fit, or a target says not exactly one place.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise MalformedInput("targets is not a list of tables", where=where, hint="write [[targets]]")
    return tuple(_target(entry, f"{where}, [[targets]] number {number}") for number, entry in enumerate(entries, 1))


def _target(entry: Mapping[str, Any], where: str) -> Target:
    target = read_table(Target, entry, where)
    given = [name for name in _PLACES if getattr(target, name).strip()]
    if len(given) != 1:
        stated = f"a target has {' and '.join(given)}" if given else "a target has no address"
        raise MalformedInput(
            stated,
            why="it needs one of url, file, dns, kubernetes and docker",
            where=where,
            hint='url = "http://gpu7:30000"',
        )
    if given[0] in _ADDRESSES and not is_address(target.place):
        raise MalformedInput(f"{given[0]} is no address", where=where, hint=f'{given[0]} = "http://gpu7:30000"')
    if not target.interval_seconds >= SHORTEST_SECONDS:
        raise MalformedInput(
            f"interval_seconds {target.interval_seconds:g} is too short",
            why="it would disturb the engine",
            where=where,
            hint=f"{SHORTEST_SECONDS:g} or more",
        )
    if not target.timeout_seconds > 0:
        raise MalformedInput(
            f"timeout_seconds {target.timeout_seconds:g} is none", where=where, hint="timeout_seconds = 10"
        )
    return target


def is_address(text: str) -> bool:
    """Whether a text is the address of a server; the scheme may be left out."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def find_all(targets: Sequence[Target]) -> tuple[list[Found], dict[Target, DraftscopeError]]:
    """Every address that targets stand for now, each once, and the targets that could not be looked up."""
    found: dict[str, Found] = {}
    problems: dict[Target, DraftscopeError] = {}
    for target in targets:
        try:
            for item in _addresses(target):
                found.setdefault(item.address, item)
        except DraftscopeError as error:
            problems[target] = error
    return list(found.values()), problems


def _addresses(target: Target) -> Iterator[Found]:
    from collector.sources.discovery import addresses_of_name, groups_of_file

    if target.url:
        yield Found(target.url, target, target.labels)
    elif target.dns:
        for address in addresses_of_name(target.dns):
            yield Found(address, target, target.labels)
    else:
        for group in groups_of_file(Path(target.file)) if target.file else _groups_of_platform(target):
            for address in group.addresses:
                yield Found(address, target, {**group.labels, **target.labels})


def _groups_of_platform(target: Target) -> list[Group]:
    """What pods or containers stand for now."""
    from collector.sources.docker import Docker
    from collector.sources.kubernetes import Kubernetes

    pods = bool(target.kubernetes)
    platform = Kubernetes(target.kubernetes, namespace=target.namespace) if pods else Docker(target.docker)
    try:
        return platform.groups(target.port)
    finally:
        platform.close()
