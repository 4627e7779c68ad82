"""Everything that is given about one question: logs, launch commands, configs, training output.

A folder is a bundle. What a file is, is told by its name where it has one of the usual names,
else by its content. Parts that cannot be read are reported and the rest goes on.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from collector.domain.arguments import LaunchCommand
from collector.domain.drafts import Measure, ModelConfig, Validation
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.domain.evidence import Evidence
from collector.domain.requests import RequestResult
from collector.domain.results import BenchmarkRow
from collector.domain.runs import Beside, Bundle, Reading, Role, RunRecord
from collector.domain.versions import Release
from collector.formats import formats
from collector.formats.base import ReadOptions, RunPart
from collector.formats.reader import LogReader
from collector.formats.sniff import describe, is_binary
from collector.formats.streams import holds_log
from collector.launch import parse_launch
from collector.models import open_model, read_training, read_validation
from collector.models.archive import is_archive
from collector.models.configs import describes_model
from collector.models.gguf_header import MAGIC as GGUF
from collector.models.keys import unknown_keys
from collector.models.locations import is_model_folder
from collector.models.tensorboard import is_event_file
from collector.models.training import training_file
from collector.requests import Responses, holds_responses, read_responses
from collector.results import holds_results, read_results, tool_of
from collector.sources.file import LARGEST_TEXT, STDIN, blocks, cannot_open, head_of, line_at, text_of, without_packing
from collector.sources.launches import read_launches
from collector.sources.rotation import line_in, rotated_sets
from collector.sources.snapshots import Kept, Snapshot, holds_metrics, read_snapshot, read_together

SAMPLED_BYTES: Final = 1 << 20
LONGEST_SMALL_TEXT: Final = 65_536
"""Characters of a file without a known name in which a command or training output is looked for."""


class Part(StrEnum):
    """What a file of a bundle is."""

    LOG = "log"
    LAUNCH = "launch command"
    DRAFT_CONFIG = "draft config"
    TARGET_CONFIG = "target config"
    TRAINING = "training output"
    METRICS = "metrics"
    RESPONSES = "request results"
    BENCHMARK = "benchmark results"
    SERVER_INFO = "server information"
    IGNORED = "ignored"
    UNKNOWN = "not recognised"


_NOT_READ: Final = (Part.SERVER_INFO,)
_NAMES: Final = {
    "launch.json": Part.IGNORED,
    "model_info.json": Part.IGNORED,
    "expected.yaml": Part.IGNORED,
    "bench.csv": Part.BENCHMARK,
    "report.csv": Part.BENCHMARK,
}
# Words of a file's name, tried in this order.
_WORDS: Final = (
    ("launch", Part.LAUNCH),
    ("draft_config", Part.DRAFT_CONFIG),
    ("target_config", Part.TARGET_CONFIG),
    ("training", Part.TRAINING),
    ("validation", Part.TRAINING),
    ("val_metrics", Part.TRAINING),
    ("tfevents", Part.TRAINING),
    ("trainer_state", Part.TRAINING),
    ("metrics", Part.METRICS),
    ("responses", Part.RESPONSES),
    ("server_info", Part.SERVER_INFO),
)
_SUFFIXES: Final = {".log": Part.LOG, ".prom": Part.METRICS, ".csv": Part.BENCHMARK}
_BY_CONTENT_TOO: Final = (".csv", ".json", ".jsonl")
"""Suffixes of files that any of several tools may have written."""
_MODEL_WORDS: Final = (("target", Part.TARGET_CONFIG), ("draft", Part.DRAFT_CONFIG))
LARGEST_TRAINING: Final = 64 << 20
"""Bytes of training output that are read."""
_DRAFT_KEYS: Final = (
    "draft_vocab_size",
    "eagle_config",
    "dflash_config",
    "speculators_config",
    "speculators_model_type",
    "medusa_num_heads",
)
_DRAFT_ARCHITECTURES: Final = ("eagle", "medusa", "mtp", "nextn", "dflash", "dspark", "assistant", "speculator")


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """What the user said about the files and beyond them.

    Paths name a file for a role (``metrics`` and ``metrics_before`` are two scrapes of one process, or the first
    alone since its start); ``validation_accuracy`` is one figure or one a position;
    ``engine`` and ``engine_version`` win over what the content tells. ``responses`` are the requests to judge by,
    however few. ``copies`` are files that were brought from elsewhere, and what they are called there.
    """

    launch: Path | None = None
    baseline: Path | None = None
    previous: Path | None = None
    draft_config: Path | None = None
    target_config: Path | None = None
    training: Path | None = None
    metrics: Path | None = None
    metrics_before: Path | None = None
    responses: tuple[Path, ...] = ()
    validation_accuracy: tuple[float, ...] = ()
    engine: str | None = None
    engine_version: Release | None = None
    temperature: float | None = None
    copies: Mapping[Path, str] = field(default_factory=dict)

    def name(self, path: Path) -> str:
        """What evidence calls a file."""
        return "standard input" if path == STDIN else self.copies.get(path, str(path))


@dataclass(frozen=True, slots=True)
class File:
    """One file of a bundle: where it is, what evidence calls it, what it is and for which run.

    ``role`` is ``None`` where neither name nor option says for which run it is; ``asked`` marks a
    file that was named by the user, not found in a folder.
    """

    path: Path
    source: str
    part: Part
    role: Role | None
    asked: bool
    older: tuple[Path, ...] = ()
    """For a log that was rotated the files before this one, oldest first."""


@dataclass(slots=True)
class _Runs:
    """Parts of the bundle while it is put together, by role."""

    logs: dict[Role, list[RunRecord]] = field(default_factory=dict)
    unnamed: list[list[RunRecord]] = field(default_factory=list)
    launches: dict[Role, LaunchCommand] = field(default_factory=dict)
    draft_configs: dict[Role, ModelConfig] = field(default_factory=dict)
    target_configs: dict[Role, ModelConfig] = field(default_factory=dict)
    validation: Validation | None = None
    results: list[BenchmarkRow] = field(default_factory=list)
    measured_engine: str = ""
    snapshots: dict[Role, list[Snapshot]] = field(default_factory=dict)
    responses: dict[Role, list[_Read]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Read:
    """The responses of one file; ``asked`` marks one that the user named for them."""

    path: Path
    responses: Responses
    asked: bool


class LogRead(Protocol):
    """What reads one log: every run of it, and what was made of it."""

    def __call__(
        self,
        path: Path,
        *,
        older: Sequence[Path] = (),
        engine: str | None = None,
        engine_version: Release | None = None,
        launch: LaunchCommand | None = None,
        source: str | None = None,
    ) -> tuple[list[RunRecord], Reading]:
        """As :func:`read_log`."""
        ...


def read_bundle(paths: Sequence[Path], options: BundleOptions | None = None, *, read: LogRead | None = None) -> Bundle:
    """Read files and folders into the judged run and those it is compared with.

    ``read`` reads a log in place of :func:`read_log`.

    Raises:
        UnreadableInput: nothing at all could be recognised.
    """
    options = options or BundleOptions()
    readings: list[Reading] = []
    problems: list[str] = []
    errors: list[InputError] = []
    files = _files(paths, options, errors)
    runs = _Runs()
    ordered = sorted(files, key=lambda file: file.part is Part.LOG)  # commands first: logs may need them
    for file in ordered:
        reading = Reading(file.source, role=file.role.value if file.role else "", kind=file.part.value)
        try:
            _read_part(file, options, runs, reading, read or read_log)
        except InputError as error:
            errors.append(error)
            reading.notes = (*reading.notes, error.what)
        readings.append(reading)
    unnamed = [
        reading for reading, file in zip(readings, ordered, strict=True) if file.part is Part.LOG and not reading.role
    ]
    if len(unnamed) == 1 and Role.SUBJECT not in runs.logs:
        unnamed[0].role = Role.SUBJECT.value
    if options.validation_accuracy:
        runs.validation = stated_validation(options.validation_accuracy)
    problems += [str(error) for error in errors]
    bundle = _assemble(runs, options, readings, problems)
    if bundle is None:
        raise _nothing(errors, paths)
    return bundle


def of_responses(readings: Iterable[Reading]) -> list[Reading]:
    """What was made of files of responses."""
    return [reading for reading in readings if reading.kind == Part.RESPONSES.value]


def bundles_of(paths: Sequence[Path], options: BundleOptions | None) -> list[list[Path]]:
    """Each folder by itself, all other paths together; options alone are one bundle without paths."""
    folders = [path for path in paths if path != STDIN and path.is_dir()]
    loose = [path for path in paths if path not in folders]
    groups = [[folder] for folder in folders]
    if loose or (options is not None and not folders):
        groups.insert(0, loose)
    return groups


def read_log(
    path: Path,
    *,
    older: Sequence[Path] = (),
    engine: str | None = None,
    engine_version: Release | None = None,
    launch: LaunchCommand | None = None,
    source: str | None = None,
) -> tuple[list[RunRecord], Reading]:
    """Every run of one log, and what was made of it; ``-`` is the standard input.

    ``older`` are files that the log was rotated into, oldest first; positions and line numbers count
    through them. The whole log's windows are held; to store while reading use :class:`LogReader`.

    Raises:
        UnreadableInput: it cannot be opened or is no log that is read here.
    """
    name = source or ("standard input" if path == STDIN else str(path))
    reader = LogReader(ReadOptions(name, engine_version, launch), engine)
    problems: list[str] = []
    for file in (*older, path):
        for block in blocks(file, problems):
            reader.feed(block)
    reader.finish()
    reading = reader.summary()
    reading.notes = (*reading.notes, *problems)
    return joined(reader.take()), reading


def joined(parts: Iterable[RunPart]) -> list[RunRecord]:
    """Whole runs from their parts, in the order they began."""
    runs: dict[int, RunRecord] = {}
    for part in parts:
        known = runs.get(part.number)
        if known is not None:
            part.run.events[:0] = known.events
            part.run.windows[:0] = known.windows
            part.run.prefills[:0] = known.prefills
        runs[part.number] = part.run
    return [runs[number] for number in sorted(runs)]


def read_model_config(path: Path) -> ModelConfig:
    """A model's config, from its ``config.json``, folder, archive, GGUF file or folder of the download cache.

    Raises:
        UnreadableInput: it cannot be opened.
        MalformedInput: it is no model's configuration.
    """
    return open_model(path)


# ---- which files there are


def _files(paths: Sequence[Path], options: BundleOptions, errors: list[InputError]) -> list[File]:
    files: list[File] = []
    for path in paths:
        try:
            members = _members(path)
        except InputError as error:
            errors.append(error)
            continue
        if members is not None:
            for member in members:
                if not member.name.startswith("."):
                    _add_file(files, member, member.name, errors, asked=False)
            if (path / "snapshots").is_dir():
                files.append(File(path, str(path), _part_of_model(path), Role.SUBJECT, asked=True))
        else:
            _add_file(files, path, options.name(path), errors, asked=True)
    files = _with_rotated(files)
    if options.metrics is not None or options.metrics_before is not None:
        files = [file for file in files if (file.part, file.role) != (Part.METRICS, Role.SUBJECT)]
        given_metrics = [path for path in (options.metrics_before, options.metrics) if path is not None]
        files += [File(path, options.name(path), Part.METRICS, Role.SUBJECT, asked=True) for path in given_metrics]
    if options.responses:
        files = [file for file in files if (file.part, file.role) != (Part.RESPONSES, Role.SUBJECT)]
        files += [
            File(path, options.name(path), Part.RESPONSES, Role.SUBJECT, asked=True) for path in options.responses
        ]
    named = (
        (options.launch, Part.LAUNCH, Role.SUBJECT),
        (options.baseline, Part.LOG, Role.BASELINE),
        (options.previous, Part.LOG, Role.PREVIOUS),
        (options.draft_config, Part.DRAFT_CONFIG, Role.SUBJECT),
        (options.target_config, Part.TARGET_CONFIG, Role.SUBJECT),
        (options.training, Part.TRAINING, Role.SUBJECT),
    )
    for given, part, role in named:
        if given is not None:
            files = [file for file in files if (file.part, file.role) != (part, role)]
            files.append(File(given, options.name(given), part, role, asked=True))
    return files


def _with_rotated(files: list[File]) -> list[File]:
    """The files, with those that one log was rotated into put together; a piece of a log need not look like one."""
    logs = {file.path for file in files if file.part is Part.LOG}
    sets = [
        found
        for found in rotated_sets([file.path for file in files])
        if found.older and logs & {*found.older, found.newest}
    ]
    older = {found.newest: found.older for found in sets}
    parts = {path for found in sets for path in found.older}
    return [
        replace(file, part=Part.LOG, older=older[file.path]) if file.path in older else file
        for file in files
        if file.path not in parts
    ]


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder; one that may not be looked at is told when it is opened."""
    try:
        return path.is_dir()
    except PermissionError:
        return False


