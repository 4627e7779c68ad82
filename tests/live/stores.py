"""Real stores of samples on this machine that hold recorded snapshots as if they had scraped them."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from collector.metrics.exposition import Sample, parse_exposition

Snapshots = Sequence[tuple[float, bytes]]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def program(arguments: Sequence[str], folder: Path, ready: str) -> Iterator[None]:
    """A program that runs until the end; what it says goes into a file of the folder."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=output, cwd=folder)
        try:
            for _ in range(600):
                if process.poll() is not None:
                    break
                try:
                    if httpx.get(ready).status_code == 200:
                        break
                except httpx.TransportError:
                    pass
                time.sleep(0.1)
            else:
                raise AssertionError((folder / "output").read_text()[-2000:])
            assert process.poll() is None, (folder / "output").read_text()[-2000:]
            yield
        finally:
            process.terminate()
            process.wait(20)


def labelled(snapshots: Snapshots, **labels: str) -> list[tuple[float, Sample]]:
    """Every sample of the snapshots as a collector stores it: with its labels, those of the engine aside if they collide."""
    found = []
    for at, body in snapshots:
        for name, own, value in parse_exposition(body):
            kept = {f"exported_{key}" if key in labels else key: text for key, text in own.items()}
            found.append((at, Sample(name, {**kept, **labels}, value)))
    return found


def lines(samples: Iterable[tuple[float, Sample]], unit: float) -> Iterator[str]:
    """Samples as text, series by series, with their times in this unit (seconds)."""
    ordered = sorted(samples, key=lambda item: (item[1].name, sorted(item[1].labels.items()), item[0]))
    for at, (name, labels, value) in ordered:
        shown = ",".join(f"{key}={json.dumps(text)}" for key, text in labels.items())
        yield f"{name}{{{shown}}} {value!r} {at / unit:.{3 if unit == 1 else 0}f}\n"


@contextmanager
def prometheus(folder: Path, samples: Iterable[tuple[float, Sample]], *options: str) -> Iterator[str]:
    """Prometheus, with the samples in its blocks."""
    folder.mkdir()
    (folder / "samples.om").write_text("".join(lines(samples, 1.0)) + "# EOF\n")
    build = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples.om", "data"]
    built = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (folder / "prometheus.yml").write_text("{}\n")
    url = f"http://127.0.0.1:{free_port()}"
    arguments = [
        "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address={url.removeprefix('http://')}", *options,
    ]  # fmt: skip
    with program(arguments, folder, f"{url}/-/ready"):
        yield url


@contextmanager
def victoria_metrics(folder: Path, samples: Iterable[tuple[float, Sample]]) -> Iterator[str]:
    """VictoriaMetrics, with the samples imported."""
    folder.mkdir()
    url = f"http://127.0.0.1:{free_port()}"
    arguments = [
        "victoria-metrics", "-storageDataPath=data", "-retentionPeriod=100y",
        f"-httpListenAddr={url.removeprefix('http://')}",
    ]  # fmt: skip
    with program(arguments, folder, f"{url}/health"):
        body = "".join(lines(samples, 0.001))
        assert httpx.post(f"{url}/api/v1/import/prometheus", content=body, timeout=60).status_code == 204
        assert httpx.get(f"{url}/internal/force_flush").status_code == 200
        yield url
