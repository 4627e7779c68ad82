"""Files that are stored and judged: over the API, and from the page that takes them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, File, Form, Request, UploadFile
from pydantic import BaseModel

from collector.bundle import BundleOptions
from collector.domain.errors import InputError, RefusedError
from collector.domain.versions import stated_release
from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token
from dashboard.stated import accuracies
from dashboard.uploading import MOST_FILES, Uploaded, Uploads

router = APIRouter(prefix="/api/v1")

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": ErrorDocument, "description": "Nothing that came could be used."},
    401: {"model": ErrorDocument, "description": "The token is missing or another one."},
    403: {"model": ErrorDocument, "description": "Another site's page sent the request."},
    413: {"model": ErrorDocument, "description": "The upload is too large."},
    422: {"model": ErrorDocument, "description": "The request is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
    503: {"model": ErrorDocument, "description": "The database does not take it."},
}

Files = Annotated[list[UploadFile], File(description="Logs, configs, commands, packed or not; one bundle together")]
ShortText = Annotated[str, Form(max_length=200)]


class UploadAnswer(BaseModel):
    """The run that the files are about, all runs that they told of, and what could not be used."""

    run: str
    runs: list[str]
    problems: list[str]


@router.post(
    "/uploads",
    summary="Store the runs of files and judge them",
    status_code=201,
    responses=_RESPONSES,
    dependencies=[Depends(require_token)],
)
def upload(
    request: Request,
    files: Files,
    deployment: ShortText = "",
    engine_version: ShortText = "",
    validation_accuracy: ShortText = "",
) -> UploadAnswer:
    """Safe to repeat: what is known already is not stored twice."""
    stored = store(request, files, deployment, engine_version, validation_accuracy)
    return UploadAnswer(run=stored.run, runs=stored.runs, problems=stored.problems)


def store(
    request: Request, files: list[UploadFile], deployment: str, engine_version: str, validation_accuracy: str
) -> Uploaded:
    """Take the files into the database.

    Raises:
        InputError: too many files, an impossible statement, or nothing could be used.
        RefusedError: this service keeps nothing.
    """
    uploads: Uploads | None = request.app.state.uploads
    if uploads is None:
        raise RefusedError("this service takes no files", why="it shows runs that are kept elsewhere")
    given = [(file.filename or "file", file.file) for file in files if file.filename]
    if len(given) > MOST_FILES:
        raise InputError(f"{len(given)} files came, at most {MOST_FILES} are taken at once", hint="pack them as .zip")
    options = BundleOptions(
        engine_version=stated_release(engine_version.strip(), "release"),
        validation_accuracy=accuracies(validation_accuracy),
    )
    return uploads.store(given, options, deployment.strip() or None)
