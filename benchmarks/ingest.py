"""How much work it is to read a log, beside other tools that read the same: ``python benchmarks/ingest.py``.

Prints processor seconds of each method's process tree and its peak memory, beside the work of ``grep -c``
(which only counts lines with a sample's words in them), of mtail with a program for the same figures, and of
lnav with a format for them. Methods take turns, and the least of several tries counts, so that other work on the
machine matters little. What each method found is compared with what is true of the made log.

All of it (two engines, 15 % and 3 % of samples, 100 MB and 1 GB) takes an hour and 6 GB of disk; a quick look is
``--size 30M --engine sglang --share 0.15 --tries 2``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from made_logs import LOGS, parsed_size

HERE = Path(__file__).resolve()
TOOLS = HERE.with_name("tools")
PROGRAM = str(Path(sys.executable).with_name("draftscope"))
NEEDLES = {"sglang": "] Decode batch", "vllm": "SpecDecoding metrics: "}
SUMMED_BY_LNAV = {"sglang": ("running", "tokens", "waiting"), "vllm": ("accepted", "drafted")}
FIGURES: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "sglang": {
        "running": ("running_requests", 1),
        "waiting": ("waiting_requests", 1),
        "tokens": ("tokens_in_use", 1),
        "usage": ("kv_cache_usage", 100),
        "length": ("printed_length", 100),
        "rate": ("printed_rate", 100),
        "throughput": ("generation_throughput", 100),
        "new_tokens": ("new_tokens", 1),
        "cached_tokens": ("cached_tokens", 1),
    },
    "vllm": {
        "running": ("running_requests", 1),
        "waiting": ("waiting_requests", 1),
        "usage": ("kv_cache_usage", 1_000),
        "accepted": ("accepted_tokens", 1),
        "drafted": ("drafted_tokens", 1),
        "drafts": ("verify_steps", 1),
        "length": ("printed_length", 100),
    },
}
"""Sums of the truth: the column they are sums of, and how many of the truth's units make 1."""
PACKED = {"the same of .gz": ".gz", "the same of .zst": ".zst"}
LONG = "the same of a 300 MB line"
LONG_LINE = 300_000_000
BEGINNING = 2_000_000
"""Bytes of a log that is short, and for which all of the program is loaded."""
MOST_JUDGED = 200_000_000
"""Larger logs are stored and not judged here: a judgement takes memory for every window."""

Found = Mapping[str, int]


class Spent(NamedTuple):
    """Processor seconds, peak memory in MB, and what was printed."""

    seconds: float
    peak: float
    printed: str


def run(command: Sequence[str]) -> Spent:
    """Run a command and measure it with all that it starts. Its peak is not told below this process's own, which is small."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, stdout=printed, env={**os.environ, "LC_ALL": "C"})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


@dataclass
class Method:
    """One way to read a log.

    ``start`` is the same command with hardly any input: its work is taken off. ``found`` says from
    what was printed what the method found; ``prepare`` is done before each run.
    """

    name: str
    command: Sequence[str]
    start: Sequence[str] = ()
    found: Callable[[str], Found] | None = None
    prepare: Callable[[], object] = lambda: None
    spent: list[Spent] = field(default_factory=list)
    started: list[Spent] = field(default_factory=list)
    """Of all methods that start with the same command: its work scatters more than what it is taken off."""

    def run(self) -> None:
        for command, kept in ((self.start, self.started), (self.command, self.spent)):
            if command:
                self.prepare()
                kept.append(run(command))

    @property
    def at_start(self) -> float:
        return min((spent.seconds for spent in self.started), default=0.0)

    @property
    def seconds(self) -> float:
        return min(spent.seconds for spent in self.spent) - self.at_start

    @property
    def peak(self) -> float:
        return max(spent.peak for spent in self.spent)


# ---- what runs in a process of its own, so that this one stays small: python benchmarks/ingest.py --inside WHAT FILE…


def inside(what: str, files: Sequence[Path]) -> None:
    from dashboard.cli.process import prepare_for_bulk

    prepare_for_bulk()
    work: dict[str, Callable[..., object]] = {
        "forms": make_forms, "long": make_long, "parse": parse, "store": store, "sums": sums, "judge": judge,
    }  # fmt: skip
    json.dump(work[what](*files), sys.stdout)


def make_forms(log: Path) -> None:
    """Write a log's beginning, a copy that every tool can read, and the compressed forms."""
    import gzip

    import zstandard

    readable = bytes(byte if byte in b"\t\n" or 32 <= byte < 127 else ord("?") for byte in range(256))
    with (
        log.open("rb") as source,
        form_of(log, ".ascii").open("wb") as plain,
        gzip.open(form_of(log, ".gz"), "wb", compresslevel=6) as packed,
        form_of(log, ".zst").open("wb") as target,
        zstandard.ZstdCompressor(level=3).stream_writer(target) as compressed,
    ):
        form_of(log, ".short").write_bytes(source.read(BEGINNING).rpartition(b"\n")[0] + b"\n")
        source.seek(0)
        while block := source.read(1 << 20):
            plain.write(block.translate(readable))
            packed.write(block)
            compressed.write(block)


