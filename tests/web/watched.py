"""Watched engines for tests: windows as scrapes of vLLM leave them, stored the way a collector stores them."""

import random
import time
from collections.abc import Sequence

from collector.domain.arguments import Arguments
from collector.domain.drafts import Validation
from collector.domain.evidence import Evidence
from collector.domain.runs import RunRecord
from collector.domain.versions import Release
from collector.domain.windows import Origin, Window
from collector.storage.engine import Database
from collector.storage.live import Seen, append_live
from collector.storage.runs import save_run
from collector.storage.sources import source_at

STATED = {
    "model": "/models/Llama-3.3-70B-Instruct", "speculative_config.method": "eagle3", "speculative_config.num_speculative_tokens": 3,
    "speculative_config.model": "/models/llama33-eagle3", "max_num_seqs": 64,
}  # fmt: skip
EVERY = 60.0
SHARES = (0.8, 0.55, 0.4)


def windows(begin: float, end: float, *, seed: int = 1, shares: Sequence[float] = SHARES) -> list[Window]:
    """A window a minute: 100 steps of 24 requests each, of which so many shares are accepted up to each position."""
    chance = random.Random(seed)
    made = []
    at = begin + EVERY
    while at <= end:
        steps = float(chance.randrange(2300, 2500))
        accepted_at = tuple(float(round(steps * share * chance.uniform(0.97, 1.03))) for share in shares)
        accepted = sum(accepted_at)
        made.append(
            Window(
                position=round(at * 1000), line=0, at=at, unit="", seconds=EVERY, running_requests=24.0, waiting_requests=0.0,
                verify_steps=steps, accepted_tokens=accepted, drafted_tokens=3 * steps, generated_tokens=steps + accepted,
                generation_throughput=(steps + accepted) / EVERY, kv_cache_usage=0.4, accepted_at=accepted_at,
                origin=Origin.COUNTERS,
            )
        )  # fmt: skip
        at += EVERY
    return made


def watch(
    database: Database, number: int, made: Sequence[Window], *, deployment: str = "chat", sample: bool = False
) -> int:
    """Store a replica with these windows; returns its run."""
    with database.transaction() as connection:
        record = RunRecord(
            "vllm", f"http://node{number}:8000/metrics", Release.parse("0.12.0"), host=f"node{number}", port=8000,
            started_at=made[0].at - EVERY, ended_at=made[-1].at, validation=Validation(0.82),
            arguments=Arguments().with_effective(STATED, Evidence("metrics", None, "vllm:cache_config_info")),
        )  # fmt: skip
        source = source_at(connection, record.source, at=made[0].at)
        run = save_run(connection, record, source_id=source, deployment=deployment, sample=sample, at=time.time())
        append_live(connection, [Seen(run, source, made, [])])
    return run
