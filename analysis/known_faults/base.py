"""What an entry of the catalogue of known faults holds, and its reading.

An entry::

    - id: sglang-two-batch-overlap
      title: Two-batch overlap skips the capture of hidden states
      releases: 0.5.4-0.5.16        # where it was seen or read; "*" for all
      fixed_in: 0.5.17              # left out where that is not known
      when: {methods: [eagle3], classes: [DeepseekV3], flags: {enable_two_batch_overlap: true}, symptoms: [near_zero]}
      suspected: true               # where the cause was never established
      cause: two-batch-overlap      # the cause it speaks for
      symptom: ...
      workaround: ...
      link: sgl-project/sglang#7569
      source: ...

A value in ``when`` is met by equality, by one of a list, or by ``{above: 1}``, ``{below: 1.1}``,
``{contains: text}`` or ``{stated: false}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any, Final

from analysis.causes.facts import LOW_ACCEPTANCE, Symptom
from collector.domain.versions import Release, ReleaseRange

GROUPS: Final = {"low_acceptance": LOW_ACCEPTANCE, "expensive": frozenset({Symptom.COST, Symptom.SLOW, Symptom.DEARER})}
"""Names for several symptoms of which one is enough."""
TESTS: Final = frozenset({"above", "below", "contains", "stated"})


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must hold for a fault to matter; what is empty asks for nothing.

    ``classes`` are beginnings of the target's class names, ``names`` parts of its path for where no
    config is given. ``flags`` are what runs, ``asked`` what was asked, ``draft`` keys of the draft's
    config, dotted. ``refusals`` are parts of what the engine says when it does not start. Of ``rules``,
    ``symptoms`` and ``refusals`` one is enough.
    """

    methods: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    flags: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    draft: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    symptoms: frozenset[Symptom] = frozenset()


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One fault of one engine."""

    id: str
    engine: str
    title: str
    releases: ReleaseRange
    when: Conditions
    symptom: str
    workaround: str
    link: str
    source: str
    fixed_in: Release | None = None
    suspected: bool = False
    cause: str = ""


@cache
def known_faults(engine: str) -> tuple[KnownFault, ...]:
    """The faults of one engine, in the order of the file; none for an engine without one.

    Raises:
        ValueError: an entry lacks a part or has one that is not known.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    file = files(__package__).joinpath(f"{engine.replace('-', '_')}.yaml")
    if not file.is_file():
        return ()
    entries = yaml.load(file.read_text("utf-8"), loader)  # noqa: S506 - safe either way, and 20 times faster in C
    return tuple(parse(engine, entry) for entry in entries)


def engines() -> tuple[str, ...]:
    """The engines that have a file, by name."""
    found = (item.name for item in files(__package__).iterdir() if item.name.endswith(".yaml"))
    return tuple(sorted(name.removesuffix(".yaml").replace("_", "-") for name in found))


def parse(engine: str, entry: Mapping[str, Any]) -> KnownFault:
    """One entry.

    Raises:
        ValueError: it lacks a part or has one that is not known.
    """
    known = {item.name for item in fields(KnownFault)} - {"engine"}
    unknown, missing = set(entry) - known, known - {"fixed_in", "suspected", "cause"} - set(entry)
    if unknown or missing:
        raise ValueError(f"known fault {entry.get('id')!r}: unknown {sorted(unknown)}, missing {sorted(missing)}")
    given = dict(entry)
    fixed = given.pop("fixed_in", None)
    return KnownFault(
        engine=engine,
        fixed_in=Release.parse(str(fixed)) if fixed is not None else None,
        releases=ReleaseRange.parse(str(given.pop("releases"))),
        when=_conditions(given["id"], given.pop("when")),
        **given,
    )


def _conditions(fault: str, when: Mapping[str, Any]) -> Conditions:
    known = {item.name for item in fields(Conditions)}
    if not when or set(when) - known:
        raise ValueError(f"known fault {fault!r}: its conditions are empty or have {sorted(set(when) - known)}")
    given: dict[str, Any] = {}
    for name, value in when.items():
        if name == "symptoms":
            given[name] = frozenset().union(*(_symptoms(fault, word) for word in value))
        elif isinstance(value, Mapping):
            given[name] = {key: _test(fault, test) for key, test in value.items()}
        else:
            given[name] = tuple(value)
    return Conditions(**given)


def _symptoms(fault: str, word: str) -> frozenset[Symptom]:
    if word in GROUPS:
        return GROUPS[word]
    try:
        return frozenset({Symptom[word.upper()]})
    except KeyError:
        raise ValueError(f"known fault {fault!r}: no symptom {word!r}") from None


def _test(fault: str, test: Any) -> Any:
    if isinstance(test, Mapping) and set(test) - TESTS:
        raise ValueError(f"known fault {fault!r}: no test {sorted(set(test) - TESTS)}")
    return test
