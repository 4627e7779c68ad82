"""Checking launch commands over HTTP: nothing is started, stored or looked up."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from analysis.check import SCHEMA, document
from dashboard import checking
from dashboard.api.errors import ErrorDocument
from dashboard.api.openapi import reference

router = APIRouter(prefix="/api/v1")

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "What the engine makes of every flag, findings, and a command of which nothing is changed; "
        "several commands are each under `checks`.",
        "content": {"application/json": {"schema": reference("Check")}},
    },
    400: {"model": ErrorDocument, "description": "No known engine is launched there, or a statement is not known."},
    413: {"model": ErrorDocument, "description": "The request is too large."},
    422: {"model": ErrorDocument, "description": "The request is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}

ShortText = Annotated[str | None, Field(max_length=40)]


class CheckRequest(BaseModel):
    """A launch command or manifest, and what is known beside it."""

    command: str = Field(
        max_length=checking.LARGEST_COMMANDS,
        description="Shell text, docker run, compose, Kubernetes manifests, a systemd unit, lines of ps",
        examples=[
            "python3 -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-num-steps 3"
        ],
    )
    engine: ShortText = Field(None, description="Looks at its commands only", examples=["sglang"])
    engine_version: ShortText = Field(None, description="Release; without it, all that were read", examples=["0.5.10"])
    device: ShortText = Field(None, description="GPU that will serve", examples=["h100"])
    draft_config: dict[str, Any] | None = Field(None, description="The draft's config.json")
    target_config: dict[str, Any] | None = Field(None, description="The target's config.json")


@router.post(
    "/check",
    summary=f"What an engine will make of a launch command ({SCHEMA})",
    response_class=JSONResponse,
    responses=_RESPONSES,
)
def check(asked: CheckRequest) -> JSONResponse:
    """The document of `draftscope check --format json`. No file that the command names is opened."""
    beside = checking.beside_of(
        asked.engine, asked.engine_version, asked.device, asked.draft_config, asked.target_config
    )
    return JSONResponse(document(checking.judge_text(asked.command, beside)))
