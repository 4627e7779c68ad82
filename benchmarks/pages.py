"""What pages cost: CPU time of the server and bytes of the first view, with many runs.

    python benchmarks/pages.py [--runs 200] [--replicas 100] [--days 30]

Builds a database in a temporary folder with runs of one deployment, each a shipped sample under another port, and with replicas
that were watched for a month: raw windows, minutes and hours as retention leaves them. Prints for each page, with nothing in
memory but the program, the CPU time of its first request and the least of several more (whose data did not change), and
the compressed bytes with style and scripts, plotly.js apart. The bar: at most 100 ms and 400 kB.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx
from fastapi import FastAPI
from made_tiers import DAY, GROUP, INTERVAL, add_replicas, fill_raw, fill_rollups, scrapes

from collector.domain.arguments import Arguments
from collector.domain.drafts import Validation
from collector.domain.evidence import Evidence
from collector.domain.runs import RunRecord
from collector.domain.versions import Release
from collector.ingest import ingest
from collector.storage.engine import Database, open_database
from collector.storage.limits import Retention
from collector.storage.runs import load_stored
from collector.storage.states import bundle_state
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import Sweep, judge_run, store_judgement
from dashboard.pages.over_time import RANGES
from dashboard.pages.templating import STATIC
from dashboard.samples import FOLDER
from dashboard.service import build_app, prepare_pages
from dashboard.settings import Settings

REPEATS = 5
STATED = {"model": "/models/Llama-3.3-70B-Instruct", "speculative_config.method": "eagle3", "speculative_config.num_speculative_tokens": 3,
          "speculative_config.model": "/models/llama33-eagle3", "tensor_parallel_size": 4, "max_num_seqs": 64}  # fmt: skip
REALLY_JUDGED = 2
WARM = ("/check", "/definitions")
"""Pages whose first request also loads modules that all need."""
CPU_LIMIT_MS = 100
BYTES_LIMIT = 400_000


def bundles(folder: Path, count: int) -> list[Path]:
    """Bundles that differ in port and time, of the shipped sample."""
    made = []
    for number in range(count):
        place = folder / f"bundle-{number:03}"
        place.mkdir()
        for path in (FOLDER / "kimi-k25-capture-fixed").iterdir():
            if path.name in ("previous.log", "baseline.log", "previous_draft_config.json"):
                continue
            if path.suffix == ".log":
                text = path.read_text()
                text = re.sub(r"port=\d+", f"port={20000 + number}", text)
                hour = f"{number % 24:02}"
                (place / path.name).write_text(re.sub(r"(\d{4}-\d\d-\d\d) \d\d:", rf"\1 {hour}:", text))
            else:
                shutil.copy(path, place)
        made.append(place)
    return made


async def measure(app: FastAPI, addresses: dict[str, tuple[str, str, dict[str, str] | None]]) -> None:
    transport = httpx.ASGITransport(app)
    print(
        f"{'page':<20} {'CPU ms':>8} {'at first':>9} {'first view kB':>14}   bar {CPU_LIMIT_MS} ms, {BYTES_LIMIT // 1000} kB"
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://benchmark") as client:
        prepare_pages()  # as the service does when it starts
        for address in WARM:
            await client.get(address)
        for name, (method, address, body) in addresses.items():
            times = []
            for _ in range(REPEATS):
                began = time.process_time()
                answer = await client.request(method, address, data=body)
                times.append(time.process_time() - began)
            least = min(times)
            answer.raise_for_status()
            size = len(gzip.compress(answer.content, 6))
            for asset in set(re.findall(r'/static/([^"?]+)', answer.text)):
                if "plotly" not in asset:
                    size += len(gzip.compress((STATIC / asset).read_bytes(), 6))
            met = 1000 * max(times[0], least) <= CPU_LIMIT_MS and size <= BYTES_LIMIT
            print(
                f"{name:<20} {1000 * least:>8.1f} {1000 * times[0]:>9.1f} {size / 1000:>14.1f}   {'met' if met else 'NOT MET'}"
            )


def watched(database: Database, count: int, days: int) -> list[int]:
    """Replicas that were watched for so many days, all of one deployment, in the tiers that retention leaves."""
    last = (int(time.time()) // 3600 + 1) * 3600
    began = float(last - days * DAY)
    stated = Arguments().with_effective(STATED, Evidence("metrics", None, "vllm:cache_config_info"))
    records = [
        RunRecord(
            "vllm", f"http://node{number}:8000/metrics", Release.parse("0.12.0"), started_at=began, ended_at=last - 1.0,
            host=f"node{number}", port=8000, arguments=stated, validation=Validation(0.72), labels={"zone": f"z{number % 3}"},
        )
        for number in range(count)
    ]  # fmt: skip
    runs = add_replicas(database, records)
    kept = Retention()
    fill_rollups(database, count, last, {60: min(days, int(kept.minute_days)), 3600: days})
    rounds = int(min(days * 24, kept.raw_hours) * 3600 // INTERVAL)
    fill_raw(database, count, [one[0] for one in scrapes(1, rounds, last - rounds * INTERVAL)])
    return runs


def judged(diagnoses: Diagnoses, runs: Sequence[int], really: int) -> None:
    """Judge some replicas; the others are judged alike, because their data are."""
    done = [judge_run(diagnoses, run, Alerting()) for run in runs[:really]]
    model = done[-1]
    assert model is not None
    for run in runs[really:]:
        with diagnoses.database.transaction() as connection:
            state = bundle_state(connection, run)
            alike = replace(model, run=load_stored(connection, run), state=state)
            store_judgement(connection, alike, diagnoses.thresholds, Alerting(), at=time.time())


def addresses(files: Sequence[int], live: Sequence[int]) -> dict[str, tuple[str, str, dict[str, str] | None]]:
    command = "python3 -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-num-steps 1"
    get = {
        "runs": "/",
        "run": f"/runs/{files[0]}",
        "run, another": f"/runs/{files[-1]}",
        "live run": f"/runs/{live[0]}",
        "live run, another": f"/runs/{live[-1]}",
        **{f"over time, {name}": f"/runs/{live[1]}/over-time?range={name}" for name in RANGES},
        "fleet over time": f"/groups?group={GROUP}&range=30d",
        "compare": f"/compare?run={files[1]}&run={files[2]}",
        "compare live": f"/compare?run={live[2]}&run={live[3]}",
        "choose": "/compare",
        "check form": "/check",
        "upload": "/upload",
        "drafts": "/drafts",
        "alerts": "/alerts",
        "rules": "/rules",
        "rule": "/rules/FLG001",
        "targets": "/targets",
        "settings": "/settings",
        "definitions": "/definitions",
        "API runs": "/api/v1/runs",
        "API findings": "/api/v1/findings?state=open&severity=warning",
        "API diagnosis": f"/api/v1/runs/{files[3]}/diagnosis",
        "API live diagnosis": f"/api/v1/runs/{live[4]}/diagnosis",
        "API compare": f"/api/v1/compare?run={files[4]}&run={files[5]}",
    }
    asked: dict[str, tuple[str, str, dict[str, str] | None]] = {
        key: ("GET", address, None) for key, address in get.items()
    }
    asked["check answer"] = ("POST", "/check", {"command": command})
    return asked


def fill(database: Database, folder: Path, options: argparse.Namespace) -> tuple[Sequence[int], Sequence[int]]:
    """The runs of logs and the watched ones, judged; says what that cost."""
    began = time.process_time()
    files = ingest(database, bundles(folder, options.runs)).run_ids
    diagnoses = Diagnoses(database)
    Sweep(diagnoses, Alerting(), spent=float).sweep()
    done = time.process_time()
    print(f"{len(files)} runs stored and judged in {done - began:.0f} s of CPU")
    live = watched(database, options.replicas, options.days)
    filled = time.process_time()
    judged(diagnoses, live, REALLY_JUDGED)
    each = (time.process_time() - filled) / REALLY_JUDGED
    print(
        f"{len(live)} live replicas over {options.days} days; judging one for the first time takes {each:.2f} s of CPU\n"
    )
    return files, live


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--days", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, open_database(f"sqlite:///{name}/draftscope.db") as database:
        files, live = fill(database, Path(name), options)
        app = build_app(Diagnoses(database), Settings())  # as after a start: nothing is in memory
        asyncio.run(measure(app, addresses(files, live)))


if __name__ == "__main__":
    main()
