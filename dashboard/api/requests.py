"""Request results that clients, gateways or jobs bring: responses of the engine with their counts."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from dashboard.api.bodies import content_of
from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token
from dashboard.requesting import take_responses

_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": ErrorDocument, "description": "No response of the body has figures that can be used."},
    401: {"model": ErrorDocument, "description": "The token is missing or another one."},
    403: {"model": ErrorDocument, "description": "Another site's page sent the request."},
    404: {"model": ErrorDocument, "description": "There is no such run."},
    413: {"model": ErrorDocument, "description": "The body is too large; send it in parts."},
    415: {"model": ErrorDocument, "description": "The body is packed in a way that is not read."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
    503: {"model": ErrorDocument, "description": "The database does not take it now; send it again."},
}
_RESPONSE: Final = {
    "route": "chat",
    "temperature": 0.7,
    "at": 1795976219.03,
    "response": {
        "meta_info": {
            "id": "0a014a32c2f544828060f37414258a43",
            "prompt_tokens": 12,
            "completion_tokens": 64,
            "spec_verify_ct": 24,
            "spec_num_correct_drafts": 39,
            "spec_num_proposed_drafts": 72,
            "spec_correct_drafts_histogram": [4, 7, 7, 6],
        }
    },
}
_LINE: Final = (
    '{"route": "chat", "temperature": 0, "response": {"id": "cmpl-7", "usage": {"prompt_tokens": 25, "completion_tokens": 96}, '
    '"metrics": {"speculative_decoding": {"num_spec_steps": 37, "num_accepted_draft_tokens": 60, "num_draft_tokens": 111, '
    '"acceptance_histogram": [9, 8, 8, 12], "num_spec_tokens": 3}}}}\n'
)

router = APIRouter(prefix="/api/v1")


class TakenRequests(BaseModel):
    """What became of the responses."""

    run: str = Field(description="the run they were put to", examples=["17"])
    responses: int = Field(description="responses of its engine in the body")
    stored: int = Field(description="those that were new")
    problems: list[str] = Field(description="what could not be used, and why")


@router.post(
    "/requests",
    summary="Store request results of a run",
    responses=_ANSWERS,
    dependencies=[Depends(require_token)],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"example": [_RESPONSE]}, "application/x-ndjson": {"example": _LINE}},
        },
        "parameters": [
            {"name": "run", "in": "query", "schema": {"type": "string"}, "description": "the run's number"},
            {
                "name": "deployment",
                "in": "query",
                "schema": {"type": "string"},
                "description": "in place of a number: the latest run of this deployment",
            },
        ],
    },
)
async def take_requests(request: Request, content_encoding: Annotated[str, Header()] = "") -> TakenRequests:
    """JSON lines or an array: responses of SGLang, vLLM or llama.cpp, bare or inside what a client kept around them.

    ``run`` names the run; else it is the latest one of ``deployment`` and of all other query parameters, which are
    labels of runs. A response that is sent again is stored once.
    """
    content = await content_of(request, content_encoding)
    labels = dict(request.query_params)
    run, deployment = labels.pop("run", ""), labels.pop("deployment", None)
    taken = await run_in_threadpool(
        take_responses, request.app.state.database, content, run=run, deployment=deployment, labels=labels
    )
    return TakenRequests(
        run=str(taken.run), responses=taken.responses, stored=taken.stored, problems=list(taken.problems)
    )
