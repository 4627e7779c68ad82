"""What an engine tells of itself, what it does not, and how to turn that on. Nothing is stored."""

from __future__ import annotations

import math

from collector.domain.conditions import Aspect, Condition
from collector.domain.deployments import UNKNOWN_METHOD, method_of
from collector.domain.errors import SourceError
from collector.sources.scrape import Scrape, Scraper


def probe(scraper: Scraper) -> list[Aspect]:
    """Ask an engine once and say what can be seen of it."""
    try:
        scrape = scraper.scrape()
    except SourceError as error:
        return [Aspect("metrics", Condition.ERROR, f"{error.what}{f' ({error.why})' if error.why else ''}", error.hint)]
    aspects = [_engine(scrape), _metrics(scrape), _acceptance(scrape), _configuration(scrape), _latency(scrape)]
    return aspects + [Aspect("note", Condition.PARTLY, note) for note in scrape.notes if note not in scrape.info.notes]


def _engine(scrape: Scrape) -> Aspect:
    version = scrape.info.engine_version
    told = f"{scrape.engine.title} {version or ''}".rstrip()
    if version is not None:
        return Aspect("engine", Condition.READING, told)
    return Aspect("engine", Condition.PARTLY, f"{told}, release not stated", "--engine-version where a file is judged")


def _metrics(scrape: Scrape) -> Aspect:
    units, samples = scrape.state.units, scrape.state.samples
    of = f" of {len(units)} engines" if len(units) > 1 else ""
    told = f"{len(samples)} series that are read{of}"
    unknown = sorted({sample.name for sample in samples if math.isnan(sample.value)})
    if unknown:
        return Aspect(
            "metrics", Condition.PARTLY, f"{told}; not a number: {', '.join(unknown[:3])}",
            "the engine's own values; figures from them are left out until they are numbers",
        )  # fmt: skip
    return Aspect("metrics", Condition.READING, told)


def _acceptance(scrape: Scrape) -> Aspect:
    """Counted, by position or not; sampled from gauges; or not told at all."""
    engine, arguments = scrape.engine.engine, scrape.info.arguments
    units = scrape.state.units.values()
    if any(unit.verify_steps is not None for unit in units):
        if any(unit.accepted_at is not None for unit in units):
            return Aspect("acceptance", Condition.READING, "counted, by position")
        drafts = any(unit.verify_steps for unit in units)
        return Aspect("acceptance", Condition.READING, "counted" if drafts else "counted; no draft was verified so far")
    if any(unit.printed_length is not None for unit in units):
        return Aspect(
            "acceptance",
            Condition.PARTLY,
            "gauges alone: the last steps before each scrape",
            "a shorter interval, or its log",
        )
    method = method_of(engine, arguments)
    if method == "":
        return Aspect("acceptance", Condition.MISSING, "it does not speculate")
    drafts_somehow = f"it drafts ({method})" if method not in (None, UNKNOWN_METHOD) else "if it drafts, it"
    return Aspect(
        "acceptance", Condition.MISSING, f"{drafts_somehow} and counts no drafts in its metrics", "ingest its log"
    )


def _configuration(scrape: Scrape) -> Aspect:
    arguments, notes = scrape.info.arguments, scrape.info.notes
    if notes:
        told, _, hint = notes[0].partition(": ")[2].partition("; ")
        return Aspect("configuration", Condition.PARTLY if arguments else Condition.MISSING, told, hint)
    return Aspect("configuration", Condition.READING, f"{len(arguments)} arguments that run")


def _latency(scrape: Scrape) -> Aspect:
    kinds = {name.removesuffix("_bucket") for name in scrape.state.samples.table.by_name if name.endswith("_bucket")}
    if kinds:
        return Aspect("latency", Condition.READING, f"{len(kinds)} histograms")
    return Aspect(
        "latency", Condition.MISSING, "no histograms of latency", "request results (--responses FILE) have it"
    )
