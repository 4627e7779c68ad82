"""A table of benchmark results (CSV, or Markdown as in a post): a header row, columns by quantity name or a usual spelling."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from collector.domain.errors import MalformedInput
from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow, Latency
from collector.results.content import number

_SPELLINGS: Final[Mapping[str, str]] = {
    spelling: column
    for column, spellings in {
        "run": ("run", "name", "config", "configuration", "setting", "mode", "label", "method"),
        "concurrency": (
            "concurrency", "batch_size", "batch", "bs", "running_requests", "max_concurrency", "num_requests", "parallel",
        ),
        "depth": (
            "draft_depth", "steps", "num_steps", "speculative_num_steps", "k", "num_speculative_tokens", "depth", "n_max",
            "spec_draft_n_max",
        ),
        "topk": ("topk", "top_k", "eagle_topk", "speculative_eagle_topk"),
        "width": ("verify_width", "num_draft_tokens", "num_draft", "draft_tokens_per_step", "speculative_num_draft_tokens"),
        "throughput": (
            "generation_throughput", "throughput", "output_throughput", "tokens_per_second", "tok_s", "tps", "output_tps",
        ),
        "relative": ("relative_throughput", "speedup", "speed_up", "relative"),
        "relative_low": ("relative_throughput_low", "speedup_low"),
        "relative_high": ("relative_throughput_high", "speedup_high"),
        "acceptance_length": (
            "acceptance_length", "accept_length", "accept_len", "acc_length", "acc_len", "tau",
        ),
        "accepted_tokens": ("accepted_tokens", "num_accepted_tokens", "accepted"),
        "drafted_tokens": ("drafted_tokens", "draft_tokens", "num_drafted_tokens", "drafted", "proposed_tokens"),
        "verify_steps": ("verify_steps", "num_drafts", "drafts", "verify_ct", "spec_verify_ct"),
        "acceptance_rate": ("draft_acceptance_rate", "acceptance_rate", "accept_rate", "acc_rate", "acceptance"),
        "requests": ("requests", "num_prompts", "completed", "num_samples", "num_questions"),
        "dataset": ("dataset", "benchmark", "task", "subset", "dataset_name"),
        "ttft": ("time_to_first_token", "ttft", "mean_ttft"),
        "tpot": ("time_per_output_token", "tpot", "mean_tpot"),
        "itl": ("inter_token_latency", "itl", "mean_itl"),
        "latency": ("request_latency", "latency", "e2e_latency", "mean_e2e_latency", "e2el", "mean_e2el"),
    }.items()
    for spelling in spellings
}  # fmt: skip
_POSITION: Final = re.compile(r"(?:position|pos|acceptance_rate_at|accept_rate_pos|p)_?(\d+)")
_TEXTS: Final = frozenset({"run", "dataset"})
_TIMES: Final = frozenset({"ttft", "tpot", "itl", "latency"})
_MEANS: Final = re.compile(r"^(?:avg|average|mean)_|_(?:avg|average|mean)$")
_NOTHING: Final = frozenset({"-", "\u2013", "\u2014", "n/a", "na", "nan", "none", "null"})
_MARKUP: Final = re.compile(r"\*\*|`|(?<!\w)_|_(?!\w)")
_LOOSE: Final = re.compile(r"[~\u2248<>]?\s*([+-]?\d[\d,.]*)\s*(%|[x\u00d7])?(?![\w/])")
"""A figure as people write it: about, in percent, with a remark behind it."""
_RULE: Final = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")
_TELLING: Final = frozenset({
    "throughput", "relative", "relative_low", "acceptance_length", "accepted_tokens", "acceptance_rate", "tpot", "itl",
})  # fmt: skip
_UNITS: Final = {"_ms": 1e-3, "_seconds": 1.0, "_s": 1.0, "_us": 1e-6}
_PLAIN_WORDS: Final = ("off", "plain", "baseline", "no_spec", "nospec", "without", "vanilla", "none", "disabled")
_SPECULATIVE_WORDS: Final = ("on", "spec", "eagle", "mtp", "draft", "ngram", "medusa", "with", "enabled")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows that were understood, and the columns that were not."""

    rows: tuple[BenchmarkRow, ...]
    unknown_columns: tuple[str, ...]
    lines: int


