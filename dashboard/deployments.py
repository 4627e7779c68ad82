"""What runs belong to: a deployment, and in it a place."""

from __future__ import annotations

from typing import Protocol

from collector.domain.deployments import Serving
from collector.storage.runs import NOWHERE
from dashboard import names


class Named(Protocol):
    """A run by what names it."""

    @property
    def id(self) -> int: ...  # noqa: D102

    @property
    def engine(self) -> str: ...  # noqa: D102

    @property
    def serving(self) -> Serving: ...  # noqa: D102

    @property
    def deployment(self) -> str | None: ...  # noqa: D102

    @property
    def host(self) -> str: ...  # noqa: D102

    @property
    def port(self) -> int | None: ...  # noqa: D102


def deployment_of(run: Named) -> str:
    """The name given in the settings, else engine, model, draft and method."""
    if run.deployment:
        return run.deployment
    serving = run.serving
    parts = (run.engine, model_of(run), names.model(serving.draft_model), serving.method)
    return " ".join(part for part in parts if part)


def model_of(run: Named) -> str:
    """The name under which the target is served, "" where nobody states it."""
    return names.model(run.serving.served_model) or names.model(run.serving.target_model)


def place_of(run: Named) -> str:
    """Where a run stands, so that the next one there takes its place: host and port, else its deployment."""
    if run.host not in NOWHERE:
        return run.host if run.port is None else f"{run.host}:{run.port}"
    if run.deployment or run.serving.target_model:
        return deployment_of(run)
    return f"run {run.id}"
