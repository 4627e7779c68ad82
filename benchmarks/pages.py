"""What pages cost: CPU time of the server and bytes of the first view, with many runs.

    python benchmarks/pages.py [RUNS]

Builds a database in a temporary folder with RUNS runs (200) of one deployment, each a shipped sample under another port.
Prints for each page the least CPU time of several requests in this process (the first of them makes the page, the others
find it unchanged), that of the first, and the compressed bytes with style and scripts, plotly.js apart.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import httpx
from fastapi import FastAPI

from collector.ingest import ingest
from collector.storage.engine import open_database
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import Sweep
from dashboard.pages.templating import STATIC
from dashboard.samples import FOLDER
from dashboard.service import build_app
from dashboard.settings import Settings

REPEATS = 5
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
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
    print(f"{'page':<14} {'CPU ms':>8} {'at first':>9} {'first view kB':>14}")
    async with httpx.AsyncClient(transport=transport, base_url="http://benchmark") as client:
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
            marks = ("" if 1000 * least <= CPU_LIMIT_MS else " CPU!") + ("" if size <= BYTES_LIMIT else " size!")
            print(f"{name:<14} {1000 * least:>8.1f} {1000 * times[0]:>9.1f} {size / 1000:>14.1f}{marks}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, open_database(f"sqlite:///{name}/draftscope.db") as database:
        began = time.process_time()
        ingest(database, bundles(Path(name), RUNS))
        diagnoses = Diagnoses(database)
        Sweep(diagnoses, Alerting()).sweep()
        print(f"{RUNS} runs stored and judged in {time.process_time() - began:.0f} s of CPU\n")
        app = build_app(diagnoses, Settings())
        ids = [row.id for row in app.state.store.list_runs()]
        command = (
            "python3 -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-num-steps 1"
        )
        get = {
            "runs": "/",
            "run": f"/runs/{ids[0]}",
            "compare": f"/compare?run={ids[0]}&run={ids[1]}",
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
            "API diagnosis": f"/api/v1/runs/{ids[0]}/diagnosis",
        }
        asked = {key: ("GET", address, None) for key, address in get.items()}
        asked["check answer"] = ("POST", "/check", {"command": command})
        asyncio.run(measure(app, asked))


if __name__ == "__main__":
    main()