def _members(path: Path) -> list[Path] | None:
    """The files of a folder, ``None`` if the path is no folder."""
    if path == STDIN or not _is_folder(path):
        return None
    try:
        return sorted(member for member in path.iterdir() if member.is_file() or is_model_folder(member))
    except PermissionError as error:
        raise UnreadableInput(
            "the folder may not be listed",
            why="permission denied",
            where=str(path),
            hint=f"give read permission, for instance: chmod u+rx {path}",
        ) from error
    except OSError as error:
        raise UnreadableInput(
            "the folder cannot be listed", why=error.strerror or str(error), where=str(path)
        ) from error


def _add_file(files: list[File], path: Path, source: str, errors: list[InputError], *, asked: bool) -> None:
    try:
        part, role = _recognise(path)
    except InputError as error:
        errors.append(error)
        return
    if part is not Part.IGNORED:
        files.append(File(path, source, part, role, asked))


def _recognise(path: Path) -> tuple[Part, Role | None]:
    """What a file is: a log by its content, anything else by its name, else by its content."""
    if path == STDIN:
        return Part.LOG, None
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise cannot_open(path, error) from error
    if stat.S_ISDIR(mode):
        return _part_of_model(path), Role.PREVIOUS if "previous" in path.name.lower() else Role.SUBJECT
    if not stat.S_ISREG(mode):
        return Part.LOG, None  # a pipe can be read only once
    name = without_packing(path.name.lower())
    if name in _NAMES:
        return _NAMES[name], Role.SUBJECT
    role = next((role for role in (Role.PREVIOUS, Role.BASELINE) if role.value in name), None)
    part = _SUFFIXES.get(Path(name).suffix)
    if Path(name).suffix in _BY_CONTENT_TOO:
        part = _written_by_tool(path, name) or part
    if part is None or part is Part.LOG:
        part = _by_name_and_content(path, name)
    if part is Part.LOG and name == "input.log":
        role = Role.SUBJECT
    return part, role if part is Part.LOG else role or Role.SUBJECT


