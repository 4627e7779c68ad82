"""Reads a vLLM log line by line: runs, their arguments, one window an interval and engine, and events."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from collector.domain.arguments import UNSEEN, Arguments, Value
from collector.domain.evidence import LONGEST_TEXT, Evidence
from collector.domain.redaction import redact_mapping, redact_text
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.formats.base import Dispatch, Life, Line, ReadOptions, Session, decode
from collector.formats.base import Place as LinePlace
from collector.formats.beginnings import wordings_of
from collector.formats.blocks import LARGE, Block
from collector.formats.counts import spec_counts
from collector.formats.tracebacks import BEGIN, Tracebacks
from collector.formats.vllm import configuration
from collector.formats.vllm.intervals import Acceptance, Intervals, Place, Read, interval_seconds
from collector.formats.vllm.lifetime import LifetimeCounts
from collector.formats.vllm.lines import LINES
from collector.formats.vllm.prefix import Calendar, Head, HeadReader, Parts, without_colour
from collector.formats.vllm.stats import StatsReader

if TYPE_CHECKING:
    from collector.formats.vllm.bulk import BulkReader, VllmView

_AVERAGE: Final = b"Avg prompt throughput: "
ACCEPTANCE: Final = (b"SpecDecoding metrics: ", b"Speculative metrics: ")
_WHOLE_PROMPTS: Final = ReleaseRange.parse("-0.15.1")
_GLUED: Final = re.compile(rb"(?<=refleaks\.html)\(?\w")
_BARE_NOISE: Final = re.compile(
    rb"\s*$"
    rb"|.*\.py:\d+: \w*Warning: |\s+warnings\.warn\("
    rb"|nanobind: | - (?:leaked |\.\.\. skipped)|See https://nanobind"
    rb"|.{0,400}?\d+%\||.{0,400}?\d+% Completed|.{0,200}\[\d\d:\d\d[<,]"
    rb"|\[[WIE]\d{4} |\[rank\d+\]:|\[Gloo\] |usage: |Triton is installed, "
    rb"|  [\w .]*\w\(.*\)$|  if |  wrapper = |`torch_dtype` is deprecated"
)
_DETAIL: Final = re.compile(rb"\s+(?:Value error, |Assertion failed, )?(?P<text>\S.*?)(?: \[type=.*)?$")
_SETTING_NAME: Final = re.compile(rb"[\w.]{1,80}$")
_ROOT_CAUSE_ABOVE: Final = ("See root cause above", "See stack trace (above)")
_FAILING_LATE: Final = frozenset({"failed", "failed-output", "failed-v0"})
"""Failures of an engine that had started: a log that begins later shows no other sign of that."""
_OPTIONS: Final = {
    "cudagraph_mode": "compilation_config.cudagraph_mode",
    "num_speculative_tokens": "speculative_config.num_speculative_tokens",
    "draft_max_model_len": "speculative_config.max_model_len",
}
"""Options that a message names by another word."""
_REPEATED: Final = frozenset({"retracted", "ready"})
"""Kinds of which each counts; of others a process more says the same."""
_SETTLED: Final = frozenset({"async_scheduling", "max_num_batched_tokens", "enable_chunked_prefill"})
_NESTED: Final = ("speculative_config.", "compilation_config.")


@dataclass(slots=True)
class _Voice:
    """What one process is saying: its last line, and the traceback it prints.

    ``code`` is the place in the code that the last line came from, ``known`` whether it was
    understood, ``traced`` the place of the traceback's lines: empty where they have no head.
    """

    tracebacks: Tracebacks = field(default_factory=Tracebacks)
    code: bytes = b""
    known: bool = False
    traced: bytes = b""
    detail: bytes = b""
    """What a validation error says below its headline."""


@dataclass
class Facts:
    """What the session keeps of the run it is in, beside the record itself."""

    life: Life
    intervals: Intervals = field(default_factory=Intervals)
    configured_by: set[bytes] = field(default_factory=set)
    asked: bool = False
    served: bool = False
    stopping: bool = False
    failure: Event | None = None
    said: set[tuple[str, str]] = field(default_factory=set)
    lifetime: bool = False
    """Whether V0's cumulative counters were seen."""
    depth: int | None = None
    depth_stated: bool = False
    releases: ReleaseRange = field(default_factory=ReleaseRange)
    """What the form of the lines allows."""

    def keep(self, read: Read) -> None:
        """Add what is complete to the run."""
        if read.windows or read.prefills:
            self.life.changed = True
            self.life.record.windows += read.windows
            self.life.record.prefills += read.prefills

    @property
    def begun(self) -> bool:
        """Whether a further start would be another run."""
        return bool(self.configured_by) or self.served or self.stopping or self.failure is not None


