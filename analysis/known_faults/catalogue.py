"""The known faults as a page; ``docs/known-faults.md`` is its output, and a test keeps the two equal."""

from __future__ import annotations

from analysis.known_faults.base import KnownFault, engines, known_faults

_INTRODUCTION = """\
# Known upstream faults

Generated from `analysis/known_faults/*.yaml` (`make docs`). Each is matched against a run's engine, release, model,
flags and figures, and then *affects you*, *may affect you* (something could not be told, or its cause was never
established), or is *fixed in your release*.
"""


def page() -> str:
    """All faults, by engine."""
    lines = [_INTRODUCTION]
    for engine in engines():
        lines += [
            f"## {engine}",
            "",
            "| fault | releases | what shows | what to do | link |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(fault) for fault in known_faults(engine)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(fault: KnownFault) -> str:
    releases = str(fault.releases) + (f"; fixed in {fault.fixed_in}" if fault.fixed_in is not None else "")
    title = f"{fault.title}{' (suspected)' if fault.suspected else ''}"
    cells = (title, releases, fault.symptom, fault.workaround, fault.link)
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