def _part_of_model(path: Path) -> Part:
    """Whether a folder's model drafts, by the folder's name, else by its config."""
    for word, part in _MODEL_WORDS:
        if word in path.name.lower():
            return part
    try:
        drafts = _is_draft(dict(open_model(path).raw))
    except InputError:
        return Part.UNKNOWN
    return Part.DRAFT_CONFIG if drafts else Part.TARGET_CONFIG


def _written_by_tool(path: Path, name: str) -> Part | None:
    """Benchmark results, responses and exported training runs by what they hold; ``None`` where it is none of them."""
    sampled = SAMPLED_BYTES if name.endswith((".csv", ".jsonl")) else LARGEST_TEXT
    text = head_of(path, sampled).decode("utf-8", "replace")
    if any(word in name for word, part in _WORDS if part is Part.TRAINING):
        return Part.TRAINING
    if tool_of(text):
        return Part.BENCHMARK
    if holds_responses(text.encode()):
        return Part.RESPONSES
    first = text.partition("\n")[0].lower().split(",")
    steps = any(cell.strip(' "') in ("_step", "step", "global_step") for cell in first)
    return Part.TRAINING if steps and any("acc" in cell for cell in first) else None


def _by_name_and_content(path: Path, name: str) -> Part:
    head = head_of(path, SAMPLED_BYTES)
    if is_event_file(head):
        return Part.TRAINING
    if head.startswith(GGUF) or is_archive(head, path.name):
        return next((part for word, part in _MODEL_WORDS if word in name), Part.UNKNOWN)
    if name.endswith(".safetensors"):
        return Part.IGNORED  # read with the config beside it
    if holds_log(head):
        return Part.LOG
    for word, part in _WORDS:
        if word in name and (part is not Part.METRICS or holds_metrics(head)):
            return part
    if Path(name).suffix == ".log":  # what a benchmark printed is kept under this ending, too
        return Part.BENCHMARK if holds_results(head.decode("utf-8", "replace")) else Part.LOG
    return _by_content(head, path.name)