def make_long(log: Path) -> None:
    """Write a log's beginning with one very long line in its middle."""
    begins = form_of(log, ".short").read_bytes()
    with form_of(log, ".long").open("wb") as file:
        file.write(begins)
        for _ in range(LONG_LINE // 1_000_000):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + begins)


def parse(log: Path) -> Found:
    """Read a log without storing it; sums of what was read."""
    from collector.formats.base import ReadOptions, RunPart
    from collector.formats.reader import LogReader
    from collector.sources.file import blocks

    found: dict[str, float] = {}
    wanted = {column for figures in FIGURES.values() for column, _ in figures.values()}

    def add(parts: Sequence[RunPart]) -> None:
        for part in parts:
            for kind, chunks in (
                ("windows", [part.run.windows, *(chunk.rows() for chunk in part.windows)]),
                ("prefills", [part.run.prefills, *(chunk.rows() for chunk in part.prefills)]),
            ):
                for rows in chunks:
                    found[kind] = found.get(kind, 0) + len(rows)
                    for name in wanted.intersection(rows[0]._fields) if rows else ():
                        values = [value for row in rows if isinstance(value := getattr(row, name), (int, float))]
                        found[name] = found.get(name, 0) + sum(values)

    reader = LogReader(ReadOptions(str(log)))
    for block in blocks(log):
        reader.feed(block)
        add(reader.take(columns=True))
    reader.finish()
    add(reader.take(columns=True))
    return in_units(found, format_of(reader))


def format_of(reader: Any) -> str:
    return str(reader.format.engine)


def in_units(found: Mapping[str, float], engine: str) -> Found:
    """Sums of columns as the truth has them."""
    rows = ("windows", "prefills") if engine == "sglang" else ("windows",)  # vLLM prints no prefills, they are derived
    units = {**{kind: (kind, 1) for kind in rows}, **FIGURES[engine]}
    return {name: round(found[column] * unit) for name, (column, unit) in units.items() if column in found}


def store(log: Path, database: Path) -> None:
    """Store a log, without judging its runs."""
    from collector.ingest import ingest
    from dashboard.database import open_configured
    from dashboard.masked import SecretUrl

    with open_configured(SecretUrl(f"sqlite:///{database}")) as opened:
        ingest(opened, [log])


def sums(database: Path) -> Found:
    """Sums of what is stored."""
    import sqlite3

    connection = sqlite3.connect(database)
    (engine,) = connection.execute("SELECT DISTINCT engine FROM runs").fetchone()
    found: dict[str, float] = {}
    for table, kind in (("decode_samples", "windows"), ("prefill_samples", "prefills")):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        wanted = [column for column, _ in FIGURES[engine].values() if column in columns]
        expressions = ", ".join(["count(*)", *(f"sum({column})" for column in wanted)])
        found |= zip((kind, *wanted), connection.execute(f"SELECT {expressions} FROM {table}").fetchone(), strict=True)
    return in_units({name: value for name, value in found.items() if value is not None}, engine)


def judge(database: Path) -> None:
    """Judge all runs that are stored."""
    from sqlalchemy import select

    from collector.storage.tables import RUNS
    from dashboard.alerts import Alerting
    from dashboard.database import open_configured
    from dashboard.diagnoses import Diagnoses
    from dashboard.judging import judge_runs
    from dashboard.masked import SecretUrl

    with open_configured(SecretUrl(f"sqlite:///{database}")) as opened:
        with opened.reading() as connection:
            runs = list(connection.execute(select(RUNS.c.id)).scalars())
        judge_runs(Diagnoses(opened), runs, Alerting(()))


# ---- the methods


def own(what: str, *files: Path) -> list[str]:
    return [sys.executable, str(HERE), "--inside", what, *map(str, files)]


def form_of(log: Path, suffix: str) -> Path:
    return log.with_name(log.name + suffix)


def found_by_mtail(engine: str) -> Callable[[str], Found]:
    def found(printed: str) -> Found:
        totals: dict[str, float] = {}
        for name, value in re.findall(r"(?m)^(\w+)\{[^}]*\} (\S+)$", printed):
            totals[name] = totals.get(name, 0) + float(value)
        totals.pop("throughput", None)  # the last one only
        return {name: round(total * FIGURES[engine].get(name, ("", 1))[1]) for name, total in totals.items()}

    return found


def found_by_lnav(engine: str) -> Callable[[str], Found]:
    def found(printed: str) -> Found:
        row = printed.split("\n")[1].split()
        return {name: int(value) for name, value in zip(("windows", *SUMMED_BY_LNAV[engine]), row, strict=True)}

    return found


def methods_for(engine: str, log: Path) -> Iterator[Method]:
    """The ways to read a log; a tool that is not installed is told and left out."""
    short, database = form_of(log, ".short"), log.with_name("made.db")

    def anew() -> None:
        for path in log.parent.glob("made.db*"):
            path.unlink()

    if found("grep"):
        yield Method("grep -c", ["grep", "-a", "-c", "-F", NEEDLES[engine], str(log)])
    if found("mtail"):
        command = [
            "mtail", "-one_shot", "-one_shot_format", "prometheus", "-progs", str(TOOLS / f"{engine}.mtail"),
            "-logs", str(form_of(log, ".ascii")), "-logtostderr=false", "-port", "0", "-log_dir", str(log.parent),
        ]  # fmt: skip
        yield Method("mtail", command, found=found_by_mtail(engine))
    if found("lnav"):
        columns = ", ".join(f"sum({name})" for name in SUMMED_BY_LNAV[engine])
        query = f";SELECT count(*), {columns} FROM {engine}_log WHERE {SUMMED_BY_LNAV[engine][0]} IS NOT NULL"
        command = ["lnav", "-n", "-I", str(TOOLS / "lnav"), "-c", query, str(form_of(log, ".ascii"))]
        yield Method("lnav", command, found=found_by_lnav(engine))
    dry = [PROGRAM, "ingest", "--dry-run"]
    for name, suffix in (("ingest --dry-run", ""), *PACKED.items()):
        yield Method(name, [*dry, str(form_of(log, suffix))], [*dry, str(short)])
    yield Method(LONG, [*dry, str(form_of(log, ".long"))], [*dry, str(short)])
    yield Method("ingest into SQLite", own("store", log, database), own("store", short, database), prepare=anew)


def found(tool: str) -> bool:
    if shutil.which(tool) is None:
        print(f"{tool} is not installed and left out")
        return False
    return True


def compare(engine: str, size: int, share: float, tries: int, folder: Path, seed: int) -> None:
    """Make a log, read it in all ways, and print what each took and whether it found what is there."""
    log, truth_file = folder / f"{engine}.log", folder / "truth.json"
    made = [sys.executable, str(HERE.with_name("made_logs.py")), engine, str(log), str(truth_file)]
    run([*made, "--size", str(size), "--share", str(share), "--seed", str(seed)])
    truth: Found = json.loads(truth_file.read_text("utf-8"))
    run(own("forms", log))
    run(own("long", log))
    print(
        f"\n## {engine}, {truth['bytes'] / 1e6:,.0f} MB, {truth['lines']:,} lines, {share:.0%} samples: {truth['windows']:,} windows, "
        f"{truth['torn']:,} torn, {truth['decoys']:,} decoys\n"
    )
    methods = list(methods_for(engine, log))
    starts: dict[tuple[str, ...], list[Spent]] = {}
    for method in methods:
        method.started = starts.setdefault(tuple(method.start), method.started)
    for _ in range(tries):
        for method in methods:
            method.run()
    by_name = {method.name: method for method in methods}
    print_table(methods, by_name.get("grep -c"), by_name.get("mtail"))
    print()
    for method in methods:
        if method.found is not None:
            tell(method.name, method.found(method.spent[0].printed), truth)
    for name, suffix in (("plain", ""), (".gz", ".gz"), (".zst", ".zst")):
        tell(f"parsed from {name}", json.loads(run(own("parse", form_of(log, suffix))).printed), truth)
    database = log.with_name("made.db")
    tell("in the database", json.loads(run(own("sums", database)).printed), truth)
    run(own("store", log, database))
    tell("stored twice", json.loads(run(own("sums", database)).printed), truth)
    if truth["bytes"] <= MOST_JUDGED:
        judged = run(own("judge", database))
        print(f"judging all runs, apart from the above: {judged.seconds:.2f} CPU s, {judged.peak:.0f} MB")


def print_table(methods: Sequence[Method], grep: Method | None, mtail: Method | None) -> None:
    print("| method | CPU s | at start | peak MB | above start | × grep -c | of mtail's | of plain |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    plain = next(method for method in methods if method.name == "ingest --dry-run")
    for method in methods:
        cells = [method.name, f"{method.seconds:.2f}", "", f"{method.peak:.0f}", "", "", "", ""]
        if method.started:
            cells[2] = f"{method.at_start:.2f}"
            cells[4] = f"{method.peak - max(spent.peak for spent in method.started):+.0f}"
        if method.name == LONG:  # other bytes: only its memory compares
            cells[1] = ""
        else:
            cells[5] = f"{method.seconds / grep.seconds:.1f}" if grep is not None else ""
            cells[6] = f"1/{mtail.seconds / method.seconds:.1f}" if mtail is not None and method.started else ""
            cells[7] = f"{method.seconds / plain.seconds:.2f}" if method.name in PACKED else ""
        print(f"| {' | '.join(cells)} |")


def tell(name: str, found: Found, truth: Found) -> None:
    """Print whether all that was found is true."""
    wrong = [
        f"{key} {value:,} instead of {truth.get(key, 0):,}"
        for key, value in found.items()
        if value != truth.get(key, 0)
    ]
    print(f"{name}: {', '.join(wrong) if wrong else f'exact ({len(found)} sums)'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parsed_size, nargs="+", default=[10**8, 10**9], help="for instance 100M 1G")
    parser.add_argument("--engine", choices=LOGS, nargs="+", default=list(LOGS))
    parser.add_argument("--share", type=float, nargs="+", default=[0.15, 0.03], help="share of lines that are samples")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where logs are made, and removed afterwards")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside[0], [Path(name) for name in options.inside[1:]])
        return
    for size in options.size:
        for engine in options.engine:
            for share in options.share:
                with tempfile.TemporaryDirectory(prefix="draftscope-", dir=options.folder) as folder:
                    compare(engine, size, share, options.tries, Path(folder), options.seed)


if __name__ == "__main__":
    main()