def parse_table(text: str, source: str) -> Table:
    """Read a table; columns nobody knows, and times without a unit, are listed and left out.

    Raises:
        MalformedInput: it has no header with a known column, or a figure is no number.
    """
    delimiter = max((",", ";", "\t"), key=text.split("\n", 1)[0].count)
    lines = [(number, row) for number, row in _rows(text, delimiter) if any(cell.strip() for cell in row)]
    if not lines:
        raise MalformedInput("the table is empty", where=source, hint="the first line names the columns")
    if not any(map(_known, lines[0][1])):
        raise MalformedInput(
            "no column of the table is known",
            why=f"its header reads: {', '.join(lines[0][1])[:120]}",
            where=f"{source}:{lines[0][0]}",
            hint="name columns like batch_size, steps, throughput, accept_length",
        )
    return _table(lines, source, delimiter)


def parse_markdown(text: str, source: str) -> Table | None:
    """Read the tables of a text in Markdown that hold results, ``None`` where there is none.

    Raises:
        MalformedInput: a figure is no number.
    """
    found = [_table(lines, source, " | ") for lines in _markdown_tables(text)]
    if not found:
        return None
    unknown = dict.fromkeys(column for table in found for column in table.unknown_columns)
    return Table(tuple(row for table in found for row in table.rows), tuple(unknown), text.count("\n") + 1)


def holds_markdown(text: str) -> bool:
    """Whether a text holds a table of results in Markdown."""
    return any(_markdown_tables(text))


def _markdown_tables(text: str) -> Iterator[list[tuple[int, list[str]]]]:
    """Header and rows of each table that has a column with results beside one that tells its rows apart."""
    lines = text.splitlines()
    for above, line in enumerate(lines):
        header = _markdown_cells(lines[above - 1]) if above and _RULE.fullmatch(line) else []
        columns = set(map(_known, header)) - {None}
        if len(columns) < 2 or not columns & _TELLING:
            continue
        texts = [_known(cell) in _TEXTS for cell in header]
        rows = [(above, header)]
        for below, row in enumerate(lines[above + 1 :], above + 2):
            if "|" not in row:
                break
            cells = zip(_markdown_cells(row), texts, strict=False)
            rows.append((below, [cell if text else _loosely(cell) for cell, text in cells]))
        yield rows


def _loosely(cell: str) -> str:
    """The figure in a cell of a post; nothing where it holds none."""
    found = _LOOSE.match(cell)
    return "" if found is None else found[1] + (found[2] or "")


def _markdown_cells(line: str) -> list[str]:
    return [_MARKUP.sub("", cell).strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _table(lines: Sequence[tuple[int, list[str]]], source: str, delimiter: str) -> Table:
    header = [_known(cell) for cell in lines[0][1]]
    units = [_unit(cell) for cell in lines[0][1]]
    unknown = tuple(
        cell.strip()
        for cell, column, unit in zip(lines[0][1], header, units, strict=True)
        if column is None or (column in _TIMES and unit is None)
    )
    rows = tuple(_row(header, units, cells, source, number, delimiter) for number, cells in lines[1:])
    return Table(rows, unknown, len(lines))


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=delimiter)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise MalformedInput("the table cannot be read", why=str(error), where=f"line {reader.line_num}") from None


