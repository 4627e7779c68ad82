"""Reads an SGLang log line by line: runs, their arguments, decode windows, prefills and events."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from collector.domain.arguments import Argument, Arguments, Value
from collector.domain.evidence import LONGEST_TEXT, Evidence
from collector.domain.redaction import redact_text, redact_value
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import ReleaseRange
from collector.domain.windows import PrefillWindow, Window
from collector.formats.base import (
    EVENTS_OF_A_KIND,
    Dispatch,
    Life,
    Line,
    Place,
    ReadOptions,
    RunPart,
    Session,
    decode,
)
from collector.formats.blocks import LARGE, Block
from collector.formats.pairs import Form, Pairs
from collector.formats.sglang.arguments import ArgumentForm, ArgumentLine, read_arguments
from collector.formats.sglang.lines import ACCESS, ARGUMENTS, DECODE, LINES, PREFILL
from collector.formats.sglang.messages import Message, Stage, known_messages
from collector.formats.sglang.prefix import Head, HeadReader, without_colour, without_logger
from collector.formats.sglang.ranks import Repeats
from collector.formats.sglang.releases import Clues, Trust
from collector.formats.tracebacks import BEGIN, Tracebacks

if TYPE_CHECKING:
    from collector.formats.sglang.bulk import BulkReader, SglangView

DEFAULT_INTERVAL: Final = 40
"""Decode steps between two decode lines where neither log nor launch command states them."""

# A progress bar, or Python's leak notice at exit, ends without a newline.
_GLUED: Final = re.compile(rb"(?<=it/s\]|s/it\]|\.html)\[\d{4}-\d\d-\d\d \d\d:")
_PYTHON_WARNING: Final = re.compile(rb"\.py:\d+: \w*Warning: ")
# Lines of Python, of progress bars and of libraries that leave without a trace of the engine.
_BARE_NOISE: Final = (
    b"  warnings.warn(",
    b"  Example: ",
    b"nanobind: ",
    b" - leaked ",
    b" - ... skipped",
    b"See https://nanobind",
    b"`torch_dtype` is deprecated",
    b"usage: ",
    b"[Gloo] ",
)
_PROGRESS: Final = (b"%|", b"% Completed |", b"it/s]", b"s/it]")
_ARGUMENT_STAGE_FILES: Final = (b"launch_server", b"server_args.py", b"/arg_groups/", b"cli/serve.py")
_LAST_WORDS: Final = ("shutdown", "shutdown-drained", "shutdown-killed")
_ALGORITHMS_WITH_TWO_OWN_TOKENS: Final = ("UNO",)
_LONGEST_ARGUMENTS: Final = 100_000
"""Characters up to which the lines of a broken argument line are put together."""


@dataclass
class CutArguments:
    """An argument line without its end: where it stands, the last line put to it, and what they say together."""

    number: int
    last: int
    text: str


@dataclass
class Facts:
    """What the session keeps of the run it is in, beside the record itself."""

    life: Life
    interval: float
    clues: Clues = field(default_factory=Clues)
    values: dict[str, Any] = field(default_factory=dict)
    has_arguments: bool = False
    cut: CutArguments | None = None
    """The argument line, where its end was not on it."""
    served: bool = False
    stopping: bool = False
    own_tokens: float = 1.0
    """Tokens of a printed length that are the target's and not the draft's."""
    counted_twice: bool = False
    """Whether a step's own token is counted twice in printed lengths and throughput."""
    last_form: Form | None = None
    last_prefill_form: Form | None = None
    exception: Event | None = None
    prefills: dict[str, int] = field(default_factory=dict)
    decodes: Repeats[Window] = field(default_factory=Repeats[Window])
    prefill_lines: Repeats[PrefillWindow] = field(default_factory=Repeats[PrefillWindow])


@dataclass
class _Announced:
    """What the argument stage said before its run is known: messages, their clues, and why it refused."""

    events: list[Event] = field(default_factory=list)
    clues: list[tuple[str, ReleaseRange]] = field(default_factory=list)
    refusal: Event | None = None


