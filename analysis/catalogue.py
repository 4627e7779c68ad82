"""The catalogue of rules as a page; ``analysis/catalogue.md`` is its output, and a test keeps the two equal."""

from __future__ import annotations

from analysis.base import SECTIONS, Rule, catalogue

_FAMILIES = (
    ("FLG", "Is it running what was asked for? Flags"),
    ("DRF", "Is it running what was asked for? Draft and target"),
    ("ACC", "Are drafts accepted as often as they should be?"),
    ("PAY", "Does it pay?"),
    ("MEA", "Can the figures be trusted?"),
)


def page() -> str:
    """All rules in one Markdown page: a table, then each rule's own page."""
    rules = catalogue()
    lines = [
        "# The rules",
        "",
        "Generated from the rules themselves (`make docs`). `draftscope explain RULE` shows one of them.",
        "",
    ]
    for family, title in _FAMILIES:
        members = [rule for rule in rules if rule.id.startswith(family)]
        lines += [f"## {title}", "", "| rule | name | severity | says |", "| --- | --- | --- | --- |"]
        lines += [
            f"| [{rule.id}](#{rule.id.lower()}) | {rule.name} | {rule.severity.word} | {_says(rule)} |"
            for rule in members
        ]
        lines.append("")
        for rule in members:
            lines += _rule(rule)
    return "\n".join(lines).rstrip() + "\n"


def _says(rule: Rule) -> str:
    return " ".join(rule.page()["Says"].split())


def _rule(rule: Rule) -> list[str]:
    sections = rule.page()
    reads = ", ".join(name.replace("_", " ") for name in rule.inputs())
    lines = [f"### {rule.id}", "", f"**{rule.name}**: {_says(rule)}", ""]
    for heading in SECTIONS:
        lines += [f"*{heading}.* {' '.join(sections[heading].split())}", ""]
    lines += [f"*Reads.* {reads}. *Since.* {rule.since}.", ""]
    return lines