def _by_content(head: bytes, name: str) -> Part:
    if is_binary(head):
        return Part.UNKNOWN
    if holds_metrics(head):
        return Part.METRICS
    if holds_responses(head):
        return Part.RESPONSES
    text = head.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return Part.UNKNOWN
        if not describes_model(document):
            return Part.TRAINING if _holds_accuracy(text, name) else Part.UNKNOWN
        return Part.DRAFT_CONFIG if _is_draft(document) else Part.TARGET_CONFIG
    if holds_results(text):
        return Part.BENCHMARK
    for part, reads in ((Part.LAUNCH, parse_launch), (Part.TRAINING, read_validation)):
        try:
            reads(text[:LONGEST_SMALL_TEXT], name)
        except UnreadableInput:
            continue
        except MalformedInput:
            pass  # it is of this kind, and broken: reading it says where
        return part
    return Part.UNKNOWN


def _holds_accuracy(text: str, name: str) -> bool:
    try:
        read_validation(text, name)
    except InputError:
        return False
    return True


def _is_draft(document: dict[str, object]) -> bool:
    listed = document.get("architectures")
    names = " ".join(map(str, listed)).lower() if isinstance(listed, list) else ""
    return any(key in document for key in _DRAFT_KEYS) or any(word in names for word in _DRAFT_ARCHITECTURES)


