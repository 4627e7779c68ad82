"""Which releases could have printed a log, told from the form of its lines.

Most logs do not state the release. Each clue allows a range; they are intersected from the most
to the least certain, and a clue that contradicts what is settled already is left out and noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from collector.domain.versions import ReleaseRange
from collector.formats.pairs import Form
from collector.formats.sglang.arguments import ArgumentForm
from collector.formats.sglang.messages import field_ranges

PAIRS_KEPT: Final = 64
ROUNDING: Final = 0.0051
"""Lengths and rates are printed with two decimals."""


class Trust(IntEnum):
    """How certain a kind of clue is; the first is settled first."""

    DECODE = 0
    RATE = 1
    ARGUMENT_FORM = 2
    PREFILL = 3
    PREFIX = 4
    WORDING = 5
    FIELDS = 6


# Keys of the decode line and the releases that print them.
_DECODE_KEYS: Final = {
    b"largest-len": "0.4.3-0.4.3",
    b"accept len": "0.4.1.post7-",
    b"accept rate": "0.5.3.post2-",
    b"cuda graph": "0.4.6-",
    b"cpu graph": "0.5.3-",
    b"npu graph": "0.5.9-",
    b"musa graph": "0.5.9-",
    b"#retracted-req": "0.4.7-",
    b"#prealloc-req": "0.5.3-",
    b"#full token": "0.4.9-",
    b"mamba num": "0.5.3-",
    b"#gpu token": "0.5.10-",
    b"waiting-image-req": "0.5.9-",
    b"est. decode TFLOPS/s (per GPU)": "0.5.10-",
    b"fwd occupancy": "0.5.10-",
    b"cap len": "0.5.16-",
    b"block accept len": "0.5.16-",
    b"est uncap acc len": "0.5.16-",
    b"#host-receive-req": "0.5.21-",
}
_PREFILL_KEYS: Final = {
    b"cache hit rate": "-0.4.1",
    b"#unbootstrapped-req": "0.4.6-0.5.2",
    b"#prealloc-req": "0.5.3-0.5.11",
    b"#pending-token": "0.5.11-",
    b"#bootstrap-req": "0.5.12-",
    b"#optimistic-req": "0.5.16-",
    b"#replay-token": "0.5.21-",
}
# (stop after the literal, graph flag, trailing comma) of a decode line
_PUNCTUATION: Final = {
    (b".", False, False): "-0.4.1",
    (b".", False, True): "0.4.3-0.4.5",
    (b".", True, False): "0.4.6-0.4.8",
    (b".", True, True): "0.4.9-0.5.3",
    (b",", True, True): "0.5.4-0.5.8",
    (b",", True, False): "0.5.9-",
}
_GRAPH: Final = re.compile(rb"\w+ graph")
_RATE_BY_MAX_LENGTH: Final = "0.5.3.post2-0.5.4"
_RATE_BY_WIDTH: Final = "0.5.5-0.5.10"
_RATE_WITH_BONUS: Final = "0.5.3.post2-0.5.10"
_RATE_STRICT: Final = "0.5.11-"


@dataclass
class Clues:
    """What was seen of one run that tells its release."""

    ranges: dict[tuple[Trust, str], ReleaseRange] = field(default_factory=dict)
    pairs: dict[tuple[float, float], None] = field(default_factory=dict)

    def add(self, trust: Trust, what: str, versions: ReleaseRange | str) -> None:
        """One clue: where it stands in certainty, its words, the releases it allows."""
        if (trust, what) not in self.ranges:
            parsed = ReleaseRange.parse(versions) if isinstance(versions, str) else versions
            if parsed != ReleaseRange():
                self.ranges[trust, what] = parsed

    def add_decode(self, form: Form) -> None:
        """The form of a decode line."""
        graph = any(_GRAPH.fullmatch(key) for key in form.keys)
        versions = _PUNCTUATION.get((form.stop, graph, form.trailing_comma))
        if versions is not None:
            self.add(Trust.DECODE, "punctuation of the decode line", versions)
        if b"accept len" in form.keys and b"accept rate" not in form.keys:
            self.add(Trust.DECODE, "accept len without accept rate", "-0.5.3.post1")
        self._add_keys(Trust.DECODE, "decode line has ", form.keys, _DECODE_KEYS)

    def add_prefill(self, form: Form) -> None:
        """The form of a prefill line."""
        keys = form.keys
        if form.stop == b",":
            self.add(Trust.PREFILL, "prefill line with a comma", "0.5.4-")
        else:
            self.add(Trust.PREFILL, "prefill line with a full stop", "-0.5.3")
        graph = next((key for key in keys if _GRAPH.fullmatch(key)), None)
        if graph is None:
            self.add(Trust.PREFILL, "prefill line without graph flag", "-0.5.8")
        elif b"input throughput (token/s)" in keys:
            before = keys.index(b"input throughput (token/s)") < keys.index(graph)
            versions = "0.5.9-0.5.9" if before else "0.5.10-"
            self.add(Trust.PREFILL, "order of graph flag and throughput in the prefill line", versions)
            if not before and b"#pending-token" not in keys:
                self.add(Trust.PREFILL, "prefill line without #pending-token", "-0.5.10")
        self._add_keys(Trust.PREFILL, "prefill line has ", keys, _PREFILL_KEYS)

    @property
    def has_enough_pairs(self) -> bool:
        """Whether further pairs of length and rate change nothing."""
        return len(self.pairs) >= PAIRS_KEPT

    def add_pair(self, length: float, rate: float) -> None:
        """A printed length and rate of one decode line."""
        if length > 1.0 and not self.has_enough_pairs:
            self.pairs[length, rate] = None

    def add_arguments(self, form: ArgumentForm, names: Iterable[str]) -> None:
        """The argument line: its form and its fields."""
        self.add(
            Trust.ARGUMENT_FORM,
            "form of the argument line",
            "-0.5.18" if form is ArgumentForm.OBJECT else "0.5.19-",
        )
        known = field_ranges()
        for name in names:
            if name in known:
                self.add(Trust.FIELDS, f"field {name}", known[name])

    def _add_keys(self, trust: Trust, words: str, keys: tuple[bytes, ...], versions: Mapping[bytes, str]) -> None:
        for key in keys:
            if key in versions:
                self.add(trust, words + key.decode(), versions[key])

    def conclude(self, arguments: Mapping[str, Any]) -> tuple[ReleaseRange, list[str]]:
        """The releases that all clues allow, and words for each clue that contradicts those before it."""
        settled = ReleaseRange()
        notes: list[str] = []
        rate = rate_range(list(self.pairs), arguments)
        clues = dict(self.ranges)
        if rate is not None:
            clues[Trust.RATE, "relation of accept rate to accept len"] = ReleaseRange.parse(rate)
        for (_, what), versions in sorted(clues.items(), key=lambda item: item[0]):
            both = settled.intersect(versions)
            if both is None:
                notes.append(f"{what} ({versions})")
            else:
                settled = both
        return settled, notes


def rate_range(pairs: list[tuple[float, float]], arguments: Mapping[str, Any]) -> str | None:
    """The releases whose definition of the accept rate fits all pairs of length and rate.

    Up to 0.5.10 the rate is length / constant, later (length - 1) / constant. ``None`` where the
    pairs fit both or neither. The constant tells the two older definitions apart where the verify
    width is not depth + 1.
    """
    with_bonus = _fits(pairs, 0.0)
    strict = _fits(pairs, 1.0)
    if with_bonus == strict or len(pairs) < 3:
        return None
    if strict:
        return _RATE_STRICT
    steps, width = arguments.get("speculative_num_steps"), arguments.get("speculative_num_draft_tokens")
    if isinstance(steps, int) and isinstance(width, int) and width != steps + 1:
        constant = sum(length for length, _ in pairs) / max(sum(rate for _, rate in pairs), 1e-9)
        return _RATE_BY_WIDTH if abs(constant - width) < abs(constant - steps - 1) else _RATE_BY_MAX_LENGTH
    return _RATE_WITH_BONUS


def _fits(pairs: list[tuple[float, float]], taken_off: float) -> bool:
    total = sum(rate for _, rate in pairs)
    above = sum(length - taken_off for length, _ in pairs)
    if total <= 0 or above <= 0:
        return False
    constant = max(1, round(above / total))
    return all(abs(rate - (length - taken_off) / constant) <= ROUNDING + ROUNDING / constant for length, rate in pairs)
