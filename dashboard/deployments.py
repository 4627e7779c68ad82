"""What runs belong to: a deployment, and in it a place."""

from __future__ import annotations

from collector.storage.runs import NOWHERE, StoredRun
from dashboard import names


def deployment_of(run: StoredRun) -> str:
    """The name given in the settings, else engine, model, draft and method."""
    if run.deployment:
        return run.deployment
    serving = run.serving
    parts = (run.engine, model_of(run), names.model(serving.draft_model), serving.method)
    return " ".join(part for part in parts if part)


def model_of(run: StoredRun) -> str:
    """The name under which the target is served, "" where nobody states it."""
    return names.model(run.serving.served_model) or names.model(run.serving.target_model)


def place_of(run: StoredRun) -> str:
    """Where a run stands, so that the next one there takes its place: host and port, else its deployment."""
    if run.host not in NOWHERE:
        return run.host if run.port is None else f"{run.host}:{run.port}"
    if run.deployment or run.serving.target_model:
        return deployment_of(run)
    return f"run {run.id}"