class SglangSession(Session):
    """One reading of one SGLang log.

    A ``server_args=`` line opens a run. What the argument stage said before it waits for it: all
    such lines since the file's start, or since the run before was ready, shut down or crashed.
    """

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.reading.kind = "SGLang log"
        self._heads = HeadReader()
        self._engine_lines = Dispatch(LINES, Place.ENGINE)
        self._bare_lines = Dispatch(LINES, Place.BARE)
        self._messages = known_messages()
        decode_tail, prefill_tail = LINES[0].tail, LINES[1].tail
        assert decode_tail is not None
        assert prefill_tail is not None
        self._decode_tail, self._prefill_tail = decode_tail, prefill_tail
        self._run: Facts | None = None
        self._waiting = _Announced()
        self._now: float | None = None
        self._tracebacks = Tracebacks(_ARGUMENT_STAGE_FILES)
        self._bulk: BulkReader | None = None

    # ---- lines

    def block(self, block: Block) -> None:
        """Read a block of whole lines; a large one as arrays."""
        if block.size < LARGE:
            super().block(block)
            return
        if self._bulk is None:
            from collector.formats.sglang.bulk import BulkReader  # numpy takes longer to load than a small log to read

            self._bulk = BulkReader(self, self._decode_tail, self._prefill_tail)
        self._bulk.read(block)

    def stretch(self, view: SglangView, first: int, last: int) -> Facts | None:
        """Lines in bulk, none of them a message: what they mean, without their samples; the run they are in."""
        if self._tracebacks.active and self._tracebacks.reached:
            self._end_traceback()
        facts = self._run
        last_at = float(view.at[last - 1])
        if view.samples[last] > view.samples[first]:
            if facts is None:
                first, at = view.first_sample(first)
                facts = self._open(at)
            facts.life.changed = True
            self._serve(facts)
        if facts is not None:
            ended_at: float | None = last_at
            if facts.stopping or view.some_milliseconds:
                ended_at, milliseconds = view.touching(first, last, loud=facts.stopping)
                if milliseconds:
                    self._tell_milliseconds(facts)
            if ended_at is not None:
                facts.life.record.ended_at = ended_at
        self._now = last_at
        return facts

    def line(self, position: int, number: int, line: bytes) -> None:
        """Read one line; one into which another was glued is read as two."""
        if line.endswith(b"\r"):
            line = line[:-1]
        if not line:
            self.reading.understood += 1
            return
        if b"\x1b" in line:
            line = without_colour(line)
        head = self._heads.read(line)
        if head is None:
            glued = _GLUED.search(line)
            if glued is not None:
                self.line(position + glued.start(), number, line[glued.start() :])
                return
            self._bare(number, line)
            return
        self.reading.engine_lines += 1
        if self._tracebacks.active and self._tracebacks.reached:
            self._end_traceback()
        self._now = head.at
        message = line[head.length :]
        if message.startswith(ACCESS):  # by far the most lines
            self.reading.understood += 1
            self._touch(head, last_words=True)
        elif message.startswith(DECODE):
            self._decode(position, number, head, message)
        elif message.startswith(PREFILL):
            self._prefill(position, number, head, message)
        elif message.startswith(ARGUMENTS):
            self._arguments(number, head, message)
        else:
            self._message(number, head, message, line)

    def _message(self, number: int, head: Head, message: bytes, line: bytes) -> None:
        found = self._engine_lines.find(message)
        if found is not None:
            self.reading.understood += 1
            known, values = found
            self._touch(head, last_words=known.name in _LAST_WORDS)
            if known.name == "scheduler-exception":
                self._tracebacks.begin(fatal=True)
            elif known.kind:
                self._event(known, values, self.evidence(number, line), head)
            return
        entry = self._messages.find(message)
        if entry is None:
            self.unread.add(number, message)
            self._touch(head)
            return
        self.reading.understood += 1
        self._touch(head)
        if entry.stage is Stage.KNOWN:
            self._wording(entry)
        else:
            self._announce(Event("announcement", self.evidence(number, line), head.at), head, entry)

    def _bare(self, number: int, line: bytes) -> None:
        if self._run is not None and self._run.cut is not None and self._continues(self._run, number, line):
            self.reading.understood += 1
            return
        if self._tracebacks.active:
            if self._tracebacks.take(number, line):
                self.reading.understood += 1
                return
            self._end_traceback()
        if line.startswith(BEGIN):
            self.reading.understood += 1
            self._tracebacks.begin()
            return
        message = without_logger(line)
        found = self._bare_lines.find(message)
        if found is not None:
            self.reading.understood += 1
            known, values = found
            if known.kind:
                self._event(known, values, self.evidence(number, line), None)
            return
        entry = self._messages.find(message)
        if entry is not None:
            self.reading.understood += 1
            if entry.stage is Stage.ARGUMENTS:
                self._announce(Event("announcement", self.evidence(number, line), self._now), None, entry)
            return
        if _is_noise(line):
            self.reading.understood += 1

    # ---- runs

    def _touch(self, head: Head, *, last_words: bool = False) -> None:
        """Extend the open run's span; once it shuts down, only by what a server says then."""
        facts = self._run
        if facts is None or (facts.stopping and not last_words):
            return
        facts.life.record.ended_at = head.at
        if head.milliseconds:
            self._tell_milliseconds(facts)

    @staticmethod
    def _tell_milliseconds(facts: Facts) -> None:
        facts.clues.add(Trust.PREFIX, "milliseconds in the time", "0.5.6-")

    def _current(self, at: float | None) -> Facts:
        """The open run; without an argument line the file's lines are one run."""
        if self._run is None:
            self._open(at)
        assert self._run is not None
        return self._run

    def _open(self, at: float | None) -> Facts:
        self._close()
        record = RunRecord("sglang", self.options.source, self.options.engine_version, started_at=at, ended_at=at)
        life = self.begin(record)
        facts = Facts(life, float(DEFAULT_INTERVAL))
        launch, carried = self.options.launch, self.options.carried
        interval = launch.requested.get("decode_log_interval") if launch is not None else None
        if isinstance(interval, int) and interval > 0:
            facts.interval = float(interval)
        if carried is not None and self.runs == 1:
            facts.values = {name: argument.effective for name, argument in carried.by_name.items()}
            self._believe(facts, facts.values)
        announced, self._waiting = self._waiting, _Announced()
        for event in announced.events:
            life.add(event)
        for what, versions in announced.clues:
            facts.clues.add(Trust.WORDING, what, versions)
        facts.exception = announced.refusal
        self._run = facts
        return facts

    def _close(self) -> None:
        """The open run ends: what it held back is decided."""
        if self._bulk is not None:
            self._bulk.flush()
        facts, self._run = self._run, None
        if facts is None:
            return
        record = facts.life.record
        if facts.cut is not None:
            self.note(
                f"line {facts.cut.number}: the server_args line is cut off after {len(facts.values)} fields; "
                "what came later is unknown"
            )
        record.windows += facts.decodes.finish()
        record.prefills += facts.prefill_lines.finish()
        if facts.exception is not None and not facts.served:
            kind = "crashed" if facts.has_arguments else "refused"
            facts.life.add(Event(kind, facts.exception.evidence, facts.exception.at, facts.exception.values))
        self._conclude(facts)
        self.end(facts.life)

    def _conclude(self, facts: Facts) -> None:
        record = facts.life.record
        record.release_range, notes = facts.clues.conclude(facts.values)
        if notes:
            more = f" (and {len(notes) - 3} more)" if len(notes) > 3 else ""
            self.note(f"release: left out as contradicting the rest: {'; '.join(notes[:3])}{more}")
            facts.life.add(Event("release-contradicted", Evidence(record.source, None, "; ".join(notes[:3]))))
        stated = record.engine_version
        if stated is not None and stated not in record.release_range:
            self.note(f"release: {stated} was stated, the lines look like {record.release_range}")

    def take(self, *, columns: bool = False) -> list[RunPart]:
        """What was read since the last call, run by run."""
        if self._run is not None:
            self._run.life.record.release_range, _ = self._run.clues.conclude(self._run.values)
        return super().take(columns=columns)

    def finish(self) -> None:
        """The log has ended."""
        if self._tracebacks.active:
            self._end_traceback()
        if self._waiting.refusal is not None or (self._waiting.events and self._run is None):
            self._open(self._now)
        elif self._run is not None:
            for event in self._waiting.events:
                self._run.life.add(event)
        if not self.runs and self.reading.engine_lines:
            self._open(self._now)  # an engine's log that states nothing about a run is still one run
        self._close()

    # ---- facts

    def _arguments(self, number: int, head: Head, message: bytes) -> None:
        text = decode(message[len(ARGUMENTS) :])
        read = read_arguments(text)
        if read is None:
            self.unread.add(number, message)
            return
        self.reading.understood += 1
        if self._waiting.refusal is not None:
            self._open(self._now)  # a start that was refused, before the one that was not
        facts = self._open(head.at)
        facts.has_arguments = True
        facts.cut = None if read.complete else CutArguments(number, number, text)
        facts.life.add(Event("arguments", self.evidence(number, message), head.at))
        self._state(facts, read, number)

    def _continues(self, facts: Facts, number: int, line: bytes) -> bool:
        """Whether a line goes on with an argument line that a terminal or an editor broke."""
        cut = facts.cut
        assert cut is not None
        if number != cut.last + 1 or len(cut.text) + len(line) > _LONGEST_ARGUMENTS:
            return False
        cut.last, cut.text = number, cut.text + decode(line)
        read = read_arguments(cut.text)
        if read is None or (len(read.values) <= len(facts.values) and not read.complete):
            return False
        if read.complete:
            facts.cut = None
        self._state(facts, read, cut.number)
        return True

    def _state(self, facts: Facts, read: ArgumentLine, number: int) -> None:
        """What an argument line says of its run."""
        record = facts.life.record
        values = {name: redact_value(name, value) for name, value in read.values.items()}
        facts.values = values
        record.arguments = Arguments(
            {
                name: Argument(
                    name,
                    effective=value,
                    effective_evidence=Evidence(self.options.source, number, _fragment(read.form, name, value)),
                )
                for name, value in values.items()
            }
        )
        port = values.get("port")
        record.port = port if isinstance(port, int) else None
        facts.clues.add_arguments(read.form, values)
        self._believe(facts, values)

    def _believe(self, facts: Facts, values: Mapping[str, Value]) -> None:
        """What arguments mean for the samples to come."""
        interval = values.get("decode_log_interval")
        if isinstance(interval, int) and interval > 0:
            facts.interval = float(interval)
        facts.own_tokens, facts.counted_twice = 1.0, False
        if values.get("enable_beta_spec") is True and values.get("speculative_algorithm"):
            facts.own_tokens, facts.counted_twice = 2.0, True
            self.note(
                "0.5.3 with --enable-beta-spec prints accept len and accept rate 1 token too high; "
                "accepted tokens are corrected, printed figures are kept as printed"
            )
        elif values.get("speculative_algorithm") in _ALGORITHMS_WITH_TWO_OWN_TOKENS:
            facts.own_tokens = 2.0
            self.note("UNO counts two tokens of its own a step; accepted tokens exclude both")

    def _event(self, line: Line, values: Any, evidence: Evidence, head: Head | None) -> None:
        at = head.at if head is not None else self._now
        event = Event(line.kind, evidence, at, values)
        if line.kind == "announcement":
            self._announce(event, head, line)
            return
        if line.kind == "refused":
            self._waiting.refusal = event
            return
        facts = self._current(at)
        if line.kind == "ready":
            self._serve(facts)
        elif line.kind in ("shutdown", "child-failed"):
            facts.stopping = True
        if line.versions != "*":
            facts.clues.add(Trust.WORDING, f"line {line.name}", line.versions)
        facts.life.add(event)

    def _serve(self, facts: Facts) -> None:
        """The run serves: an exception before was survived."""
        facts.served = True
        if facts.exception is not None:
            facts.life.add(facts.exception)
            facts.exception = None

    def _announce(self, event: Event, head: Head | None, origin: Line | Message) -> None:
        """A message of the argument stage: part of the run that is starting, or of the next one."""
        if isinstance(origin, Line):
            clue = (f"line {origin.name}", ReleaseRange.parse(origin.versions))
        else:
            clue = (f"wording {decode(origin.starts)!r}", origin.versions)
        facts = self._run
        starting = facts is not None and facts.has_arguments and not facts.served and not facts.stopping
        if facts is not None and (starting or (head is not None and head.ranks.unit)):
            facts.life.add(event)
            facts.clues.add(Trust.WORDING, *clue)
            return
        if len(self._waiting.events) < EVENTS_OF_A_KIND:
            self._waiting.events.append(event)
            self._waiting.clues.append(clue)

    def _wording(self, message: Message) -> None:
        if self._run is not None and message.versions != ReleaseRange():
            self._run.clues.add(Trust.WORDING, f"wording {decode(message.starts)!r}", message.versions)

    # ---- tracebacks

    def _end_traceback(self) -> None:
        """A traceback is over: what was raised means a crash, a refused start, or nothing for the run."""
        raised = self._tracebacks.end()
        facts = self._run
        if raised is None:
            return
        survived = facts is not None and facts.served and not (facts.stopping or raised.fatal)
        if facts is not None and survived and facts.life.passed_over("exception"):
            return
        evidence = self.evidence(raised.number, raised.line)
        name, _, text = evidence.text[:LONGEST_TEXT].partition(":")
        values: dict[str, Value] = {"exception": name.strip(), "message": text.strip()}
        event = Event("exception", evidence, self._now, values)
        if raised.fatal:
            facts = self._current(self._now)
            facts.life.add(replace(event, kind="crashed"))
            facts.stopping = True
        elif facts is None or (facts.stopping and (raised.marked or self._waiting.events)):
            self._waiting.refusal = event
        elif facts.stopping:
            return  # processes that are shut down often end in one
        elif survived:
            facts.life.add(event)
        else:
            facts.exception = event

    # ---- samples

    def _serving(self, head: Head) -> Facts:
        """The run of a whole sample that was read."""
        if self._bulk is not None:
            self._bulk.flush()  # samples before this one come first
        self.reading.understood += 1
        facts = self._current(head.at)
        self._touch(head, last_words=True)  # a draining server still decodes
        self._serve(facts)
        return facts

    def _decode(self, position: int, number: int, head: Head, message: bytes) -> None:
        pairs = self._decode_tail.read(message[len(DECODE) :])
        if pairs is None:
            self.reading.torn_samples += 1
            return
        facts = self._serving(head)
        if pairs.form is not facts.last_form:
            facts.last_form = pairs.form
            facts.clues.add_decode(pairs.form)
        window = self._window(facts, position, number, head, pairs)
        facts.life.changed = True
        facts.life.record.windows += facts.decodes.add(window, head.ranks, _same_decode(window))

    def _window(self, facts: Facts, position: int, number: int, head: Head, pairs: Pairs) -> Window:
        values: dict[str, Any] = pairs.values
        running = values["running_requests"]
        length, rate = values.get("printed_length"), values.get("printed_rate")
        throughput = values.get("generation_throughput")
        steps = facts.interval * running
        generated: float | None = steps
        verify = accepted = None
        if length is not None and not math.isfinite(length):
            generated = None  # kept as printed, and nothing is derived from it
        elif length is not None:
            if rate is not None and math.isfinite(rate):
                facts.clues.add_pair(length, rate)
            verify = steps
            accepted = (length - facts.own_tokens) * steps
            generated = length * steps
        seconds = generated / throughput if generated and throughput and math.isfinite(throughput) else None
        if generated is not None and facts.counted_twice:
            generated -= steps  # so is the printed throughput, so the clock holds
        unit = head.ranks.unit
        return Window(
            position=position,
            line=number,
            at=head.at,
            unit=unit,
            seconds=seconds,
            running_requests=running,
            waiting_requests=values.get("waiting_requests"),
            verify_steps=verify,
            accepted_tokens=accepted,
            generated_tokens=generated,
            generation_throughput=throughput,
            printed_length=length,
            printed_rate=rate,
            tokens_in_use=values.get("tokens_in_use"),
            kv_cache_usage=values.get("kv_cache_usage"),
            graph=values.get("graph"),
            prefills=facts.prefills.pop(unit, 0),
        )

    def _prefill(self, position: int, number: int, head: Head, message: bytes) -> None:
        pairs = self._prefill_tail.read(message[len(PREFILL) :])
        if pairs is None:
            self.reading.torn_samples += 1
            return
        facts = self._serving(head)
        if pairs.form is not facts.last_prefill_form:
            facts.last_prefill_form = pairs.form
            facts.clues.add_prefill(pairs.form)
        values: dict[str, Any] = pairs.values
        unit = head.ranks.unit
        facts.prefills[unit] = facts.prefills.get(unit, 0) + 1
        window = PrefillWindow(position, number, head.at, unit, values["new_tokens"], values["cached_tokens"])
        facts.life.changed = True
        facts.life.record.prefills += facts.prefill_lines.add(
            window, head.ranks, (window.new_tokens, window.cached_tokens, values.get("new_sequences"))
        )


def _is_noise(line: bytes) -> bool:
    """Whether a line without prefix is of a kind that tells nothing."""
    if line.startswith(_BARE_NOISE) or not line.strip():
        return True
    head = line[:2_000]
    return any(mark in head for mark in _PROGRESS) or (
        b"Warning: " in head and _PYTHON_WARNING.search(head) is not None
    )


def _same_decode(window: Window) -> tuple[float | None, ...]:
    """What two ranks of one batch print alike; their clocks differ, so throughput is not in it."""
    return (window.running_requests, window.tokens_in_use, window.printed_length, window.waiting_requests)


def _fragment(form: ArgumentForm, name: str, value: Any) -> str:
    """The part of the argument line that states one field, as it stands there."""
    text = redact_text(f"{name}={value!r}" if form is ArgumentForm.OBJECT else f"{name!r}: {value!r}")
    return text[:2_000]
