"""The API does what its OpenAPI document says, whatever the document allows to be asked."""

import logging
import os

import hypothesis
import pytest
import schemathesis
from schemathesis import checks

from collector.storage.engine import open_database
from dashboard.diagnoses import Diagnoses
from dashboard.samples import load_samples
from dashboard.service import build_app
from dashboard.settings import Settings

SOAK = bool(os.environ.get("DRAFTSCOPE_SOAK"))
ENDLESS = "/api/v1/events"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service of this module's own, because drafts are registered and files stored."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('api') / 'draftscope.db'}") as database:
        load_samples(database)
        yield build_app(Diagnoses(database), Settings())


def test_no_server_error_and_no_undocumented_answer(service, caplog):
    caplog.set_level(logging.CRITICAL, logger="httpx")
    document = schemathesis.openapi.from_asgi("/openapi.json", service)
    asked = 0
    for operation in document.get_all_operations():
        if operation.ok().path == ENDLESS:
            continue
        asked += 1
        _ask(operation.ok())
    assert asked >= 15


def _ask(operation):
    @hypothesis.seed(20261130)
    @hypothesis.settings(
        max_examples=50 if SOAK else 4,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def ask(case):
        case.call_and_validate(
            checks=[
                checks.not_a_server_error,
                checks.status_code_conformance,
                checks.content_type_conformance,
                checks.response_schema_conformance,
            ]
        )

    ask()
