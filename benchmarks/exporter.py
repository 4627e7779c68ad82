"""CPU seconds of a scrape of the exporter: 1,000 replicas, each judged with findings, verdicts and positions.

Usage: python benchmarks/exporter.py [--replicas 1000] [--scrapes 7]

It prints the CPU time of this process for a scrape in which nothing, a quarter and everything was judged anew
since the one before, as text and packed; and beside it that of writing the same series with the library alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from collector.domain.arguments import Argument, Arguments
from collector.domain.findings import Confidence, Finding, Question, Severity, State, Verdict
from collector.domain.runs import RunRecord
from collector.domain.versions import Release
from collector.storage.engine import Database, open_database
from collector.storage.findings import Judgement, save_judgement
from collector.storage.runs import save_run
from collector.storage.sources import source_at
from collector.storage.tables import JUDGEMENTS
from dashboard.exporter.endpoint import Exporter
from dashboard.exporter.runs import Given

NOW = 1_775_000_000.0
STATED = {"model_path": "/models/Kimi-K2.5", "speculative_algorithm": "EAGLE3",
          "speculative_draft_model_path": "/models/kimi-k25-eagle3"}  # fmt: skip
FIGURES = {
    "acceptance_length": 1.8, "max_acceptance_length": 6, "expected_acceptance_length": 3.27,
    "realistic_acceptance_length": 2.86, "break_even_acceptance_length": 2.96, "retained_share": 0.353,
    "draft_acceptance_rate": 0.16, "conditional_acceptance_rate": 0.449, "draft_depth": 5, "verify_width": 6,
    "verify_steps": 720.0, "drafted_tokens": 3600.0, "accepted_tokens": 576.0, "generated_tokens": 1367.2,
    "generation_throughput": 54.78, "step_seconds": 0.0329, "running_requests": 1.0, "speedup": 0.609,
    "step_cost_ratio": 2.96, "acceptance_rate_at": [0.45, 0.2, 0.09, 0.04, 0.02],
    "conditional_acceptance_rate_at": [0.45, 0.44, 0.45, 0.44, 0.5],
}  # fmt: skip
ESTIMATE = {"low": 1.62, "high": 1.98, "method": "ewc", "windows": 18, "verify_steps": 720.0}


def judgement(replica: int) -> Judgement:
    verdicts = tuple(Verdict(question, State.PROBLEM, "A sentence that says what is wrong.") for question in Question)
    findings = tuple(
        Finding(rule, name, severity, Confidence.HIGH, "A title of usual length", "Why it is so.", values=FIGURES)
        for rule, name, severity in (
            ("PAY001", "slower-than-baseline", Severity.CRITICAL),
            ("ACC001", "acceptance-below-validation", Severity.WARNING),
            ("FLG001", "draft-token-count-overridden", Severity.WARNING),
        )
    )
    quantities = {key: {"value": value, **ESTIMATE} for key, value in FIGURES.items()}
    quantities["acceptance_length"]["value"] = 1.8 + replica / 10_000
    summary = {
        "method": "eagle3",
        "quantities": quantities,
        "baseline_throughput": 89.9,
        "recent": [1.81] * 48,
        "overridden": 3,
        "changed": 1,
        "drift": {"statistic": 0.4, "threshold": 8.0, "drifted": False, "onset": None},
    }
    return Judgement("Two faults.", verdicts, findings, summary=summary)


def fill(database: Database, replicas: int) -> list[int]:
    runs = []
    with database.transaction() as connection:
        for replica in range(replicas):
            record = RunRecord(
                "sglang", "metrics", engine_version=Release.parse("0.5.10"), started_at=NOW - 3600, ended_at=NOW,
                host=f"gpu{replica}", port=30000, labels={"team": "search"},
                arguments=Arguments({name: Argument(name, effective=value) for name, value in STATED.items()}),
            )  # fmt: skip
            source = source_at(connection, f"http://gpu{replica}:30000/metrics", at=NOW)
            runs.append(save_run(connection, record, source_id=source, deployment="kimi", at=NOW))
            save_judgement(connection, runs[-1], judgement(replica), at=NOW)
    return runs


def judge_anew(database: Database, runs: list[int], turn: int) -> None:
    """The exporter sees a judgement by its instant."""
    with database.transaction() as connection:
        chosen = update(JUDGEMENTS).where(JUDGEMENTS.c.run_id.in_(runs))
        connection.execute(chosen.values(judged_at=NOW + turn))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=1_000)
    parser.add_argument("--scrapes", type=int, default=7)
    options = parser.parse_args()
    changing = {"nothing": 0, "a quarter": options.replicas // 4, "everything": options.replicas}
    spent: dict[str, list[float]] = {name: [] for name in (*changing, "packing", "library alone")}
    with (
        tempfile.TemporaryDirectory() as folder,
        open_database(f"sqlite:///{Path(folder) / 'draftscope.db'}") as database,
    ):
        runs = fill(database, options.replicas)
        exporter = Exporter(database, clock=lambda: NOW + 5)

        def timed(name: str, work: Callable[[], bytes]) -> bytes:
            start = time.process_time()
            result = work()
            spent[name].append(time.process_time() - start)
            return result

        text = exporter.exposition(generate_latest)
        families = list(text_string_to_metric_families(text.decode()))
        turn = 0
        for _ in range(options.scrapes):
            for name, changed in changing.items():
                turn += 1
                judge_anew(database, runs[:changed], turn)
                text = timed(name, partial(exporter.exposition, generate_latest))
            packed = timed("packing", partial(zlib.compress, text, 1, wbits=31))
            timed("library alone", partial(generate_latest, Given(families)))
    lines = sum(not line.startswith(b"#") for line in text.splitlines())
    print(f"{options.replicas} replicas: {lines:,} series, {len(text):,} bytes, {len(packed):,} packed")
    for name, seconds in spent.items():
        print(f"{name:14} {1000 * min(seconds):6.0f} ms CPU")


if __name__ == "__main__":
    main()
