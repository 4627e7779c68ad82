"""CPU seconds of watching engines: reading one page of metrics, and scraping many engines beside Prometheus.

Usage: python benchmarks/scrape.py [parse|beside|fleet|all] [--seconds 20]

``parse``: one page of 137 kB, beside ``prometheus_client``, with equal values. ``beside``: 100 engines, scraped every second and
stored, by Prometheus (Debian's package ``prometheus``) and by draftscope with httpx and with aiohttp. ``fleet``: 1,000
engines every 5 s into SQLite. The engines are a process of their own; every value of their pages moves at every
scrape. Figures are CPU seconds of the process that scrapes, user and system, without its start.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from prometheus_client.parser import text_string_to_metric_families

from collector.metrics import engine_of
from collector.metrics.exposition import parse_exposition
from collector.metrics.layout import Layouts, PageReader

VARIANTS = 64
"""Pages that follow each other; the last one stays."""
SECONDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400)
GAPS = (
    0.002,
    0.004,
    0.006,
    0.008,
    0.01,
    0.015,
    0.02,
    0.025,
    0.03,
    0.035,
    0.04,
    0.06,
    0.08,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1,
    2,
    4,
    6,
    8,
)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000)
MODEL = 'model_name="meta-llama/Llama-3.3-70B-Instruct"'
RANKS = [f'engine_type="unified",{MODEL},moe_ep_rank="0",pp_rank="0",tp_rank="{rank}",dp_rank="0"' for rank in range(4)]
GAUGES = (
    "spec_accept_length", "spec_accept_rate", "num_running_reqs", "num_used_tokens", "token_usage",
    "full_token_usage", "swa_token_usage", "gen_throughput", "num_queue_reqs", "num_grammar_queue_reqs",
    "cache_hit_rate", "num_retracted_reqs", "num_paused_reqs", "utilization", "max_total_num_tokens",
    "num_prefill_prealloc_queue_reqs", "num_decode_transfer_queue_reqs", "kv_transfer_speed_gb_s",
    "kv_transfer_latency_ms", "pending_prealloc_token_usage", "new_token_ratio", "num_running_reqs_offline_batch",
    "decode_sum_seq_lens", "is_cuda_graph", "engine_startup_time", "engine_load_weights_time",
)  # fmt: skip


class Page:
    """A page as SGLang 0.5.23 with four tensor ranks writes it; counters move from one to the next."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._counters: dict[str, float] = {}

    def next(self) -> bytes:
        lines: list[str] = []
        moved = self._random.randrange

        def family(name: str, kind: str) -> None:
            lines.extend((f"# HELP sglang:{name} The {name.replace('_', ' ')}.", f"# TYPE sglang:{name} {kind}"))

        def counter(series: str, by: float) -> None:
            self._counters[series] = self._counters.get(series, 1e6) + by
            lines.append(f"sglang:{series} {self._counters[series]}")

        def histogram(name: str, bounds: tuple[float, ...], labels: list[str]) -> None:
            family(name, "histogram")
            for own in labels:
                seen = 0
                for bound in (*map(float, bounds), "+Inf"):
                    seen += moved(3)
                    counter(f'{name}_bucket{{{own},le="{bound}"}}', seen)
                counter(f"{name}_count{{{own}}}", seen)
                counter(f"{name}_sum{{{own}}}", round(seen * self._random.random(), 6))

        for name in GAUGES:
            family(name, "gauge")
            lines.extend(f"sglang:{name}{{{own}}} {self._random.random() * 3 + 1:.6f}" for own in RANKS)
        for name in ("realtime_tokens_total", "cuda_graph_passes_total"):
            family(name, "counter")
            for mode in ("prefill_compute", "prefill_cache", "decode"):
                for own in RANKS:
                    counter(f'{name}{{{own},mode="{mode}"}}', moved(400))
        steps = moved(1, 300)
        by = {"spec_verify_calls_total": steps, "generation_tokens_total": 3 * steps, "num_requests_total": 0}
        for name in (*by, "prompt_tokens_total", "cached_tokens_total", "num_aborted_requests_total"):
            family(name, "counter")
            counter(f"{name}{{{MODEL}}}", by.get(name, moved(100)))
        for name, bounds in (
            ("time_to_first_token_seconds", SECONDS), ("e2e_request_latency_seconds", SECONDS), ("inter_token_latency_seconds", GAPS),
            ("prompt_tokens_histogram", TOKENS), ("generation_tokens_histogram", TOKENS),
        ):  # fmt: skip
            histogram(name, bounds, [MODEL])
        histogram("queue_time_seconds", SECONDS, RANKS)
        stages = ("tokenize", "request_process", "prefill_bootstrap", "prefill_forward")
        histogram(
            "per_stage_req_latency_seconds", SECONDS, [f'{own},stage="{stage}"' for own in RANKS for stage in stages]
        )
        return ("\n".join(lines) + "\n").encode()


