"""Logs of containers, out of Docker and Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from collector.domain.errors import InputError
from dashboard.feeds.base import Feed, Source, opened_logs

if TYPE_CHECKING:
    from collector.storage.engine import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerSource(Source):
    """Logs of Docker containers.

    Attributes:
        select: a label they carry, ``engine`` or ``engine=vllm``.
        host: the Docker host, "" for that of ``DOCKER_HOST`` or this machine.
    """

    kind: ClassVar[str] = "docker"

    select: str
    host: str = ""

    @property
    def place(self) -> str:
        """Host and label."""
        return f"{self.host or 'docker'} {self.select}"

    def check(self) -> None:
        """Also that something is selected."""
        Source.check(self)
        if not self.select.strip():
            raise InputError("select is empty", hint='select = "engine=vllm"')

    def open(self, database: Database, now: Callable[[], float]) -> Feed:
        """Read on where the last look ended."""
        from collector.sources.docker import Docker

        return opened_logs(self, Docker(self.select, self.host), database, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSource(Source):
    """Logs of pods.

    Attributes:
        select: a selector of labels, ``app=vllm``.
        namespace: where the pods are, "" for all. container: the name of the engine's container, "" for all.
        context: the context of the user's configuration.
    """

    kind: ClassVar[str] = "kubernetes"

    select: str
    namespace: str = ""
    container: str = ""
    context: str = ""

    @property
    def place(self) -> str:
        """Namespace and selector."""
        return f"kubernetes {self.namespace or 'all namespaces'} {self.select}"

    def check(self) -> None:
        """Also that something is selected."""
        Source.check(self)
        if not self.select.strip():
            raise InputError("select is empty", hint='select = "app=vllm"')

    def open(self, database: Database, now: Callable[[], float]) -> Feed:
        """Read on where the last look ended."""
        from collector.sources.kubernetes import Kubernetes

        pods = Kubernetes(
            self.select, namespace=self.namespace, context=self.context, container=self.container, now=now
        )
        return opened_logs(self, pods, database, now)
