"""Writes the pages that are generated from the code. ``make docs`` runs it; tests compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from analysis.catalogue import page as catalogue_page
from analysis.causes.catalogue import page as causes_page
from analysis.known_faults.catalogue import page as known_faults_page
from analysis.resolve import engine_names
from analysis.resolve.table import page as resolve_page
from collector.domain.quantities import QUANTITIES
from dashboard.exporter.families import AGE, HEALTH_FAMILIES, RUN_FAMILIES, Family, info
from dashboard.understood import page as formats_page

ROOT = Path(__file__).resolve().parent.parent


def quantities_page() -> str:
    """Every quantity with unit, definition and formula."""
    lines = [
        "# Quantities",
        "",
        "The figures draftscope speaks of, each defined once. Keys are those of the diagnosis document.",
        "",
        "| key | name | unit | meaning | formula |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{q.key}` | {q.label} | {q.unit or '-'} | {q.definition} | {f'`{q.formula}`' if q.formula else '-'} |"
        for q in QUANTITIES.values()
    ]
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Every metric family of the exporter."""

    def table(families: Iterable[Family]) -> list[str]:
        rows = [
            f"| `{family.name}` | {family.kind} | {', '.join(f'`{label}`' for label in family.labels) or '-'} | {family.text} |"
            for family in families
        ]
        return ["| family | kind | labels | meaning |", "| --- | --- | --- | --- |", *rows]

    lines = [
        "# Metrics",
        "",
        "What `draftscope serve` and `draftscope exporter` answer under `/metrics`, in Prometheus' format or as OpenMetrics. How to use",
        "them: [monitoring](monitoring.md).",
        "",
        "## Of runs",
        "",
        "One run a place, the present one. `run` is its number; `draftscope_run_info` has its names, and the free labels that the",
        "settings allow. What is not known of a run has no series.",
        "",
        *table((info(), *RUN_FAMILIES, AGE)),
        "",
        "## Of draftscope itself",
        "",
        "Targets are those that this process watches, so `draftscope exporter` has none.",
        "",
        *table(HEALTH_FAMILIES.values()),
    ]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "analysis/catalogue.md": catalogue_page,
    "docs/causes.md": causes_page,
    "docs/formats.md": formats_page,
    "docs/known-faults.md": known_faults_page,
    "docs/metrics.md": metrics_page,
    "docs/quantities.md": quantities_page,
    **{f"docs/resolve-{engine}.md": partial(resolve_page, engine) for engine in engine_names()},
}


def main() -> None:
    """Write every page."""
    for path, page in PAGES.items():
        (ROOT / path).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