# ---- engines


class Engines(asyncio.Protocol):
    """Engines on ports of their own, which answer with the next page each time."""

    pages: tuple[bytes, ...] = ()
    answers: ClassVar[dict[str, bytes]] = {}
    served: ClassVar[dict[int, int]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.port = transport.get_extra_info("sockname")[1]
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            head, _, self.rest = self.rest.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            status, kind = b"200 OK", b"text/plain; version=0.0.4"
            if path == "/metrics":
                number = self.served.get(self.port, 0)
                self.served[self.port] = number + 1
                body = self.pages[min(number, len(self.pages) - 1)]
            elif path == "/served":
                body = str(sum(self.served.values())).encode()
            else:
                body = self.answers.get(path, b"")
                status, kind = (b"200 OK", b"application/json") if body else (b"404 Not Found", b"text/plain")
            length = b"Content-Length: %d" % len(body)
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\nContent-Type: " + kind + b"\r\n" + length + b"\r\n\r\n" + body
            )


async def serve(count: int) -> None:
    page = Page()
    Engines.pages = tuple(page.next() for _ in range(VARIANTS))
    runs = {"version": "0.5.23", "speculative_algorithm": "EAGLE3", "speculative_num_steps": 5, "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 6, "tp_size": 4, "served_model_name": "llama", "model_path": "llama"}  # fmt: skip
    Engines.answers = {
        "/v1/models": json.dumps({"data": [{"id": "llama", "owned_by": "sglang"}]}).encode(),
        "/server_info": json.dumps({**runs, "internal_states": [{}]}).encode(),
    }
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(Engines, "127.0.0.1", 0, backlog=16) for _ in range(count)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.Event().wait()


@contextmanager
def engines(count: int) -> Iterator[list[int]]:
    process = subprocess.Popen(
        [sys.executable, __file__, "serve", "--count", str(count)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def served(ports: list[int]) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/served") as answer:
        return int(answer.read())


# ---- who scrapes


async def collect(ports: list[int], client: str, interval: float, warm_up: float, seconds: float) -> None:
    """Scrape and store; print CPU seconds and scrapes after the warm-up."""
    from collector.sources.fetching import Client
    from collector.storage.engine import open_database
    from dashboard import garbage
    from dashboard.collecting import Collection
    from dashboard.targets import Target

    targets = [Target(url=f"http://127.0.0.1:{port}", interval_seconds=interval) for port in ports]
    with tempfile.TemporaryDirectory() as folder, open_database(f"sqlite:///{folder}/draftscope.db") as database:
        stop = asyncio.Event()
        collection = Collection(database, targets, client=Client(client))
        garbage.settle()  # as the service does
        task = asyncio.create_task(collection.run(stop))
        while not all(s.scrapes >= 2 or s.error for s in collection.states()) or not collection.states():  # noqa: ASYNC110
            await asyncio.sleep(1)
        await asyncio.sleep(warm_up)
        before, spent, began = (
            sum(state.scrapes for state in collection.states()),
            time.process_time(),
            time.monotonic(),
        )
        await asyncio.sleep(seconds)
        scrapes = sum(state.scrapes for state in collection.states()) - before
        print(json.dumps([time.process_time() - spent, scrapes, time.monotonic() - began]), flush=True)
        failed = [state.error for state in collection.states() if state.error]
        assert not failed, failed[0]
        stop.set()
        await task


def ours(ports: list[int], client: str, interval: float, warm_up: float, seconds: float) -> tuple[float, int, float]:
    command = [sys.executable, __file__, "collect", "--client", client, "--interval", str(interval), "--warm-up", str(warm_up),
               "--seconds", str(seconds)]  # fmt: skip
    done = subprocess.run(command, input=json.dumps(ports), stdout=subprocess.PIPE, text=True, check=True)
    spent, scrapes, wall = json.loads(done.stdout)
    return spent, scrapes, wall


def prometheus(ports: list[int], interval: float, warm_up: float, seconds: float) -> tuple[float, int]:
    program = shutil.which("prometheus")
    assert program is not None, "prometheus is not installed (Debian's package of that name)"
    with tempfile.TemporaryDirectory() as folder:
        targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
        Path(folder, "prometheus.yml").write_text(
            f"global: {{scrape_interval: {interval:g}s, scrape_timeout: {interval:g}s}}\n"
            f"scrape_configs: [{{job_name: engines, static_configs: [{{targets: [{targets}]}}]}}]\n"
        )
        command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                   "--web.listen-address=127.0.0.1:0", "--log.level=error"]  # fmt: skip
        process = subprocess.Popen(command)
        try:
            while served(ports) < 2 * len(ports):
                time.sleep(1)
            time.sleep(warm_up)
            spent, scrapes = cpu_of(process.pid), served(ports)
            time.sleep(seconds)
            return cpu_of(process.pid) - spent, served(ports) - scrapes
        finally:
            process.kill()
            process.wait()


def cpu_of(pid: int) -> float:
    """User and system seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- what is measured


def parse() -> None:
    source = Page()
    pages = [source.next() for _ in range(8)]
    wanted = engine_of(pages[0]).sample_names
    some, every = PageReader(Layouts(wanted)), PageReader(Layouts(_Everything()))

    def reference(page: bytes) -> list[tuple[str, dict[str, str], float]]:
        families = text_string_to_metric_families(page.decode())
        return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]

    for page in pages:
        expected = reference(page)
        assert [tuple(sample) for sample in every.read(page, "")] == expected
        assert [tuple(sample) for sample in some.read(page, "")] == [
            sample for sample in expected if sample[0] in wanted
        ]
    readers: dict[str, Callable[[bytes], object]] = {
        "prometheus_client, all samples": reference,
        "line by line, strictly, wanted families": lambda page: parse_exposition(page, wanted=wanted),
        "by place, all samples": lambda page: every.read(page, ""),
        "by place, wanted families": lambda page: some.read(page, ""),
    }
    best = dict.fromkeys(readers, float("inf"))
    for _ in range(12):
        for name, read in readers.items():
            times = 1 if name.startswith("prometheus") else 10
            began = time.process_time()
            for _ in range(times):
                for page in pages:
                    read(page)
            best[name] = min(best[name], (time.process_time() - began) / times / len(pages))
    first = next(iter(best.values()))
    print(
        f"one page of {len(pages[0]):,} bytes, {len(expected)} samples, {len(some.read(page, ''))} of them wanted; equal values"
    )
    for name, spent in best.items():
        print(f"  {name:42} {spent * 1e6:9.0f} us  {first / spent:6.0f} x")


class _Everything:
    def __contains__(self, name: object) -> bool:
        return True


def beside(seconds: float) -> None:
    figures: dict[str, list[float]] = {}
    for _ in range(2):
        for name in ("prometheus", "httpx", "aiohttp"):
            with engines(100) as ports:
                if name == "prometheus":
                    spent, scrapes = prometheus(ports, 1, 3, seconds)
                else:
                    spent, scrapes, _ = ours(ports, name, 1, 3, seconds)
            figures.setdefault(name, []).append(spent / scrapes)
    print("100 engines every second, 137 kB each, stored: CPU a scrape")
    first = min(figures["prometheus"])
    for name, values in figures.items():
        title = name if name == "prometheus" else f"draftscope with {name}"
        print(f"  {title:42} {min(values) * 1e3:6.2f} ms  {min(values) / first:6.2f} of Prometheus")


def fleet(seconds: float) -> None:
    with engines(1_000) as ports:
        spent, scrapes, wall = ours(ports, "aiohttp", 5, 5, seconds)
    print(f"1,000 engines every 5 s, stored in SQLite, aiohttp: {scrapes / wall:.0f} scrapes/s, {spent / scrapes * 1e3:.2f} ms each, "
          f"{spent / wall:.1%} of one core; at 200 scrapes/s {spent / scrapes * 200:.1%}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="?", default="all", choices=["parse", "beside", "fleet", "all", "serve", "collect"]
    )
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--count", type=int, default=100, help=argparse.SUPPRESS)
    parser.add_argument("--client", default="httpx", help=argparse.SUPPRESS)
    parser.add_argument("--interval", type=float, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--warm-up", type=float, default=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if given.what == "serve":
        asyncio.run(serve(given.count))
    elif given.what == "collect":
        asyncio.run(collect(json.load(sys.stdin), given.client, given.interval, given.warm_up, given.seconds))
    if given.what in {"parse", "all"}:
        parse()
    if given.what in {"beside", "all"}:
        beside(given.seconds)
    if given.what in {"fleet", "all"}:
        fleet(given.seconds)


if __name__ == "__main__":
    main()