# ---- reading one


def _read_part(file: File, options: BundleOptions, runs: _Runs, reading: Reading, read: LogRead) -> None:
    role = file.role or Role.SUBJECT
    if file.part is Part.LOG:
        _read_log_part(file, options, runs, reading, read)
    elif file.part is Part.LAUNCH:
        runs.launches[role] = _launch(file, reading)
    elif file.part is Part.DRAFT_CONFIG:
        runs.draft_configs[role] = config = open_model(file.path, file.source)
        unknown = unknown_keys(config)
        if unknown:
            reading.notes = (*reading.notes, f"keys not known: {', '.join(unknown)}")
    elif file.part is Part.TARGET_CONFIG:
        runs.target_configs[role] = open_model(file.path, file.source)
    elif file.part is Part.TRAINING:
        runs.validation = read_training_file(file.path, file.source)
    elif file.part is Part.BENCHMARK:
        _read_results(file, runs, reading)
    elif file.part is Part.RESPONSES:
        _read_responses(file, options, runs, reading)
    elif file.part is Part.METRICS:
        snapshot = read_snapshot(file.path, file.source, first=file.path == options.metrics_before)
        runs.snapshots.setdefault(role, []).append(snapshot)
        reading.lines = reading.understood = snapshot.lines
    elif file.part in _NOT_READ:
        reading.notes = (*reading.notes, f"{file.part.value}: not read yet")
    elif file.asked:
        head = head_of(file.path, SAMPLED_BYTES)
        if not head.strip():
            raise UnreadableInput("the input is empty", where=file.source)
        titles = ", ".join(log_format.title for log_format in formats())
        raise UnreadableInput(
            "this file is not one that draftscope reads",
            why=describe(head),
            where=file.source,
            hint=f"logs of {titles}, their metrics and responses, launch commands, config.json files and training output are read",
        )


def _launch(file: File, reading: Reading) -> LaunchCommand:
    """The first launch command of a file; that there are more is noted."""
    found = read_launches(file.path, file.source)
    if len(found) > 1:
        place = ", ".join(part for part in (found[0].evidence.place, found[0].label) if part)
        reading.notes = (*reading.notes, f"{len(found)} launch commands; the first is taken ({place})")
    return found[0]


