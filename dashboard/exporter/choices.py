"""What can be set about the exporter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from collector.domain.errors import MalformedInput
from dashboard.strict import read_table

TAKEN: Final = ("run", "deployment", "replica", "engine", "engine_version", "method", "model", "draft")
"""Labels that name a run by themselves."""
_LABELS: Final = "labels"


@dataclass(frozen=True, slots=True)
class ExporterChoices:
    """The table ``[exporter]`` of the settings.

    Attributes:
        labels: free labels of runs that ``draftscope_run_info`` carries; none is exported unless named here.
        forget_after_seconds: series of a run end this long after its last sign of life.
    """

    labels: tuple[str, ...] = ()
    forget_after_seconds: float = 86_400.0


def read_choices(table: Mapping[str, Any], where: str) -> ExporterChoices:
    """The choices of a table.

    Raises:
        UnknownName: a key does not exist.
        MalformedInput: a value does not fit its key, or a name can be no label.
    """
    others = {key: value for key, value in table.items() if key != _LABELS}
    choices = read_table(ExporterChoices, others, where, labels=_names(table.get(_LABELS, []), where))
    if choices.forget_after_seconds <= 0:
        raise MalformedInput(
            "forget_after_seconds is not above 0", where=where, hint="for instance forget_after_seconds = 86400"
        )
    return choices


def _names(labels: Any, where: str) -> tuple[str, ...]:
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise MalformedInput("labels is not a list of names", where=where, hint='for instance labels = ["team"]')
    for name in labels:
        if name in TAKEN or labels.count(name) > 1:
            why = "draftscope uses it itself" if name in TAKEN else "it stands there twice"
            raise MalformedInput(f"{name!r} cannot be exported", why=why, where=where, hint="leave it out")
        if not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) or name.startswith("__"):
            raise MalformedInput(
                f"{name!r} is no name of a Prometheus label",
                where=where,
                hint="letters, digits and underscores, a letter first",
            )
    return tuple(labels)
