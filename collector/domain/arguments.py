"""Launch arguments: what was asked for, what is predicted, and what runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from collector.domain.evidence import Evidence

Value: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None


class _Unseen(Enum):
    UNSEEN = "not seen"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSEEN"


UNSEEN: Final = _Unseen.UNSEEN
"""A value nobody stated. Not the same as ``None``, which an engine states as "unset"."""

Seen: TypeAlias = Value | _Unseen


METHOD_FLAG: Final[Mapping[str, str]] = {
    "sglang": "speculative_algorithm",
    "vllm": "speculative_config.method",
    "llamacpp": "spec_type",
    "tensorrt-llm": "speculative_config.decoding_type",
}
"""The flag that names the method of drafting, by engine."""
METHOD_FLAGS: Final = frozenset(METHOD_FLAG.values())


def same_meaning(flag: str, asked: Seen, runs: Seen) -> bool:
    """Equal values, an alias of a method, a path with a trailing slash, a list of one."""
    if isinstance(asked, str) and isinstance(runs, str):
        if flag in METHOD_FLAGS:
            return _method(asked) == _method(runs)
        return asked.rstrip("/") == runs.rstrip("/")
    if isinstance(asked, list) and len(asked) == 1 and not isinstance(runs, list):
        return bool(asked[0] == runs)
    return asked == runs or str(asked) == str(runs)


def _method(name: str) -> str:
    """One name for what SGLang calls EAGLE and NEXTN, and for vLLM's names of MTP by model."""
    name = name.lower()
    return "eagle" if name == "nextn" else "mtp" if name.endswith("_mtp") else name


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag under the name the engine's own argument line uses (``speculative_num_steps``)."""

    name: str
    requested: Seen = UNSEEN
    predicted: Seen = UNSEEN
    effective: Seen = UNSEEN
    requested_evidence: Evidence | None = None
    effective_evidence: Evidence | None = None

    @property
    def runs(self) -> Seen:
        """What runs as far as known: the engine's own word, else the prediction, else what was asked."""
        if self.effective is not UNSEEN:
            return self.effective
        return self.requested if self.predicted is UNSEEN else self.predicted

    @property
    def requested_seen(self) -> bool:
        """Whether the launch command states it."""
        return self.requested is not UNSEEN

    @property
    def changed(self) -> bool:
        """Whether it was asked for and something else runs or is predicted to run."""
        known = self.effective if self.effective is not UNSEEN else self.predicted
        return (
            self.requested is not UNSEEN and known is not UNSEEN and not same_meaning(self.name, self.requested, known)
        )

    @property
    def mispredicted(self) -> bool:
        """Whether the engine states another value than was predicted."""
        known = self.predicted is not UNSEEN and self.effective is not UNSEEN
        return known and not same_meaning(self.name, self.predicted, self.effective)


@dataclass(frozen=True, slots=True)
class Arguments(Mapping[str, Argument]):
    """All arguments of one run by name. Looking up an unknown name gives an argument nobody saw."""

    by_name: Mapping[str, Argument] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Argument:
        return self.by_name.get(name) or Argument(name)

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def value(self, name: str) -> Any:
        """What runs as far as known, ``None`` where nobody stated it."""
        argument = self.by_name.get(name)
        return None if argument is None or argument.runs is UNSEEN else argument.runs

    def seen(self, name: str) -> bool:
        """Whether anybody stated a value for it."""
        return self[name].runs is not UNSEEN

    def requested(self) -> dict[str, Value]:
        """What the launch command asked for, by name."""
        return {name: item.requested for name, item in self.by_name.items() if not isinstance(item.requested, _Unseen)}

    @property
    def any_effective(self) -> bool:
        """Whether the engine itself stated what runs."""
        return any(argument.effective is not UNSEEN for argument in self.by_name.values())

    @property
    def any_requested(self) -> bool:
        """Whether the launch command is known."""
        return any(argument.requested is not UNSEEN for argument in self.by_name.values())

    def updated(self, name: str, **changes: Any) -> Arguments:
        """The same arguments with fields of one of them replaced."""
        return Arguments({**self.by_name, name: replace(self[name], **changes)})

    def with_launch(self, launch: LaunchCommand) -> Arguments:
        """Add what the launch command asked for."""
        merged = dict(self.by_name)
        for name, value in launch.requested.items():
            merged[name] = replace(self[name], requested=value, requested_evidence=launch.evidence_of(name))
        return Arguments(merged)

    def with_effective(self, values: Mapping[str, Value], evidence: Evidence | None) -> Arguments:
        """Add what the engine said it runs with."""
        merged = dict(self.by_name)
        for name, value in values.items():
            merged[name] = replace(self[name], effective=value, effective_evidence=evidence)
        return Arguments(merged)

    def with_predicted(self, values: Mapping[str, Value]) -> Arguments:
        """Add what the engine is predicted to make of what was asked."""
        merged = dict(self.by_name)
        for name, value in values.items():
            merged[name] = replace(self[name], predicted=value)
        return Arguments(merged)


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """How a server was started: its command line, redacted, and what it asks for.

    ``requested`` has the engine's own field names (aliases resolved), ``environment`` the
    assignments before the command. ``unknown`` are the options this reader does not know,
    ``nearest`` the option it knows that is nearest to one of them. ``program`` are the words before
    the options, ``places`` where each field stands, ``label`` which of several commands of one
    source this is (``service decode``), ``release`` what the tag of the container's image says,
    ``settings`` the file of options that was read into it.
    """

    engine: str
    text: str
    requested: Mapping[str, Value]
    environment: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    source: str = ""
    line: int | None = None
    program: tuple[str, ...] = ()
    places: Mapping[str, Evidence] = field(default_factory=dict)
    label: str = ""
    release: str = ""
    settings: str = ""
    nearest: Mapping[str, str] = field(default_factory=dict)

    @property
    def evidence(self) -> Evidence:
        """The place this command was read from."""
        return Evidence(self.source, self.line, self.text)

    def evidence_of(self, name: str) -> Evidence:
        """The line that gives a flag; the whole command where that is not known."""
        return self.places.get(name) or self.evidence