def _read_log_part(file: File, options: BundleOptions, runs: _Runs, reading: Reading, read: LogRead) -> None:
    role = file.role or Role.SUBJECT
    found, made = read(
        file.path,
        older=file.older,
        engine=options.engine,
        engine_version=options.engine_version if role is Role.SUBJECT else None,
        launch=runs.launches.get(role),
        source=file.source,
    )
    for name in Reading.__dataclass_fields__:
        if name not in ("source", "role"):
            setattr(reading, name, getattr(made, name))
    if not found:
        raise UnreadableInput(
            "no line of this log could be read",
            why=f"none of its {made.lines} lines has the form of the engine's log",
            where=file.source,
            hint="leave --engine away to let the content tell, or give another file",
        )
    if file.older:
        names = ", ".join(path.name for path in (*file.older, file.path))
        reading.notes = (*reading.notes, f"read as one log: {names}; line numbers count through all of them")
    if file.path.is_file():
        for run in found:
            run.line_text = partial(line_in, (*file.older, file.path)) if file.older else partial(line_at, file.path)
    if file.role is None:
        runs.unnamed.append(found)
    else:
        runs.logs.setdefault(file.role, []).extend(found)


def stated_validation(figures: tuple[float, ...], measure: Measure = Measure.UNKNOWN) -> Validation:
    """Figures given on the command line: one accuracy, or one a position."""
    text = ",".join(f"{figure:g}" for figure in figures)
    return Validation(
        accuracy=figures[0],
        accuracy_at=figures if len(figures) > 1 else (),
        measure=measure,
        measure_stated=measure is not Measure.UNKNOWN,
        evidence=(Evidence("--validation-accuracy", None, text),),
    )


# ---- putting it together


def _read_results(file: File, runs: _Runs, reading: Reading) -> None:
    results = read_results(text_of(file.path), file.source)
    runs.results += results.rows
    runs.measured_engine = runs.measured_engine or results.engine
    reading.lines = reading.understood = results.lines
    if results.tool:
        reading.notes = (*reading.notes, f"written by {results.tool}")
    if results.unknown:
        reading.notes = (*reading.notes, f"columns not known: {', '.join(results.unknown)}")
    remarks = dict.fromkeys(remark for row in results.rows for remark in row.remarks)
    reading.notes = (*reading.notes, *remarks)


def _read_responses(file: File, options: BundleOptions, runs: _Runs, reading: Reading) -> None:
    problems: list[str] = []
    responses = read_responses(blocks(file.path, problems), file.source)
    if not responses.lines:
        raise UnreadableInput("the file is empty", where=file.source)
    made = responses.reading()
    for name in ("lines", "understood", "unread", "oversize_lines"):
        setattr(reading, name, getattr(made, name))
    reading.notes = (*reading.notes, *made.notes, *problems)
    if responses.results:
        role = file.role or Role.SUBJECT
        runs.responses.setdefault(role, []).append(_Read(file.path, responses, file.path in options.responses))
    elif file.asked:
        raise no_responses(responses)


def no_responses(responses: Responses) -> InputError:
    """The error for an input without a response that can be used."""
    if responses.refused:
        return MalformedInput(
            "no response has figures that are possible", why=responses.refused[0].what, where=responses.source
        )
    return UnreadableInput(
        "no response with figures of speculation was found",
        why="; ".join(responses.notes()[1:]),
        where=responses.source,
        hint="give answers of SGLang's /generate (meta_info), of vLLM with --per-request-spec-decode-metrics summary, "
        "or of llama-server (timings), one JSON document a line",
    )


def read_training_file(path: Path, source: str | None = None) -> Validation:
    """The validation figures of training output: of a file, or of a run's folder (its validation or event file).

    Raises:
        UnreadableInput: it cannot be opened, is too large, or states no accuracy.
        MalformedInput: it is damaged, or states a figure that is not possible.
    """
    name = source or str(path)
    file = training_file(path) if path.is_dir() else path
    parts: list[bytes] = []
    size = 0
    for block in blocks(file):
        parts.append(block)
        size += len(block)
        if size > LARGEST_TRAINING:
            raise UnreadableInput(
                f"the file is larger than {LARGEST_TRAINING >> 20} MiB",
                why="training output is read whole",
                where=name,
                hint="give its last part, for instance: tail -n 1000",
            )
    return read_training(b"".join(parts), name if file == path else f"{name}/{file.name}")


