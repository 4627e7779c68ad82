"""Builds a bundle from the ``given`` part of a rule's case file.

Keys of ``given`` (all optional):
    engine, version, releases, temperature
    args: flag -> value (asked and running), [asked, running] or [asked, null] (running not seen)
    effective: flag -> value, for flags nobody asked for
    environment: variables of the launch command
    unknown: options of the launch command that are not known -> the nearest known one
    windows: {count, length, spread, rate, running, throughput, units, prefills, graph, context, ...} or a list of such;
        positions gives shares by position (and the length), at the same beside a stated length;
        running, waiting: null where windows do not tell
    prompts: {new, cached}
    events: [{kind, text, values}]
    draft, target: config.json; weights: name -> shape, of the draft
    validation: 0.747 or {accuracy, at, measure, temperature, coverage, vocabulary, reference}
    results: rows of a benchmark by their fields
    previous, baseline: the same keys again
    reading: {lines, engine_lines, unread, torn_samples}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from collector.domain.arguments import Arguments, LaunchCommand
from collector.domain.drafts import Measure, ModelConfig, Reference, Tensor, Validation, Vocabulary, Weights
from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow
from collector.domain.runs import Bundle, Event, Reading, RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.domain.windows import Origin, PrefillWindow, Window

START = 1_775_000_000.0


def bundle(given: Mapping[str, Any]) -> Bundle:
    return Bundle(
        subject=record(given, "input.log"),
        previous=record(given["previous"], "previous.log") if "previous" in given else None,
        baseline=record(given["baseline"], "baseline.log") if "baseline" in given else None,
        readings=[Reading("input.log", role="subject", **given["reading"])] if "reading" in given else [],
    )


def record(given: Mapping[str, Any], source: str) -> RunRecord:
    version = given.get("version")
    engine = given.get("engine", "sglang")
    asked, runs = _arguments(given)
    command = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asked.items())
    unknown = given.get("unknown", {})
    launch = LaunchCommand(
        engine,
        command,
        asked,
        given.get("environment", {}),
        tuple(unknown),
        source="launch.txt",
        line=1,
        nearest={name: near for name, near in unknown.items() if near},
    )
    arguments = Arguments()
    if asked:
        arguments = arguments.with_launch(launch)
    if runs:
        arguments = arguments.with_effective(runs, Evidence(source, 1, f"server_args={runs}"))
    return RunRecord(
        engine=engine,
        source=source,
        engine_version=Release.parse(version) if version else None,
        release_range=ReleaseRange.parse(given.get("releases", "*")),
        arguments=arguments,
        launch=launch if asked else None,
        events=[
            Event(e["kind"], Evidence(source, 2, e.get("text", "")), None, e.get("values", {}))
            for e in given.get("events", [])
        ],
        windows=list(_windows(given.get("windows"))),
        prefills=[PrefillWindow(0, 3, START, "", given["prompts"]["new"], given["prompts"]["cached"])]
        if "prompts" in given
        else [],
        results=[
            BenchmarkRow(Evidence("bench.csv", number, str(row)), **row)
            for number, row in enumerate(given.get("results", []), 2)
        ],
        draft_config=ModelConfig("draft_config.json", given["draft"], weights=_weights(given.get("weights")))
        if "draft" in given
        else None,
        target_config=ModelConfig("target_config.json", given["target"]) if "target" in given else None,
        validation=_validation(given.get("validation")),
        temperature=given.get("temperature"),
    )


def _weights(given: Mapping[str, list[int]] | None) -> Weights | None:
    if given is None:
        return None
    return Weights("model.safetensors", {name: Tensor("BF16", tuple(shape)) for name, shape in given.items()})


def _arguments(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    asked: dict[str, Any] = {}
    runs: dict[str, Any] = dict(given.get("effective", {}))
    for name, value in given.get("args", {}).items():
        if isinstance(value, list):
            asked[name] = value[0]
            if value[1] is not None:
                runs[name] = value[1]
        else:
            asked[name] = runs[name] = value
    return asked, runs


def _validation(given: Any) -> Validation | None:
    if given is None:
        return None
    if isinstance(given, float):
        return Validation(given, evidence=(Evidence("training.txt", 1, f"accuracy {given}"),))
    return Validation(
        given["accuracy"],
        tuple(given.get("at", ())),
        Measure(given.get("measure", "unknown")),
        measure_stated="measure" in given,
        temperature=given.get("temperature"),
        draft_vocabulary_coverage=given.get("coverage"),
        vocabulary=Vocabulary(given.get("vocabulary", "unknown")),
        reference=Reference(given.get("reference", "unknown")),
    )


def _windows(given: Any) -> Iterator[Window]:
    if given is None:
        return
    parts = given if isinstance(given, list) else [given]
    number = 0
    for part in parts:
        for index in range(part.get("count", 18)):
            for unit in part.get("units", [""]):
                yield _window(part, number, index, unit)
                number += 1


def _window(part: Mapping[str, Any], number: int, index: int, unit: str) -> Window:
    """One window; lengths alternate around the mean by ``spread`` so that the mean is exact over pairs."""
    running = part.get("running", 1)
    busy = 1 if running is None else running
    positions = part.get("positions", part.get("at"))
    length = part.get("length", 1 + sum(positions) if positions else None)
    if isinstance(length, Mapping):
        length = length[unit]
    if length is not None:
        length += part.get("spread", 0.0) * (1 if index % 2 else -1) + part.get("slope", 0.0) * index
    steps = 40 * busy
    throughput = part.get("throughput")
    mean = part["length"] if isinstance(part.get("length"), float) else length
    # lines come as fast as the throughput says, unless the case wants its clock to disagree
    every = part.get("every", steps * mean / throughput if throughput and mean else 2.0)
    generated = steps * (length if length is not None else 1)
    if throughput is not None and length is not None:
        throughput = throughput * length / part["length"] if isinstance(part.get("length"), float) else throughput
    width = part.get("rate")
    strict = part.get("strict", False)
    rate = None
    if width is not None and length is not None:
        rate = round((length - 1) / (width - 1) if strict else length / width, 2)
    return Window(
        position=number,
        line=number + 10,
        at=START + every * index + part.get("after", 0.0),
        unit=unit,
        seconds=part.get("seconds", generated / throughput if throughput else None),
        running_requests=running,
        waiting_requests=part.get("waiting", 0),
        verify_steps=steps if length is not None else None,
        accepted_tokens=(length - 1) * steps if length is not None else None,
        generated_tokens=part.get("generated", generated),
        generation_throughput=throughput,
        printed_length=round(length, 2) if length is not None else None,
        printed_rate=part.get("printed_rate", rate),
        tokens_in_use=part.get("context", 500) * busy + part.get("growth", 0) * index,
        kv_cache_usage=part.get("usage", 0.1),
        graph=part.get("graph", True),
        prefills=part.get("prefills", 0),
        accepted_at=tuple(share * steps for share in positions) if positions else None,
        origin=Origin(part.get("origin", "log")),
    )