def _known(cell: str) -> str | None:
    name = _MEANS.sub("", re.sub(r"[^a-z0-9]+", "_", cell.strip().lower()).strip("_"))
    if name in _SPELLINGS:
        return _SPELLINGS[name]
    for ending in ("_tok_s", "_tokens_s", "_token_s", "_tokens_per_second"):
        if name.endswith(ending) and name.removesuffix(ending) in _SPELLINGS:
            return _SPELLINGS[name.removesuffix(ending)]
    for ending in _UNITS:
        column = _SPELLINGS.get(name.removesuffix(ending)) if name.endswith(ending) else None
        if column in _TIMES:
            return column
    position = _POSITION.fullmatch(name)
    return f"position {int(position[1])}" if position else None


def _unit(cell: str) -> float | None:
    """What one of a latency column is in seconds, by the name's ending; ``None`` where it states no unit."""
    name = re.sub(r"[^a-z0-9]+", "_", cell.strip().lower()).strip("_")
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), None)


def _row(
    header: Sequence[str | None],
    units: Sequence[float | None],
    cells: Sequence[str],
    source: str,
    number: int,
    delimiter: str,
) -> BenchmarkRow:
    evidence = Evidence(source, number, delimiter.join(cells))
    texts = {
        column: cell.strip()
        for column, cell in zip(header, cells, strict=False)
        if column and cell.strip() and (column in _TEXTS or cell.strip().lower() not in _NOTHING)
    }
    figures = {column: _number(cell, evidence) for column, cell in texts.items() if column not in _TEXTS}
    times = {
        column: Latency(mean=figures[column] * unit)
        for column, unit in zip(header, units, strict=True)
        if column in _TIMES and column in figures and unit is not None
    }
    positions = sorted((int(name.split()[1]), value) for name, value in figures.items() if name.startswith("position"))
    depth, width, topk = (_whole(figures.get(key)) for key in ("depth", "width", "topk"))
    relative = figures.get("relative")
    return BenchmarkRow(
        evidence=evidence,
        speculating=_speculating(texts.get("run"), depth, width, figures),
        concurrency=figures.get("concurrency"),
        depth=depth,
        topk=topk,
        width=width,
        throughput=figures.get("throughput"),
        relative_low=figures.get("relative_low", relative),
        relative_high=figures.get("relative_high", relative),
        acceptance_length=figures.get("acceptance_length"),
        accepted_tokens=figures.get("accepted_tokens"),
        drafted_tokens=figures.get("drafted_tokens"),
        verify_steps=figures.get("verify_steps"),
        acceptance_rate_at=tuple(value for _, value in positions),
        acceptance_rate=figures.get("acceptance_rate"),
        time_to_first_token=times.get("ttft"),
        time_per_output_token=times.get("tpot"),
        inter_token_latency=times.get("itl"),
        request_latency=times.get("latency"),
        requests=figures.get("requests"),
        dataset=texts.get("dataset", ""),
        label=texts.get("run", ""),
    )


def _number(cell: str, evidence: Evidence) -> float:
    text = cell.replace(" ", "").removesuffix("x").removesuffix("\u00d7").removesuffix("%")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    value = number(text)
    if value is None:
        raise MalformedInput(
            f"{cell!r} is not a number", where=evidence.place, hint="leave a cell empty where nothing was measured"
        )
    return value / 100 if cell.endswith("%") else value


def _whole(value: float | None) -> int | None:
    return None if value is None or value != int(value) else int(value)


def _speculating(name: str | None, depth: int | None, width: int | None, figures: Mapping[str, float]) -> bool | None:
    """By depth or width where stated, by an acceptance figure, else by the row's name."""
    if depth is not None or width is not None:
        return bool(depth or width)
    if figures.get("acceptance_length") or figures.get("drafted_tokens"):
        return True
    return said_of_speculation(name or "")


def said_of_speculation(name: str) -> bool | None:
    """Whether a row's or file's name says that drafts were used; ``None`` where it says nothing."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    if any(word in words or (len(word) > 4 and word in name.lower()) for word in _PLAIN_WORDS):
        return False
    return True if any(word in words for word in _SPECULATIVE_WORDS) else None
