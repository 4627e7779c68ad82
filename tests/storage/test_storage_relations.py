from __future__ import annotations

from sqlalchemy import Connection

from collector.domain.arguments import Arguments
from collector.domain.runs import RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.domain.windows import Window
from collector.storage.engine import Database
from collector.storage.relations import baseline_of, load_bundle, previous_of
from collector.storage.runs import link_runs, save_run
from collector.storage.sources import source_at

SPECULATING = {"model_path": "/m/target", "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/m/draft"}
PLAIN = {"model_path": "/m/target", "speculative_algorithm": None}


class Site:
    """Stores runs with a few words each."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.files = 0

    def run(
        self, start: float, end: float, stated: dict[str, object], *, load: float | None = 10.0,
        version: str | None = "0.5.9", releases: str = "*", accelerator: str | None = None, deployment: str | None = None, sample: bool = False,
    ) -> int:  # fmt: skip
        self.files += 1
        name = f"{self.files}.log"
        record = RunRecord(
            "sglang", name, started_at=start, ended_at=end, host="0.0.0.0", port=30000,
            engine_version=None if version is None else Release.parse(version),
            release_range=ReleaseRange.parse(releases), device=accelerator,
            arguments=Arguments().with_effective({"tp_size": 8, "device": "cuda", **stated}, None),
            windows=[Window(0, 1, start, running_requests=load), Window(1, 2, end, running_requests=0.0)],
        )  # fmt: skip
        source = source_at(self.connection, name, at=1.0)
        return save_run(self.connection, record, source_id=source, deployment=deployment, sample=sample, at=1.0)


def test_previous_is_the_latest_earlier_run_of_the_deployment(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        oldest = site.run(0, 90, SPECULATING)
        earlier = site.run(100, 190, SPECULATING, version="0.5.8")
        site.run(195, 210, SPECULATING)  # a replica: it overlaps the judged run
        site.run(191, 198, {**SPECULATING, "speculative_draft_model_path": "/m/other"})
        site.run(191, 198, {**SPECULATING, "speculative_algorithm": "EAGLE"})
        site.run(191, 198, {**SPECULATING, "served_model_name": "another"})
        site.run(191, 198, SPECULATING, sample=True)
        site.run(191, 198, SPECULATING, deployment="chat")
        judged = site.run(200, 300, SPECULATING)
        later = site.run(400, 500, SPECULATING)
        assert previous_of(connection, judged) == earlier
        assert previous_of(connection, earlier) == oldest
        assert previous_of(connection, oldest) is None
        assert previous_of(connection, later) == judged


def test_a_deployments_name_stands_above_what_it_runs(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        before = site.run(0, 90, {**SPECULATING, "speculative_draft_model_path": "/m/old"}, deployment="chat")
        site.run(91, 95, SPECULATING, deployment="batch")
        assert previous_of(connection, site.run(100, 190, SPECULATING, deployment="chat")) == before


def test_runs_that_do_not_say_what_they_serve_have_no_previous(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        site.run(0, 90, {})
        assert previous_of(connection, site.run(100, 190, {})) is None


def test_baseline_is_the_latest_comparable_run_without_speculation(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        site.run(0, 5, PLAIN)
        chosen = site.run(10, 15, PLAIN, load=11.9)
        site.run(20, 25, PLAIN, load=12.1)  # load differs by more than 20%
        site.run(20, 25, PLAIN, load=7.9)
        site.run(20, 25, PLAIN, load=None)
        site.run(20, 25, PLAIN, version="0.5.8")
        site.run(20, 25, {**PLAIN, "tp_size": 4})
        site.run(20, 25, {**PLAIN, "device": "cpu"})
        site.run(20, 25, {**PLAIN, "model_path": "/m/other"})
        site.run(20, 25, PLAIN, sample=True)
        site.run(20, 25, {"model_path": "/m/target", "speculative_algorithm": "NGRAM"})
        judged = site.run(100, 190, SPECULATING)
        assert baseline_of(connection, judged) == chosen
        assert baseline_of(connection, chosen) is None


def test_another_accelerator_is_not_comparable_and_an_unknown_one_may_be(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        unknown = site.run(10, 15, PLAIN)
        other = site.run(20, 25, PLAIN, accelerator="a100")
        assert baseline_of(connection, site.run(100, 190, SPECULATING, accelerator="h100")) == unknown
        assert baseline_of(connection, site.run(200, 290, SPECULATING)) == other


def test_releases_that_may_be_the_same_are_comparable(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        site.run(20, 25, PLAIN, version=None, releases="0.5.10-0.5.23")
        chosen = site.run(10, 15, PLAIN, version=None, releases="0.5.3-0.5.9")
        assert baseline_of(connection, site.run(100, 190, SPECULATING)) == chosen


def test_links_stand_above_what_would_be_found(database: Database) -> None:
    with database.transaction() as connection:
        site = Site(connection)
        site.run(0, 5, PLAIN)
        site.run(10, 15, SPECULATING)
        other = site.run(500, 600, {"model_path": "/m/unlike"})
        judged = site.run(100, 190, SPECULATING)
        link_runs(connection, judged, previous=other)
        link_runs(connection, judged, baseline=other)
        assert previous_of(connection, judged) == baseline_of(connection, judged) == other
        bundle = load_bundle(connection, judged)
        assert bundle.previous is not None
        assert (bundle.subject.started_at, bundle.previous.started_at) == (100, 500)
        assert bundle.baseline == bundle.previous