class VllmSession(Session):
    """One reading of one vLLM log.

    The line with the release opens a run, or the engine's configuration line where that is missing
    (offline use, a log that was cut). Without either all lines are one run.
    """

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.reading.kind = "vLLM log"
        self._heads = HeadReader()
        self.calendar = Calendar()
        self._engine_lines = Dispatch(LINES, LinePlace.ENGINE)
        self._bare_lines = Dispatch(LINES, LinePlace.BARE)
        self._wordings = wordings_of("collector.formats.vllm")
        self._stats = StatsReader()
        self._acceptance_lines = tuple(line for line in LINES if line.name.startswith("acceptance"))
        self._voices: dict[bytes, _Voice] = {}
        self._run: Facts | None = None
        self._now: float | None = None
        self._bulk: BulkReader | None = None

    # ---- lines

    def block(self, block: Block) -> None:
        """Read a block of whole lines; a large one as arrays."""
        if block.size < LARGE:
            super().block(block)
            return
        if self._bulk is None:
            from collector.formats.vllm.bulk import BulkReader  # numpy takes longer to load than a small log to read

            self._bulk = BulkReader(self)
        self._bulk.read(block)

    def read_lines(self, block: Block) -> None:
        """Read a block line by line."""
        super().block(block)

    def facts_for(self, view: VllmView, first: int, last: int) -> Facts | None:
        """The run that samples in bulk are of, ``None`` where they may mean more to it than figures."""
        facts = self._run
        if facts is None or facts.intervals.holding:
            return None
        several = facts.intervals.several
        engines = view.named if several is None else view.further
        unsettled = (several is None or not several) and engines[last] > engines[first]
        undeclared = not facts.depth_stated and view.told[last] > view.told[first]
        return None if unsettled or undeclared else facts

    def held(self, facts: Facts, at: float, count: int) -> None:
        """So many samples in bulk, the last of this instant: what they mean for the run beside their figures."""
        self.reading.engine_lines += count
        self.reading.understood += count
        self._now = at
        self._serve(facts)
        self._touch()
        facts.life.changed = True

    @property
    def tracing(self) -> bool:
        """Whether a traceback is printed line by line with heads, so that any line of a process may end it."""
        return any(voice.tracebacks.active and voice.traced for voice in self._voices.values())

    def heard(self, speakers: Mapping[bytes, bytes], at: float, count: int) -> None:
        """So many lines of chatter in bulk, the last line of this instant; where in the code each process said the last one."""
        self.reading.engine_lines += count
        self.reading.understood += count
        for process, code in speakers.items():
            voice = self._voice(process)
            voice.code, voice.known = code, True
        self._now = at
        self._touch()

    def tell_clues(self, facts: Facts, releases: Iterable[str]) -> None:
        """What samples in bulk tell of the release."""
        for versions in releases:
            self._clue(facts, versions)

    def _flush(self) -> None:
        """Give the run the samples in bulk that came before this line."""
        if self._bulk is not None:
            self._bulk.flush()

    def line(self, position: int, number: int, line: bytes) -> None:
        """Read one line; one into which another was glued is read as two."""
        if line.endswith(b"\r"):
            line = line.rstrip(b"\r")
        if b"\x1b" in line:
            line = without_colour(line)
        parts = self._heads.read(line)
        head = parts.head
        if head is None:
            self._bare(position, number, parts, line)
            return
        self.reading.engine_lines += 1
        at = self._now = self.calendar.at(head)
        message = parts.message
        if _AVERAGE in message[:50]:
            self._read_stats(Place(position, number, at), parts)
        elif message.startswith(ACCEPTANCE):
            self._read_acceptance(Place(position, number, at), parts)
        else:
            self._message(number, parts, head, line)

    def _message(self, number: int, parts: Parts, head: Head, line: bytes) -> None:
        voice = self._voice(parts.process)
        message = parts.message
        if voice.tracebacks.active:
            if head.code == voice.traced and self._goes_on(voice, number, message):
                self.reading.understood += 1
                return
            if voice.traced:
                self._end_traceback(voice)
        # Further lines of one message come from the same place in the code.
        goes_on, voice.code = voice.code == head.code and voice.known, head.code
        if message.startswith(BEGIN):
            self.reading.understood += 1
            voice.traced = head.code
            voice.tracebacks.begin()
            return
        found = self._engine_lines.find(message)
        if found is None and message[:1] == b" ":
            found = self._engine_lines.find(message.lstrip())
        if found is not None:
            known, values = found
            self.reading.understood += 1
            voice.known = True
            if known.kind == "failing":
                if known.name in _FAILING_LATE:
                    self._serve(self._current())
                voice.traced = head.code
                voice.tracebacks.begin(fatal=True)
            elif known.name == "prefix-cache":
                self._flush()
                share = _completed(known, values)["cached_share"]
                self._current().intervals.cached(parts.process, float(str(share)))
            elif known.kind:
                self._event(known, values, number, parts, line)
        elif self._wordings.know(message) or goes_on or not message.strip():
            self.reading.understood += 1
            voice.known = True
        else:
            voice.known = False
            self.unread.add(number, message)
        self._touch()

    def _bare(self, position: int, number: int, parts: Parts, line: bytes) -> None:
        """A line without head: of uvicorn, of a traceback, or of a library."""
        message = parts.message
        if message.startswith(b"INFO:     ") and b' - "' in message:
            self.reading.understood += 1  # an access line, the most frequent of all
            return
        if b"refleaks.html" in line:
            glued = _GLUED.search(line)
            if glued is not None and self._heads.read(line[glued.start() :]).head is not None:
                self.line(position + glued.start(), number, line[glued.start() :])
                return
        voice = self._voice(parts.process)
        if voice.tracebacks.active and not voice.traced:
            if self._goes_on(voice, number, message):
                self.reading.understood += 1
                return
            self._end_traceback(voice)
        if message.startswith(BEGIN):
            self.reading.understood += 1
            voice.traced = b""
            voice.tracebacks.begin()
            return
        found = self._bare_lines.find(message)
        if found is not None:
            self.reading.understood += 1
            if found[0].kind:
                self._event(*found, number, parts, line)
            return
        self.calendar.learn(message)
        if _BARE_NOISE.match(message) or (parts.process and self._wordings.know(message)):
            self.reading.understood += 1

    def _voice(self, process: bytes) -> _Voice:
        voice = self._voices.get(process)
        if voice is None:
            if len(self._voices) >= 1_000:
                self._voices.clear()
            voice = self._voices[process] = _Voice()
        return voice

    # ---- runs

    def _touch(self) -> None:
        """Extend the open run's span."""
        if self._run is not None and self.calendar.year is not None:
            self._run.life.record.ended_at = self._now

    def _current(self) -> Facts:
        """The open run; without a start the file's lines are one run."""
        return self._run if self._run is not None else self._open()

    def _open(self) -> Facts:
        self._close()
        record = RunRecord("vllm", self.options.source, self.options.engine_version)
        if self.calendar.year is not None:
            record.started_at = record.ended_at = self._now
        facts = Facts(self.begin(record))
        launch = self.options.launch
        if launch is not None:
            self._learn(facts, launch.requested)
        self._run = facts
        return facts

    def _close(self) -> None:
        """The open run is over."""
        self._flush()
        facts = self._run
        if facts is None:
            return
        self._end_tracebacks()
        facts.keep(facts.intervals.finish())
        if facts.failure is not None:
            facts.life.add(facts.failure)
        facts.life.record.release_range = facts.releases
        self.end(facts.life)
        self._run = None

    def finish(self) -> None:
        """The log has ended: what was held back is decided."""
        if self._run is None and self.reading.engine_lines:
            self._open()  # an engine's log that states nothing about a run is still one run
        self._close()

    # ---- facts

    def _event(self, line: Line, values: Mapping[str, Value], number: int, parts: Parts, text: bytes) -> None:
        evidence = self.evidence(number, text)
        if line.kind == "version":
            self._release(values, evidence)
        elif line.kind == "configuration":
            self._configuration(values, evidence, parts)
        elif line.kind == "arguments":
            self._arguments(line, parts.message, number)
        else:
            self._tell(line, values, evidence)

    def _tell(self, line: Line, values: Mapping[str, Value], evidence: Evidence) -> None:
        facts = self._current()
        if line.kind == "ready":
            self._end_tracebacks()
            self._serve(facts)
        elif line.kind == "shutdown":
            facts.stopping = True
        elif line.kind == "refused":
            facts.failure = Event("refused", evidence, self._now, dict(values))
            return
        values = _completed(line, values)
        key = (line.name, repr(sorted(values.items(), key=str)))
        if line.kind not in _REPEATED and key in facts.said:
            return
        if len(facts.said) < 1_000:
            facts.said.add(key)
        self._clue(facts, line.versions)
        facts.life.add(Event(line.kind, evidence, self._now, values))
        settled = {name: value for name, value in values.items() if name in _SETTLED or name.startswith(_NESTED)}
        if settled and line.kind in ("setting", "announcement"):
            record = facts.life.record
            record.arguments = record.arguments.with_effective(settled, evidence)

    def _clue(self, facts: Facts, versions: str) -> None:
        """Narrow the releases by what prints a line; a clue that contradicts the others is left out."""
        if versions != "*":
            both = facts.releases.intersect(_range(versions))
            facts.releases = both if both is not None else facts.releases

    def _serve(self, facts: Facts) -> None:
        """The run serves: an exception before was survived."""
        facts.served = True
        if facts.failure is not None:
            facts.life.add(Event("exception", facts.failure.evidence, facts.failure.at, facts.failure.values))
            facts.failure = None

    def _release(self, values: Mapping[str, Value], evidence: Evidence) -> None:
        self._end_tracebacks()
        facts = self._run
        if facts is None or facts.begun:
            facts = self._open()
        self._state_release(facts, values)
        facts.life.add(Event("version", evidence, self._now, {"release": values.get("release")}))

    def _state_release(self, facts: Facts, values: Mapping[str, Value]) -> None:
        self._flush()
        try:
            release = Release.parse(str(values.get("release")))
        except ValueError:
            return
        if self.options.engine_version is None:
            facts.life.record.engine_version = release
        facts.intervals.whole_prompts = release in _WHOLE_PROMPTS

    def _configuration(self, values: Mapping[str, Value], evidence: Evidence, parts: Parts) -> None:
        """What the engine runs with; each data-parallel engine says it."""
        process = parts.process.partition(b" pid=")[0]
        facts = self._run
        if facts is None or process in facts.configured_by or facts.stopping:
            facts = self._open()
        first = not facts.configured_by
        facts.configured_by.add(process)
        if not first:
            return
        self._state_release(facts, values)
        running = redact_mapping(configuration.running(str(values["config"])))
        record = facts.life.record
        record.arguments = Arguments(
            {
                **record.arguments.by_name,
                **{
                    name: replace(
                        record.arguments[name],
                        effective=value,
                        effective_evidence=self._fragment(evidence.line, f"{name}={value!r}"),
                    )
                    for name, value in running.items()
                },
            }
        )
        self._learn(facts, running)
        stated: dict[str, Value] = {"release": values.get("release")}
        if values.get("generation"):
            stated["generation"] = str(values["generation"]).strip()
        facts.life.add(Event("configuration", evidence, self._now, stated))

    def _arguments(self, line: Line, message: bytes, number: int) -> None:
        """What was asked for."""
        facts = self._run
        if facts is None or (facts.asked and facts.begun):
            facts = self._open()
        facts.asked = True
        text = decode(message)
        if line.name == "asked":
            given = configuration.asked(text.partition(": ")[2])
        else:
            given = configuration.asked_of_all(text.partition("Namespace(")[2])
        given = redact_mapping(given)
        record = facts.life.record
        record.arguments = Arguments(
            {
                **record.arguments.by_name,
                **{
                    name: replace(
                        record.arguments[name],
                        requested=value,
                        requested_evidence=self._fragment(number, f"{name!r}: {value!r}"),
                    )
                    for name, value in given.items()
                },
            }
        )
        port = given.get("port")
        record.port = port if isinstance(port, int) else record.port
        self._learn(facts, given)
        facts.life.add(Event("arguments", self.evidence(number, message), self._now))

    def _fragment(self, number: int | None, text: str) -> Evidence:
        """The part of a line that states one argument."""
        return Evidence(self.options.source, number, redact_text(text)[:LONGEST_TEXT])

    def _learn(self, facts: Facts, values: Mapping[str, Any]) -> None:
        """What arguments say about the lines to come."""
        self._flush()
        engines = values.get("data_parallel_size")
        if isinstance(engines, int) and engines > 1:
            facts.intervals.several = True
        for name in ("speculative_config.num_speculative_tokens", "num_speculative_tokens"):
            depth = values.get(name)
            if isinstance(depth, int) and depth > 0:
                facts.depth = depth

    # ---- tracebacks

    def _end_tracebacks(self) -> None:
        for voice in self._voices.values():
            if voice.tracebacks.active:
                self._end_traceback(voice)

    def _goes_on(self, voice: _Voice, number: int, line: bytes) -> bool:
        """Whether a line belongs to the traceback that this process prints."""
        if voice.tracebacks.reached:
            detail = _DETAIL.match(line)
            if detail is not None and not voice.detail:
                voice.detail = detail["text"]
            elif detail is None and _SETTING_NAME.match(line) and not voice.detail:
                return True  # pydantic names the setting before it says what is wrong with it
        elif line.startswith(BEGIN):
            voice.detail = b""
        return voice.tracebacks.take(number, line)

    def _end_traceback(self, voice: _Voice) -> None:
        """A traceback is over: what was raised means a crash, a refused start, or nothing for the run."""
        raised = voice.tracebacks.end()
        detail, voice.detail = voice.detail, b""
        if raised is None:
            return
        if any(words.encode() in raised.line for words in _ROOT_CAUSE_ABOVE):
            self._end_tracebacks()  # the cause is what another process was printing
        facts = self._current()
        if facts.stopping:
            return  # processes that are shut down often end in one
        name, _, text = decode(raised.line[:LONGEST_TEXT]).partition(":")
        if detail and "ValidationError" in name:
            text = decode(detail[:LONGEST_TEXT])
        values: dict[str, Value] = {"exception": name.strip(), "message": redact_text(text.strip())}
        evidence = self.evidence(raised.number, raised.line)
        if facts.served:
            kind = "crashed" if raised.fatal else "exception"
            facts.stopping = facts.stopping or raised.fatal
            facts.life.add(Event(kind, evidence, self._now, values))
        elif facts.failure is None or _points_elsewhere(facts.failure):
            facts.failure = Event("crashed" if facts.configured_by else "refused", evidence, self._now, values)

    # ---- samples

    def _read_stats(self, place: Place, parts: Parts) -> None:
        stats = self._stats.read(parts.message)
        if stats is None:
            self.reading.torn_samples += 1
            return
        self._flush()
        self.reading.understood += 1
        facts = self._current()
        self._serve(facts)
        self._touch()
        self._clue(facts, "-0.10.2" if stats.form.v0 else "0.8.0-")
        if parts.process:
            self._clue(facts, "0.10.1-")
        facts.keep(facts.intervals.stats(parts.process, place, stats))

    def _read_acceptance(self, place: Place, parts: Parts) -> None:
        for line in self._acceptance_lines:
            values = line.read(parts.message)
            if values is not None:
                break
        else:
            self.reading.torn_samples += 1
            return
        self._flush()
        self.reading.understood += 1
        facts = self._current()
        self._serve(facts)
        self._touch()
        acceptance = (
            self._of_lifetime(facts, place, parts, values)
            if line.name == "acceptance-v0"
            else _of_interval(values, facts.depth)
        )
        self._clue(facts, line.versions)
        if line.name == "acceptance-0.8.5" and acceptance.counts.bonus_in_length is not None:
            self._clue(facts, "0.9.0-0.10.1" if acceptance.counts.bonus_in_length else "-0.8.5")
        if acceptance.counts.bonus_in_length is False:
            self.note("the printed mean acceptance length leaves out the target's own token (releases before 0.9.0)")
            if line.name == "acceptance" and not facts.life.record.events_of("bonus-missing"):
                evidence = self.evidence(place.line, parts.message)
                facts.life.add(Event("bonus-missing", evidence, place.at, {"printed": _number(values["length"])}))
        if acceptance.counts.accepted_at and not facts.depth_stated:
            self._state_depth(facts, len(acceptance.counts.accepted_at), place, parts)
        facts.keep(facts.intervals.acceptance(parts.process, place, acceptance))

    def _of_lifetime(self, facts: Facts, place: Place, parts: Parts, values: Mapping[str, Any]) -> Acceptance:
        lifetime = LifetimeCounts(values["drafted"], values["emitted"], max(values["depth"], 1))
        counts, reset = facts.intervals.lifetime(parts.process, lifetime)
        evidence = self.evidence(place.line, parts.message)
        if reset:
            facts.life.add(Event("counter-reset", evidence, place.at))
        if not facts.lifetime:
            facts.lifetime = True
            facts.life.add(Event("system-efficiency", evidence, place.at, {"system_efficiency": values["efficiency"]}))
            self.note(
                "V0 counts accepted tokens behind a rejected one as well; accepted tokens are taken from the emitted ones"
            )
        if not facts.depth_stated:
            self._state_depth(facts, values["depth"], place, parts)
        return Acceptance(counts, None, None, None)

    def _state_depth(self, facts: Facts, depth: int, place: Place, parts: Parts) -> None:
        """An acceptance line shows how many tokens are drafted; where nothing else said it, it says so."""
        facts.depth_stated = True
        record = facts.life.record
        asked = (*record.arguments, *(self.options.launch.requested if self.options.launch is not None else ()))
        nested = "speculative_config.num_speculative_tokens"
        own_option = facts.lifetime and not any(name.startswith("speculative_config") for name in asked)
        name = "num_speculative_tokens" if own_option else nested
        if depth and record.arguments[name].effective is UNSEEN:
            evidence = self.evidence(place.line, parts.message)
            record.arguments = record.arguments.with_effective({name: depth}, evidence)


