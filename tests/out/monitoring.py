"""What is shipped for Prometheus and Grafana, and the metric names that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from collector.metrics.llamacpp import names as llamacpp
from collector.metrics.sglang import names as sglang
from collector.metrics.vllm import names as vllm
from dashboard.exporter.families import all_families

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = sorted((DEPLOY / "rules").glob("*.yml"))
BOARDS = sorted((DEPLOY / "grafana" / "boards").glob("*.json"))
_NAME = re.compile(r"\b(?:draftscope|sglang|vllm|llamacpp|engine)[:_][a-zA-Z0-9_:]+\b")


def rules() -> Iterator[dict[str, Any]]:
    """Every rule that is shipped."""
    for path in RULES:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from group["rules"]


def known_names() -> set[str]:
    """Metrics that draftscope or an engine exports, and those that rules record."""
    exported = {family.name for family in all_families()}
    engines = sglang.WANTED | vllm.WANTED | llamacpp.WANTED
    return exported | engines | {rule["record"] for rule in rules() if "record" in rule}


def names_in(query: str) -> set[str]:
    """The metrics a query speaks of."""
    without_texts = re.sub(r'"[^"]*"', '""', query)
    return set(_NAME.findall(without_texts))


def queries(board: Path) -> Iterator[tuple[str, str]]:
    """The title of each panel and one of its queries."""
    for panel in json.loads(board.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
