"""The section on configuration of a run page: layers that feed the draft, and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.store import RunReport

LONGEST_VALUE: Final = 160
WIRING_RULE: Final = "DRF001"
DRAFTING: Final = ("spec", "draft", "num_speculative")
"""How names of arguments about drafting begin; they stand first."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One stated value of an argument; ``stated`` is false where ``text`` says that nobody stated one."""

    text: str
    stated: bool = True


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One argument: asked, predicted, runs, and why.

    ``found``: a finding speaks of it; ``changed``: something else runs than was asked; ``mispredicted``: the engine contradicts our
    own prediction, which is our fault and stands first.
    """

    name: str
    asked: Cell
    predicted: Cell
    runs: Cell
    why: str
    place: str
    rule: str
    href: str
    found: bool
    changed: bool
    mispredicted: bool


@dataclass(frozen=True, slots=True)
class ArgumentGroup:
    """Arguments under one heading."""

    title: str
    rows: tuple[ArgumentRow, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A captured layer: its number (``-1`` is the embedding) and place in percent."""

    layer: int
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class Wiring:
    """One row of the drawing of layers that feed the draft; ``look`` is a colour token, ``ruled_out`` a reason."""

    who: str
    note: str
    ids: str
    ids_note: str
    look: str
    captured: tuple[Tick, ...]
    unknown: bool = False
    ruled_out: bool = False


@dataclass(frozen=True, slots=True)
class ConfigurationSection:
    """What the section shows.

    ``layers`` is the target's number of layers, 0 where it is not known; ``others`` are arguments
    that the engine printed and nobody asked for or spoke about.
    """

    lead: str
    layers: int
    wiring: tuple[Wiring, ...]
    shown: tuple[ArgumentGroup, ...]
    others: tuple[ArgumentRow, ...]
    predicted_any: bool


def configuration_section(report: RunReport) -> ConfigurationSection:
    """Everything about configuration that the document holds."""
    rows = [_row(report, name, argument) for name, argument in report.subject["arguments"].items()]
    main = [row for row in rows if row.rule or row.asked.stated]
    main.sort(key=lambda row: not row.name.startswith(DRAFTING))
    groups = (
        ("Predicted otherwise than it runs", [row for row in main if row.mispredicted]),
        ("Changed by the engine", [row for row in main if not row.mispredicted and row.found]),
        ("Suspected and ruled out", [row for row in main if not row.mispredicted and row.rule and not row.found]),
        ("As asked", [row for row in main if not row.mispredicted and not row.rule and not row.found]),
    )
    layers, wiring = _wiring(report)
    return ConfigurationSection(
        lead=report.document["verdicts"]["config"]["summary"],
        layers=layers,
        wiring=wiring,
        shown=tuple(ArgumentGroup(title, tuple(members)) for title, members in groups if members),
        others=tuple(row for row in rows if row.runs.stated and row not in main),
        predicted_any=any(row.predicted.stated for row in rows),
    )


def value_text(value: Any) -> str:
    """A stated value as the engine spells it; long ones are cut."""
    text = "unset" if value is None else str(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def place_of(evidence: Mapping[str, Any] | None) -> str:
    """``input.log:12``, or the source alone."""
    if evidence is None:
        return ""
    return evidence["source"] if evidence["line"] is None else f"{evidence['source']}:{evidence['line']}"


def _row(report: RunReport, name: str, argument: Mapping[str, Any]) -> ArgumentRow:
    def cell(kind: str, otherwise: str) -> Cell:
        return Cell(value_text(argument[kind])) if kind in argument else Cell(otherwise, stated=False)

    rule, why, found = _reason(report, name, argument.get("rule", ""))
    runs = argument.get("effective", argument.get("predicted"))
    known = "effective" in argument or "predicted" in argument
    changed = "requested" in argument and known and not _same(argument["requested"], runs)
    return ArgumentRow(
        name=name,
        asked=cell("requested", "not asked"),
        predicted=cell("predicted", "not predicted"),
        runs=cell("effective", "not seen"),
        why=why,
        place=place_of(argument.get("evidence")) if rule else "",
        rule=rule,
        href=f"#{rule}" if found else f"/rules/{rule}",
        found=found or changed,
        changed=changed,
        mispredicted="effective" in argument
        and argument.get("predicted") is not None
        and not _same(argument["predicted"], argument["effective"]),
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two values mean the same: spelling of case and a path's last slash do not matter."""
    return one == other or str(one).rstrip("/").casefold() == str(other).rstrip("/").casefold()


def _reason(report: RunReport, name: str, rule: str) -> tuple[str, str, bool]:
    """The rule that speaks of a flag, what it says, and whether it is a finding or a suspicion that it refutes."""
    for finding in report.document["findings"]:
        if finding["values"].get("flag") == name:
            return finding["rule"], finding["title"], True
    for suspicion in report.document["ruled_out"]:
        if name in suspicion["why"]:
            return suspicion["rule"], suspicion["why"], False
    return rule, "", False


def _wiring(report: RunReport) -> tuple[int, tuple[Wiring, ...]]:
    """The drawing of captured layers, from the finding on them; empty where nothing is known."""
    finding = next((item for item in report.document["findings"] if item["rule"] == WIRING_RULE), None)
    if finding is None:
        return 0, ()
    values = finding["values"]
    layers = values.get("layers") or 0
    draft, default, previous = (values.get(f"{whose}_ids") for whose in ("draft", "engine_default", "previous"))
    rows: list[Wiring] = []
    if previous is not None:
        same = "equals the engine default" if previous == default else ""
        rows.append(_wire("Earlier config", same, previous, layers, "earlier"))
    if draft is not None:
        rows.append(
            _wire("This config", "equals the engine default" if draft == default else "", draft, layers, "measured")
        )
    elif default is not None:
        rows.append(_wire("Engine default", "the config names no layers", default, layers, "measured"))
    rows += [_as_served(reading, layers) for reading in values.get("readings", ())]
    trained = values.get("trained_ids")
    if trained is not None:
        rows.append(_wire("As trained", "", trained, layers, "promised"))
    else:
        rows.append(Wiring("As trained", "", "", "provide --training FILE", "", (), unknown=True))
    return layers, tuple(rows)


def _as_served(reading: Mapping[str, Any], layers: int) -> Wiring:
    impossible = reading.get("impossible", "")
    look = "plain" if impossible else "measured"
    wire = _wire(f"As served, {reading['how']}", reading["releases"], reading["outputs"], layers, look)
    enters = "enters " + ", ".join(map(str, reading["enters"]))
    note = f"ruled out: {impossible}" if impossible else ""
    return Wiring(wire.who, wire.note, enters, note, look, wire.captured, ruled_out=bool(impossible))


def _wire(who: str, note: str, ids: Sequence[int], layers: int, look: str) -> Wiring:
    return Wiring(who, note, f"[{', '.join(map(str, ids))}]", "", look, ticks(ids, layers))


def ticks(ids: Sequence[int], layers: int) -> tuple[Tick, ...]:
    """Places of captured layers: the embedding at the left, then one place a layer; ids beyond the target are left out."""
    if not layers:
        return ()
    width = 97.0 / layers
    return tuple(
        Tick(i, 0.0, 1.6) if i < 0 else Tick(i, round(3 + i * width, 3), round(0.8 * width, 3))
        for i in ids
        if i < layers
    )
