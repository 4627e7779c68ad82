"""Pods of a cluster that carry labels: where their engines answer, and what they write.

Source: kubernetes.io/docs/reference/kubernetes-api, pods; the official client of the extra ``kubernetes``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from collector.domain.errors import InputError, SourceError
from collector.sources.discovery import Group
from collector.sources.entries import Log, Page
from collector.sources.stamped import entries_of

PORT_ANNOTATION: Final = "prometheus.io/port"
LARGEST_ANSWER: Final = 64 << 20
"""Bytes of a container's log that are read at once."""
_TIMEOUT: Final = 20.0
_DENIED: Final = (401, 403)
_NOT_YET: Final = (400, 404)
"""What is answered for a container that has not started, or is gone by now."""


class Kubernetes:
    """The pods that a selector of labels finds, in one namespace or all."""

    def __init__(
        self, select: str, *, namespace: str = "", context: str = "", container: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """Read how the cluster is reached: from within it, else by the user's configuration (``KUBECONFIG``).

        ``container`` restricts logs to containers of this name.

        Raises:
            InputError: the client is not installed, or nothing says how the cluster is reached.
        """
        try:
            from kubernetes import client, config
        except ImportError:
            raise InputError(
                "pods cannot be looked up", why="the client of Kubernetes is not installed",
                hint='pip install "draftscope[kubernetes]"',
            ) from None  # fmt: skip
        try:
            given = os.environ.get("KUBECONFIG")  # the client looks for it but once
            load: Any = config.load_config
            if context or given:
                load = partial(config.load_kube_config, config_file=given, context=context or None)
            load()
        except (config.ConfigException, OSError) as error:
            raise InputError(
                "nothing says how the cluster is reached", why=str(error),
                hint="run it in the cluster with a service account, or set KUBECONFIG",
            ) from None  # fmt: skip
        self._api: Any = client.CoreV1Api()
        self._error: Any = client.ApiException
        self._select, self._namespace, self._container = select, namespace, container
        self._now = now

    @property
    def name(self) -> str:
        """Cluster, namespace and selector."""
        return f"{self._api.api_client.configuration.host} {self._namespace or 'all namespaces'} {self._select}"

    def groups(self, port: int = 0) -> list[Group]:
        """Where the engines of running pods answer.

        The port is the given one, else that of the annotation ``prometheus.io/port``, else the first one that a container states.

        Raises:
            SourceError: the cluster does not answer as it should.
        """
        found = [(pod, _port(pod, port)) for pod in self._pods() if pod.status.phase == "Running"]
        return [
            Group((f"http://{_host(pod.status.pod_ip)}:{number}",), _labels(pod))
            for pod, number in found
            if number and pod.status.pod_ip and not pod.metadata.deletion_timestamp
        ]

    def logs(self, since: int) -> Sequence[Log]:
        """The log of every container of the pods."""
        del since
        cluster = self._api.api_client.configuration.host
        return [
            Log(
                f"{cluster} {pod.metadata.namespace}/{pod.metadata.name}/{container.name}",
                {**_labels(pod), "container": container.name},
                (pod.metadata.namespace, pod.metadata.name, container.name),
            )
            for pod in self._pods()
            for container in pod.spec.containers
            if self._container in ("", container.name)
        ]

    def page(self, log: Log, since: int) -> Page:
        """The next lines of a container."""
        namespace, pod, container = log.key
        # Only whole seconds before now can be asked for.
        ago = {"since_seconds": max(int(self._now() - since / 1e9) + 2, 1)} if since else {}
        with self._told(namespace):
            try:
                answer = self._api.read_namespaced_pod_log(
                    pod, namespace, container=container, timestamps=True, limit_bytes=LARGEST_ANSWER,
                    _preload_content=False, _request_timeout=_TIMEOUT, **ago,
                )  # fmt: skip
            except self._error as error:
                if error.status in _NOT_YET:
                    return Page((), more=False)
                raise
            body: bytes = answer.data
        return Page(entries_of(body), more=len(body) >= LARGEST_ANSWER)

    def close(self) -> None:
        """Close the connections."""
        self._api.api_client.rest_client.pool_manager.clear()

    def _pods(self) -> list[Any]:
        asked = {"label_selector": self._select, "_request_timeout": _TIMEOUT}
        with self._told(self._namespace or "all namespaces"):
            if self._namespace:
                return list(self._api.list_namespaced_pod(self._namespace, **asked).items)
            return list(self._api.list_pod_for_all_namespaces(**asked).items)

    @contextmanager
    def _told(self, namespace: str) -> Iterator[None]:
        """What the client raises, in words."""
        import urllib3

        where = f"{self._api.api_client.configuration.host}, {namespace}"
        try:
            yield
        except self._error as error:
            denied = error.status in _DENIED
            raise SourceError(
                "the cluster refuses this account" if denied else f"the cluster answered {error.status}",
                why=str(error.reason or ""),
                where=where,
                hint="it needs the right to get and list pods and pods/log"
                if denied
                else "check selector and namespace",
            ) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise SourceError(
                "the cluster does not answer", why=str(error), where=where, hint="check KUBECONFIG"
            ) from error


def _port(pod: Any, wanted: int) -> int:
    stated = (pod.metadata.annotations or {}).get(PORT_ANNOTATION, "")
    if wanted or stated.isdecimal():
        return wanted or int(stated)
    return next((port.container_port for container in pod.spec.containers for port in container.ports or ()), 0)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _labels(pod: Any) -> dict[str, str]:
    return {"namespace": pod.metadata.namespace, "pod": pod.metadata.name}