def _assemble(runs: _Runs, options: BundleOptions, readings: list[Reading], problems: list[str]) -> Bundle | None:
    subject, previous, baseline = _by_role(runs)
    kept = _kept(runs, readings, problems)
    subject, previous, baseline = (
        run or _run_of_metrics(kept.get(role), options, role)
        for role, run in ((Role.SUBJECT, subject), (Role.PREVIOUS, previous), (Role.BASELINE, baseline))
    )
    if subject is None:
        subject = _run_without_log(runs, options)
    if subject is None:
        promoted = previous or baseline
        if promoted is None:
            return None
        problems.append(f"no log of the run to judge was read; {promoted.source} is judged instead")
        subject, previous, baseline = promoted, None, baseline if promoted is previous else None
    subject.draft_config = runs.draft_configs.get(Role.SUBJECT)
    subject.target_config = runs.target_configs.get(Role.SUBJECT)
    subject.validation = runs.validation
    subject.results = runs.results
    subject.temperature = options.temperature
    if options.engine_version is not None:
        subject.engine_version = options.engine_version
    for role, run in ((Role.SUBJECT, subject), (Role.PREVIOUS, previous), (Role.BASELINE, baseline)):
        _attach_launch(run, runs.launches.get(role), problems)
    if previous is not None:
        previous.draft_config = runs.draft_configs.get(Role.PREVIOUS)
        previous.target_config = runs.target_configs.get(Role.PREVIOUS)
    bundle = Bundle(subject, previous, baseline, readings, problems)
    for role, run in ((Role.SUBJECT, subject), (Role.PREVIOUS, previous), (Role.BASELINE, baseline)):
        if role in kept:
            _attach_metrics(bundle, role, run, kept[role])
        for read in runs.responses.get(role, ()):
            _attach_responses(bundle, role, run, read)
    return bundle


def _kept(runs: _Runs, readings: list[Reading], problems: list[str]) -> dict[Role, Kept]:
    """What the kept scrapes of each run tell; said of the file that was scraped last."""
    kept: dict[Role, Kept] = {}
    for role, snapshots in runs.snapshots.items():
        try:
            kept[role] = read_together(snapshots)
        except InputError as error:
            problems.append(str(error))
            continue
        for reading in readings:
            if reading.source == kept[role].source:
                reading.notes = (*reading.notes, *kept[role].notes)
    return kept


def _run_of_metrics(kept: Kept | None, options: BundleOptions, role: Role) -> RunRecord | None:
    """A run that only its metrics tell of."""
    if kept is None:
        return None
    version = options.engine_version if role is Role.SUBJECT else None
    run = RunRecord(kept.engine.engine, kept.source, version, started_at=kept.started_at, ended_at=kept.ended_at)
    run.line_text = partial(line_at, kept.path)
    return run


def _attach_metrics(bundle: Bundle, role: Role, run: RunRecord | None, kept: Kept) -> None:
    """Add what the metrics tell to a run. The analysis takes the best source for each figure, and never adds up two."""
    if run is None:
        bundle.problems.append(f"{kept.source}: there is no run that these metrics are of")
        return
    if run.engine != kept.engine.engine:
        bundle.problems.append(f"{kept.source} is of {kept.engine.title}, {run.source} of {run.engine}")
        return
    windows, prefills = kept.windows, [] if run.prefills else kept.prefills
    if run.source != kept.source:  # its lines are another file's
        windows = [window._replace(line=0, position=number) for number, window in enumerate(windows)]
    run.arguments = kept.completed(run.arguments)
    run.events += kept.events
    run.latencies = kept.latencies
    run.windows = [*run.windows, *windows]
    run.prefills = [*run.prefills, *prefills]
    bundle.beside.setdefault(role, []).append(
        Beside(str(kept.path.absolute()), tuple(windows), tuple(prefills), tuple(kept.events), tuple(kept.series))
    )


def _attach_responses(bundle: Bundle, role: Role, run: RunRecord | None, read: _Read) -> None:
    """Add request results to the run that they are of; those of another engine, or of no run, are told."""
    source = read.responses.source
    if run is None:
        bundle.problems.append(f"{source}: there is no run that these responses are of")
        return
    fitting = [result for result in read.responses.results if result.engine == run.engine]
    others = len(read.responses.results) - len(fitting)
    if others:
        bundle.problems.append(
            f"{source}: {others} of its responses are not of {run.engine}, the engine of {run.source}"
        )
    before = bundle.previous
    if role is Role.SUBJECT and before is not None:
        earlier = [result for result in fitting if _within(before, result) and not _within(run, result)]
        if earlier:
            bundle.problems.append(f"{source}: {len(earlier)} of its responses came from the run before")
            _add_requests(bundle, Role.PREVIOUS, before, read, earlier)
            fitting = [result for result in fitting if result not in earlier]
    if fitting:
        _add_requests(bundle, role, run, read, fitting)


