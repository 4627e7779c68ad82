"""CPU seconds of judging many long runs: 1,000 runs of 1,000 windows each, with every rule; and one that is watched.

Usage: python benchmarks/judging.py [--runs 1000] [--windows 1000] [--watched 30]

``--watched DAYS``: a run that was scraped every 15 s for so long, out of SQLite: what its detectors take for their first look
back, and a judgement.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
from made_tiers import DAY, INTERVAL, START, add_replicas, fill_raw, fill_rollups, scrapes

from analysis.runner import diagnose
from collector.domain.arguments import Arguments, LaunchCommand
from collector.domain.drafts import Validation
from collector.domain.evidence import Evidence
from collector.domain.runs import Bundle, RunRecord
from collector.domain.windows import Window
from collector.storage.engine import open_database
from dashboard.diagnoses import Diagnoses
from dashboard.watching import take_in

ARGUMENTS = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 5,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 6,
    "enable_two_batch_overlap": False,
    "max_running_requests": 48,
}


def bundle(seed: int, windows: int) -> Bundle:
    random = np.random.default_rng(seed)
    lengths = np.round(2.7 + 0.2 * random.standard_normal(windows), 2)
    running = random.integers(6, 10, windows)
    seconds = running * 40 * lengths / (running * 130.0)
    at = 1_775_000_000.0 + np.cumsum(seconds)
    rows = [
        Window(
            position=i, line=i + 1, at=float(at[i]), seconds=float(seconds[i]), running_requests=float(running[i]),
            waiting_requests=0.0, verify_steps=40.0 * running[i], accepted_tokens=(lengths[i] - 1) * 40.0 * running[i],
            generated_tokens=lengths[i] * 40.0 * running[i], generation_throughput=float(running[i] * 130.0),
            printed_length=float(lengths[i]), printed_rate=round(float(lengths[i]) / 6, 2),
            tokens_in_use=900.0 * running[i], kv_cache_usage=0.1, graph=True,
        )
        for i in range(windows)
    ]  # fmt: skip
    arguments = Arguments().with_effective(ARGUMENTS, Evidence("log", 1, "server_args=…"))
    arguments = arguments.with_launch(LaunchCommand("sglang", "…", {"speculative_num_draft_tokens": 6}))
    return Bundle(RunRecord("sglang", "log", arguments=arguments, windows=rows, validation=Validation(0.72)))


def watched(days: int) -> None:
    last = START + days * DAY
    raw = min(days, 2) * DAY
    with tempfile.TemporaryDirectory() as folder, open_database(f"sqlite:///{folder}/draftscope.db") as database:
        arguments = Arguments().with_effective({"method": "eagle3", "num_speculative_tokens": 3}, Evidence("a", 1, "b"))
        (run_id,) = add_replicas(database, [RunRecord("vllm", "http://gpu1:8000/metrics", arguments=arguments)])
        fill_raw(database, 1, [one for (one,) in scrapes(1, raw // INTERVAL, last - raw)])
        fill_rollups(database, 1, last, {60: min(days, 14), 3600: days})
        spent = []
        for work in (lambda: take_in(database, run_id), *[lambda: Diagnoses(database).of(run_id)] * 3):
            start = time.process_time()
            work()
            spent.append(1000 * (time.process_time() - start))
    first, *judged = spent
    print(f"watched for {days} days: detectors {first:.0f} CPU ms at first; a judgement {min(judged):.0f} CPU ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--windows", type=int, default=1_000)
    parser.add_argument("--watched", type=int, metavar="DAYS")
    options = parser.parse_args()
    if options.watched:
        watched(options.watched)
        return
    spent = 0.0
    for seed in range(options.runs):
        given = bundle(seed, options.windows)
        start = time.process_time()
        document = diagnose(given).document()
        spent += time.process_time() - start
        assert document["crashed"] == []
    print(
        f"{options.runs} runs of {options.windows} windows: {spent:.1f} CPU s, {1000 * spent / options.runs:.1f} ms a run"
    )


if __name__ == "__main__":
    main()
