"""Reads a llama.cpp server log line by line: runs, settings, one window a request, and events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from collector.domain.arguments import UNSEEN, Value
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.formats.base import Dispatch, Life, Line, ReadOptions, Session, decode
from collector.formats.base import Place as LinePlace
from collector.formats.beginnings import wordings_of
from collector.formats.llamacpp.lines import LINES
from collector.formats.llamacpp.prefix import Parts, read_line, without_colour
from collector.formats.llamacpp.requests import Drafts, Place, Request

RESTART_SECONDS: Final = 1.0
"""An uptime that falls by more is that of another process; threads differ by less."""
UNKNOWN_DRAFT: Final = "draft"
"""The type of a server that drafts with a model and does not say of which kind."""

_TORN: Final = (b"draft acceptance", b"acc per pos = ", b"prompt eval time =", b"eval time =", b"statistics ")
_START: Final = frozenset({"starting", "build", "build-info", "build-info-server"})
# Functions whose lines tell how a model is loaded; none of them is kept.
_LOADING: Final = re.compile(
    rb"llama_\w+|ggml_\w+|gguf_\w+|clip_\w+|mtmd_\w+|load(?:_\w+)?|print_info|create_\w+|done_\w+|sched_\w+|graph_\w+|set_\w+"
    rb"|system_info|system info|build|build_info|common_\w+|~?llama_\w+|operator\(\)|init|start"
)
_BARE_NOISE: Final = re.compile(rb"\s*$|\.+$|<\|im_|'$|system_info|xllamacpp: ")


@dataclass
class _Facts:
    """What the session keeps of the run it is in, beside the record itself."""

    life: Life
    drafts: Drafts
    timed: bool = False
    loaded: bool = False
    stopping: bool = False
    draft_loaded: bool = False
    old: bool = False
    """Whether its lines are those of b9093 and before, where each slot counts for itself."""
    clock: float = 0.0
    error: str = ""
    types: list[str] = field(default_factory=list)
    types_counting: list[str] | None = None
    """The types that count drafts, from where the log showed that there are drafts and had not said of which type."""
    slots: dict[int, Request] = field(default_factory=dict)
    cached: dict[int, int] = field(default_factory=dict)
    counted: dict[tuple[int | None, str], int] = field(default_factory=dict)
    last: Request | None = None
    releases: ReleaseRange = field(default_factory=ReleaseRange)
    said: set[tuple[str, str]] = field(default_factory=set)


class LlamacppSession(Session):
    """One reading of one log. A start line, or an uptime that begins anew, opens the next run.

    Instants are seconds since the start of the process: the log prints no date. Old builds print no
    time at all; there the requests' own durations stand one after the other.
    """

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.reading.kind = "llama.cpp log"
        self._engine_lines = Dispatch(LINES, LinePlace.ENGINE)
        self._bare_lines = Dispatch(LINES, LinePlace.BARE)
        self._wordings = wordings_of("collector.formats.llamacpp")
        self._run: _Facts | None = None
        self._slot = 0
        self._samples = {
            "prompt": self._prompt,
            "eval": self._eval,
            "total": self._total,
            "acceptance-rate": self._bare_acceptance,
            "acceptance": self._acceptance,
            "acceptance-positions": self._acceptance,
            "acceptance-length": self._acceptance,
            "positions": self._positions,
            "statistics": self._statistics,
            "begun": self._begun,
            "cached": self._cached,
            "released": self._released,
        }

    # ---- lines

    def line(self, position: int, number: int, line: bytes) -> None:
        """Read one line; a JSON line may hold several."""
        if line.endswith(b"\r"):
            line = line.rstrip(b"\r")
        if b"\x1b" in line:
            line = without_colour(line)
        parts = read_line(line)
        if parts.marked:
            self.reading.engine_lines += 1
        message, *further = parts.message.split(b"\n") if b"\n" in parts.message else (parts.message,)
        self._take(position, number, parts._replace(message=message), line)
        for part in further:
            self._found(position, number, parts._replace(message=part.strip()), line)

    def _take(self, position: int, number: int, parts: Parts, line: bytes) -> None:
        if parts.at is not None:
            self._advance(parts.at)
        if parts.slot is not None and parts.function == b"print_timing":
            self._slot = parts.slot
        if self._found(position, number, parts, line):
            self.reading.understood += 1
        elif parts.message.startswith(_TORN):
            self.reading.torn_samples += 1
        elif not parts.marked:
            self.reading.understood += bool(_BARE_NOISE.match(parts.message))
        else:
            if parts.level == b"E":
                self._current().error = decode(parts.message[:400])
            if self._is_known(parts):
                self.reading.understood += 1
            else:
                self.unread.add(number, parts.message)

    def _is_known(self, parts: Parts) -> bool:
        """Whether a message without facts is one that the engine is known to print."""
        loading = not parts.component and _LOADING.fullmatch(parts.function) is not None
        return not parts.message or loading or self._wordings.know(parts.message)

    def _found(self, position: int, number: int, parts: Parts, line: bytes) -> bool:
        """Whether the message is a declared line; then it is taken in."""
        found = (self._engine_lines if parts.marked else self._bare_lines).find(parts.message)
        if found is None or not _belongs(found[0], parts):
            return False
        known, values = found
        facts = self._run_of(known)
        if known.versions != "*":
            both = facts.releases.intersect(_range(known.versions))
            facts.releases = both if both is not None else facts.releases
        handler = self._samples.get(known.name)
        if handler is not None:
            slot = parts.slot if parts.slot is not None else self._slot
            handler(facts, slot, Place(position, number, parts.at if parts.at is not None else facts.clock), values)
        elif known.kind:
            self._event(facts, known, dict(values), self.evidence(number, line))
        return True

    # ---- runs

    def _advance(self, at: float) -> None:
        facts = self._run
        if facts is None or (facts.timed and at < facts.clock - RESTART_SECONDS):
            facts = self._open()
        facts.timed = True
        facts.clock = max(at, facts.clock)

    def _run_of(self, line: Line) -> _Facts:
        """The open run; a new one where a line belongs to a start and the open run is past its own."""
        facts = self._run
        starts = line.name in _START and facts is not None and (facts.loaded or facts.stopping)
        reloads = line.name == "model" and facts is not None and facts.stopping
        return self._open() if facts is None or starts or reloads else facts

    def _current(self) -> _Facts:
        return self._run if self._run is not None else self._open()

    def _open(self) -> _Facts:
        self._close()
        record = RunRecord("llamacpp", self.options.source, self.options.engine_version)
        launch = self.options.launch
        facts = _Facts(self.begin(record), _asked_drafts(launch.requested if launch is not None else {}))
        self._run = facts
        return facts

    def _close(self) -> None:
        facts = self._run
        if facts is None:
            return
        for slot in list(facts.slots):
            self._complete(facts, slot)
        facts.life.record.release_range = facts.releases
        self.end(facts.life)
        self._run = None
        self._slot = 0

    def finish(self) -> None:
        """The log has ended: open requests are complete."""
        if self._run is None and self.reading.engine_lines:
            self._open()  # an engine's log that states nothing about a run is still one run
        for request in self._run.slots.values() if self._run is not None else ():
            request.cut = request.drafted is None
        self._close()

    # ---- requests

    def _request(self, facts: _Facts, slot: int) -> Request:
        request = facts.slots.get(slot)
        if request is None:
            request = facts.slots[slot] = Request(slot, cached_tokens=facts.cached.pop(slot, None))
        facts.last = request
        return request

    def _complete(self, facts: _Facts, slot: int) -> None:
        request = facts.slots.pop(slot, None)
        if request is None:
            return
        window, prefill = request.window(facts.drafts), request.prefill()
        if window is not None:
            facts.life.record.windows.append(window)
            if request.bare and request.steps is None and request.drafted:
                self.note("this build prints no number of drafts: every decode step is taken to verify one")
        if prefill is not None:
            facts.life.record.prefills.append(prefill)
        facts.life.changed = True

    def _begun(self, facts: _Facts, slot: int, _place: Place, _values: Mapping[str, Any]) -> None:
        self._complete(facts, slot)
        facts.cached.pop(slot, None)

    def _cached(self, facts: _Facts, slot: int, _place: Place, values: Mapping[str, Any]) -> None:
        if len(facts.cached) < 10_000:
            facts.cached.setdefault(slot, values.get("cached", values.get("rest")))

    def _prompt(self, facts: _Facts, slot: int, place: Place, values: Mapping[str, Any]) -> None:
        self._complete(facts, slot)
        request = self._request(facts, slot)
        request.begun, request.prompt_tokens = place, values["tokens"]

    def _eval(self, facts: _Facts, slot: int, place: Place, values: Mapping[str, Any]) -> None:
        request = self._request(facts, slot)
        if request.ended is not None:
            self._complete(facts, slot)
            request = self._request(facts, slot)
        request.ended, request.tokens, request.throughput = place, values["tokens"], float(values["rate"])

    def _total(self, facts: _Facts, slot: int, _place: Place, values: Mapping[str, Any]) -> None:
        if facts.timed:
            return
        milliseconds = float(values["ms"])
        facts.clock += milliseconds / 1_000 if 0 < milliseconds < 1e12 else 0.0
        request = facts.slots.get(slot)
        if request is not None and request.ended is not None:
            request.ended = request.ended._replace(at=facts.clock)

    def _acceptance(self, facts: _Facts, slot: int, place: Place, values: Mapping[str, Any]) -> None:
        request = self._request(facts, slot)
        request.accepted_place = place
        request.accepted, request.drafted, request.rate = values["accepted"], values["drafted"], float(values["rate"])
        if "length" in values:
            request.length = float(values["length"])
        else:
            request.bare = True
        if "positions" in values:
            request.positions = _rates(values["positions"])
        if request.drafted:
            self._state_type(facts, place, values)

    def _bare_acceptance(self, facts: _Facts, slot: int, place: Place, values: Mapping[str, Any]) -> None:
        facts.old = True
        self._acceptance(facts, slot, place, values)

    def _positions(self, facts: _Facts, slot: int, _place: Place, values: Mapping[str, Any]) -> None:
        self._request(facts, slot).positions = _rates(values["positions"])

    def _statistics(self, facts: _Facts, slot: int, place: Place, values: Mapping[str, Any]) -> None:
        """What an implementation counted since the start: its part in the request that has just ended.

        Old builds count an accept call only where something was accepted, so there the drafts count.
        """
        self._counting_type(facts, place, str(values["implementation"]))
        counted = values["drafts"] if facts.old else values["verified"]
        key = slot if facts.old else None, str(values["implementation"])
        before = facts.counted.get(key, 0)
        if len(facts.counted) < 10_000:
            facts.counted[key] = counted
        request = facts.last
        if request is not None and request.drafted is not None and facts.slots.get(request.slot) is request:
            request.steps = (request.steps or 0) + (counted - before if counted >= before else counted)

    def _released(self, facts: _Facts, slot: int, _place: Place, _values: Mapping[str, Any]) -> None:
        self._complete(facts, slot)

    def _state_type(self, facts: _Facts, place: Place, values: Mapping[str, Any]) -> None:
        """Drafts were made: where neither log nor command said of which type, the log shows that there is one."""
        record = facts.life.record
        asked = self.options.launch.requested if self.options.launch is not None else {}
        if record.arguments["spec_type"].effective is not UNSEEN or asked.get("spec_type"):
            return
        kind = "draft-simple" if facts.old and (facts.draft_loaded or not facts.loaded) else UNKNOWN_DRAFT
        facts.types_counting = []
        counts = f"{values['accepted']} accepted / {values['drafted']} generated"
        record.arguments = record.arguments.with_effective(
            {"spec_type": kind}, Evidence(self.options.source, place.line, f"draft acceptance … ({counts})")
        )

    def _counting_type(self, facts: _Facts, place: Place, implementation: str) -> None:
        """Each implementation that runs counts: a log without its start names the types there."""
        if facts.types_counting is None or implementation == "draft":
            return
        name = implementation if implementation.startswith(("ngram", "draft-")) else f"draft-{implementation}"
        if name in facts.types_counting:
            return
        facts.types_counting.append(name)
        facts.drafts.short = facts.drafts.short or name.startswith("ngram") or len(facts.types_counting) > 1
        record = facts.life.record
        record.arguments = record.arguments.with_effective(
            {"spec_type": ",".join(facts.types_counting)},
            Evidence(self.options.source, place.line, f"statistics {implementation}"),
        )

    # ---- facts

    def _event(self, facts: _Facts, line: Line, values: dict[str, Value], evidence: Evidence) -> None:
        if line.kind == "version" and not values["build"]:
            return  # built outside the project's own releases
        effective = self._settle(facts, line, values)
        if effective:
            record = facts.life.record
            record.arguments = record.arguments.with_effective(effective, evidence)
        key = line.name, repr(sorted(values.items()))
        if key in facts.said:
            return  # each slot says it
        if len(facts.said) < 1_000:
            facts.said.add(key)
        facts.life.add(Event(line.kind, evidence, facts.clock if facts.timed else None, values))

    def _settle(self, facts: _Facts, line: Line, values: dict[str, Value]) -> dict[str, Value]:
        """Take in what a line says about the run; gives the options that it states."""
        kind = line.kind
        if kind == "version":
            self._state_build(facts, values)
        elif kind == "model-loading":
            facts.loaded = True
            return {"model": values["model"]}
        elif kind == "draft-loading":
            facts.draft_loaded = True
            return {name: values[name] for name in ("spec_draft_model",) if name in values}
        elif kind == "capacity":
            return {"parallel": values["parallel"]}
        elif kind == "ready":
            facts.loaded = True
        elif kind == "implementation":
            return self._implementation(facts, values)
        elif kind == "setting":
            return _settings(facts, values)
        elif kind in {"speculation-off", "speculation-failed"}:
            return {"spec_type": "none"}
        elif kind == "announcement":
            return {name: values[name] for name in ("spec_type", "spec_draft_n_max") if name in values}
        elif kind == "aux-layers":
            values["layers"] = [int(part) for part in str(values["layers"]).split(",") if part.strip(" -")]
        elif kind in {"refused", "crashed", "shutdown"}:
            facts.stopping = True
            if line.name == "exiting" and facts.error:
                values["message"] = redact_text(facts.error)
        return {}

    def _state_build(self, facts: _Facts, values: dict[str, Value]) -> None:
        if self.options.engine_version is None:
            facts.life.record.engine_version = Release.parse(f"b{values['build']}")

    def _implementation(self, facts: _Facts, values: dict[str, Value]) -> dict[str, Value]:
        """One more way to draft: a server may have several, and they are asked in this order."""
        name = str(values["implementation"]).replace("_", "-")
        name = "draft-simple" if name == "draft" else name
        values["implementation"] = name
        if name not in facts.types:
            facts.types.append(name)
        facts.drafts.short = facts.drafts.short or name.startswith("ngram") or len(facts.types) > 1
        return {"spec_type": ",".join(facts.types)}


def _belongs(line: Line, parts: Parts) -> bool:
    """Whether a line whose message says little comes from the function that prints it."""
    if line.name == "build":
        return parts.function == b"build"
    if line.name == "build-info":
        return parts.function == b"build_info"
    return True


def _asked_drafts(requested: Mapping[str, Any]) -> Drafts:
    """How drafts look by the launch command alone."""
    depth = requested.get("spec_draft_n_max", requested.get("draft_max"))
    kind = str(requested.get("spec_type") or "")
    sure = requested.get("spec_draft_p_min") or 0
    short = "ngram" in kind or (isinstance(sure, (int, float)) and sure > 0)
    known = isinstance(depth, int) and not isinstance(depth, bool) and depth > 0
    return Drafts(depth if known else None, "draft" in kind and not short, short)


def _settings(facts: _Facts, values: dict[str, Value]) -> dict[str, Value]:
    """The settings of the implementation that was named last, under its options' names."""
    kind = facts.types[-1] if facts.types else "draft-simple"
    depth = values.get("spec_draft_n_max", values.get("n_max", values.get("size_m", values.get("draft_tokens"))))
    if isinstance(depth, int) and depth > 0:
        facts.drafts.depth = max(depth, facts.drafts.depth or 0) if len(facts.types) > 1 else depth
    sure = values.get("spec_draft_p_min")
    facts.drafts.short = facts.drafts.short or (isinstance(sure, (int, float)) and sure > 0)
    if "draft_tokens" in values:
        return {}
    if "spec_draft_n_max" in values:
        return dict(values)
    return {f"spec_{kind.replace('-', '_')}_{name}": value for name, value in values.items()}


def _rates(text: object) -> tuple[float, ...]:
    return tuple(float(part) for part in str(text).split(",") if part.strip())


@cache
def _range(versions: str) -> ReleaseRange:
    return ReleaseRange.parse(versions)