def _add_requests(bundle: Bundle, role: Role, run: RunRecord, read: _Read, results: list[RequestResult]) -> None:
    known = {result.key for result in run.requests}
    run.requests = [*run.requests, *(result for result in results if result.key not in known)]
    run.requests_asked = run.requests_asked or read.asked
    path = "-" if read.path == STDIN else str(read.path.absolute())
    bundle.beside.setdefault(role, []).append(Beside(path, requests=tuple(results)))


def _within(run: RunRecord, result: RequestResult) -> bool:
    """Whether a response came while a run lived, as far as both instants are known."""
    if result.at is None or run.started_at is None or run.ended_at is None:
        return False
    return run.started_at <= result.at <= run.ended_at


def _by_role(runs: _Runs) -> tuple[RunRecord | None, RunRecord | None, RunRecord | None]:
    given = {role: _with_windows(records) for role, records in runs.logs.items()}
    subject, before = _last_two(runs.logs.get(Role.SUBJECT, []))
    baseline = given.get(Role.BASELINE)
    if subject is None and runs.unnamed:
        if len(runs.unnamed) == 1:
            subject, before = _last_two(runs.unnamed[0])
        else:
            pool = sorted((run for found in runs.unnamed for run in found), key=lambda run: run.started_at or 0.0)
            plain = [run for run in pool if run.windows and _runs_plain(run)]
            drafting = [run for run in pool if run not in plain]
            subject, before = _last_two(drafting or plain)
            if baseline is None and drafting and plain:
                baseline = plain[-1]
    return subject, given.get(Role.PREVIOUS) or before, baseline


def _last_two(records: list[RunRecord]) -> tuple[RunRecord | None, RunRecord | None]:
    """The last run with decode windows (else the last run), and the one with windows before it."""
    decoding = [run for run in records if run.windows]
    if not decoding:
        return (records[-1] if records else None), None
    return decoding[-1], decoding[-2] if len(decoding) > 1 else None


def _with_windows(records: list[RunRecord]) -> RunRecord | None:
    return _last_two(records)[0]


def _runs_plain(run: RunRecord) -> bool:
    """Whether a run states that it does not speculate."""
    return run.arguments.seen("speculative_algorithm") and run.arguments.value("speculative_algorithm") is None


def _run_without_log(runs: _Runs, options: BundleOptions) -> RunRecord | None:
    launch = runs.launches.get(Role.SUBJECT)
    if launch is not None:
        return RunRecord(launch.engine, launch.source, options.engine_version)
    config = runs.draft_configs.get(Role.SUBJECT) or runs.target_configs.get(Role.SUBJECT)
    if config is not None:
        return RunRecord(options.engine or runs.measured_engine, config.source, options.engine_version)
    responses = runs.responses.get(Role.SUBJECT)
    if responses:
        found = responses[0].responses
        return RunRecord(options.engine or found.results[0].engine, found.source, options.engine_version)
    if runs.results:
        source = runs.results[-1].evidence.source
        return RunRecord(options.engine or runs.measured_engine, source, options.engine_version)
    return None


def _attach_launch(run: RunRecord | None, launch: LaunchCommand | None, problems: list[str]) -> None:
    if launch is None:
        return
    if run is None:
        problems.append(f"{launch.source}: there is no log of the run that this command started")
        return
    if launch.engine != run.engine:
        problems.append(f"{launch.source} launches {launch.engine}, {run.source} is a log of {run.engine}")
        return
    run.launch = launch
    run.arguments = run.arguments.with_launch(launch)


def _nothing(errors: list[InputError], paths: Sequence[Path]) -> InputError:
    if len(errors) == 1:
        return errors[0]
    if errors:
        return UnreadableInput(
            "none of the inputs could be read",
            why="; ".join(f"{error.where}: {error.what}" for error in errors[:5]),
            hint=errors[0].hint,
        )
    where = ", ".join(map(str, paths))
    return UnreadableInput(
        "nothing to read was found",
        why="no file here is a log, launch command or config that draftscope knows",
        where=where,
        hint="give a server log, or a folder that holds one",
    )
