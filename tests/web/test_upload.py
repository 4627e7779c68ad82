"""Files that come over HTTP: stored once, judged, shown; hostile names and archives do no harm."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from dashboard.diagnoses import Diagnoses
from dashboard.samples import FOLDER
from dashboard.service import build_app
from dashboard.settings import Settings
from tests.web.conftest import Client
from tests.web.pages_read import Page

BUNDLE = FOLDER / "kimi-k25-capture-fixed"


@pytest.fixture
def service(database):
    """The service on each kind of database."""
    return Client(build_app(Diagnoses(database), Settings()))


def sent(*paths: Path):
    return [("files", (path.name, path.read_bytes())) for path in paths]


def packed(names):
    """A .zip that holds text under these names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_bundle_is_stored_once_and_lands_on_its_page(service):
    files = sent(*sorted(BUNDLE.iterdir()))
    answer = service.request("POST", "/upload", files=files)
    assert answer.status_code == 303
    page = Page(service.get(answer.headers["location"]).text)
    document = service.get(f"/api/v1{answer.headers['location']}/diagnosis").json()
    assert document["headline"].split(".")[0] in page.said()
    assert {run["role"] for run in document["runs"]} == {"subject", "previous", "baseline"}
    total = service.get("/api/v1/runs").json()["total"]
    again = service.request("POST", "/api/v1/uploads", files=files)
    assert (again.status_code, f"/runs/{again.json()['run']}") == (201, answer.headers["location"])
    assert service.get("/api/v1/runs").json()["total"] == total


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_packed_bundle_is_the_same_as_its_files(sqlite_database, kind):
    service = Client(build_app(Diagnoses(sqlite_database), Settings()))
    buffer = io.BytesIO()
    if kind == "zip":
        buffer.write(packed({f"run/{path.name}": path.read_bytes() for path in BUNDLE.iterdir()}))
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as tape:
            tape.add(BUNDLE, "run")
    name = "run.zip" if kind == "zip" else "run.tar.gz"
    loose = service.request("POST", "/api/v1/uploads", files=sent(*sorted(BUNDLE.iterdir()))).json()
    archive = service.request("POST", "/api/v1/uploads", files=[("files", (name, buffer.getvalue()))]).json()
    assert archive == loose


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.zip", packed({"../../../etc/cron.d/evil.log": "x"})),
        ("run.zip", packed({"/etc/evil.log": "x"})),
        ("run.zip", packed({"good.log": "x"})[:-30]),
        ("run.tar.gz", b"\x1f\x8b\x08\x00 not packed at all"),
        ("empty.log", b""),
        ("noise.log", bytes(range(256)) * 40),
        ("../../<img src=x onerror=alert(1)>.log", b"nothing of an engine"),
    ],
    ids=["leaves its folder", "has a root", "cut off", "not packed", "empty", "no text", "hostile name"],
)
def test_what_cannot_be_used_is_told_and_leaves_nothing(sqlite_database, tmp_path, monkeypatch, name, content):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    service = Client(build_app(Diagnoses(sqlite_database), Settings()))
    answer = service.request("POST", "/api/v1/uploads", files=[("files", (name, content))])
    assert answer.status_code == 400, answer.text
    assert "draftscope-upload" not in answer.text
    assert service.get("/api/v1/runs").json()["total"] == 0
    assert not list(tmp_path.glob("draftscope-upload-*"))
    page = service.request("POST", "/upload", files=[("files", (name, content))])
    assert answer.json()["error"]["what"].lower() in Page(page.text).said().lower()
    assert not [tag for tag, _ in Page(page.text).tags if tag == "img"]


def test_weights_in_an_archive_are_left_out(sqlite_database):
    service = Client(build_app(Diagnoses(sqlite_database), Settings()))
    names = {path.name: path.read_bytes() for path in BUNDLE.iterdir()}
    archive = packed({**names, "draft/model.safetensors": bytes(1 << 20)})
    answer = service.request("POST", "/api/v1/uploads", files=[("files", ("run.zip", archive))])
    assert answer.status_code == 201
    assert "model.safetensors" not in answer.text


def test_uploads_need_the_token_and_other_sites_cannot_send(client_of, sqlite_database):
    files = sent(BUNDLE / "input.log")
    service = Client(build_app(Diagnoses(sqlite_database), Settings()))
    assert service.request("POST", "/upload", files=files, headers={"Origin": "http://evil.test"}).status_code == 403
    service.app.state.token = "secret"
    assert service.request("POST", "/api/v1/uploads", files=files).status_code == 401
    assert service.request("POST", "/upload", files=files).status_code == 401
    allowed = service.request("POST", "/upload", files=files, headers={"Authorization": "Bearer secret"})
    assert allowed.status_code == 303
    assert client_of().request("POST", "/api/v1/uploads", files=files).status_code == 403