@cache
def _range(versions: str) -> ReleaseRange:
    return ReleaseRange.parse(versions)


def _of_interval(values: Mapping[str, Any], depth: int | None) -> Acceptance:
    """What a line of V1 says about the interval since the line before."""
    accepted, drafted = values["accepted"], values["drafted"]
    printed = values.get("positions")  # a single one is a number, and may be 0
    positions = () if printed is None else tuple(float(rate) for rate in str(printed).split(", ") if rate)
    length = _number(values.get("length"))
    counts = spec_counts(accepted, drafted, length, tuple(rate for rate in positions if math.isfinite(rate)), depth)
    percent = _number(values.get("percent"))
    rate = percent / 100 if percent is not None else _number(values.get("rate"))
    seconds = interval_seconds(
        accepted, drafted, _number(values.get("accepted_throughput")), _number(values.get("drafted_throughput"))
    )
    return Acceptance(counts, length if counts.bonus_in_length is not False else None, rate, seconds)


def _number(value: Any) -> float | None:
    return float(value) if value is not None else None


def _completed(line: Line, values: Mapping[str, Value]) -> dict[str, Value]:
    """A message's values under the names of options, with numbers and lists in place of their text."""
    named = {_OPTIONS.get(name, name): value for name, value in values.items()}
    if line.kind == "kv-cache":
        named["tokens"] = int(str(named.pop("size")).replace(",", "") or 0)
    elif line.kind == "aux-layers":
        named["layers"] = [int(part) for part in str(named["layers"]).split(",") if part.strip(" -")]
    elif line.name == "async-scheduling":
        named["async_scheduling"] = named.pop("switch") == "enabled"
    elif line.name == "prefix-cache":
        named["cached_share"] = float(str(named.pop("percent"))) / 100
    return named


def _points_elsewhere(event: Event) -> bool:
    """Whether an exception says that the cause is in another process's lines."""
    return any(words in str(event.values.get("message")) for words in _ROOT_CAUSE_ABOVE)
