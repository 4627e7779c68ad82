"""What a rule is, and what can come of it.

A rule is one module below ``analysis/rules`` with one class. The parameters of its ``check``
name what it reads (see :class:`analysis.case.Case`); a rule whose inputs are missing is
skipped with the reason the input gives. Discovery needs no list: :func:`catalogue` walks the
package.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from collector.domain.errors import UnknownName
from collector.domain.evidence import Evidence
from collector.domain.findings import RUN, Confidence, Finding, Question, RivalExplanation, RuledOut, Severity

SECTIONS = ("Why it matters", "How to fix", "Example", "Source")
"""The sections every rule's docstring has after its first sentence."""


@dataclass(frozen=True, slots=True)
class Missing:
    """An input that is not there: why, and the option or file that would supply it."""

    reason: str
    provide: str = ""


class CannotLook(Exception):  # noqa: N818 - an outcome, not an error
    """Raised by a rule, or by an input it asks for, that cannot form an opinion."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(missing.reason)
        self.missing = missing


def cannot_look(reason: str, provide: str = "") -> CannotLook:
    """The exception that makes the running rule end as skipped."""
    return CannotLook(Missing(reason, provide))


class Rule(ABC):
    """One thing that can be wrong, or that a reader must know.

    Class attributes:
        id, name: stable identity; the name states the problem, not the cure.
        question: which of the four verdicts it belongs to.
        severity, confidence: the usual ones; a finding may differ and says why.
        needs: rules whose findings it reads (through the input ``findings``).
        since: the release of draftscope that brought it.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    question: ClassVar[Question]
    severity: ClassVar[Severity]
    confidence: ClassVar[Confidence] = Confidence.HIGH
    needs: ClassVar[tuple[str, ...]] = ()
    since: ClassVar[str] = "0.1.0"

    check: ClassVar[Any]
    """``check(self, **inputs)`` yields :class:`Finding` and :class:`RuledOut`."""

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """The names of what ``check`` reads."""
        return tuple(name for name in inspect.signature(cls.check).parameters if name != "self")

    @classmethod
    def page(cls) -> Mapping[str, str]:
        """The docstring by section; the first, ``Says``, is its opening sentence."""
        text = inspect.getdoc(cls) or ""
        sections: dict[str, list[str]] = {"Says": []}
        current = "Says"
        for line in text.splitlines():
            heading = line.rstrip(":")
            if line.endswith(":") and heading in SECTIONS:
                current = heading
                sections[current] = []
            else:
                sections[current].append(line)
        return {name: inspect.cleandoc("\n".join(lines)).strip() for name, lines in sections.items()}

    def finding(
        self,
        title: str,
        why: str,
        *,
        values: Mapping[str, Any],
        evidence: Iterable[Evidence | None] = (),
        fix: Iterable[str] = (),
        verify: Iterable[str] = (),
        scope: str = RUN,
        severity: Severity | None = None,
        confidence: Confidence | None = None,
        ruled_out: Iterable[RivalExplanation] = (),
    ) -> Finding:
        """A finding of this rule; evidence that is ``None`` is left out."""
        return Finding(
            rule=self.id,
            name=self.name,
            severity=severity or self.severity,
            confidence=confidence or self.confidence,
            title=title,
            why=why,
            scope=scope,
            values=dict(values),
            evidence=tuple(item for item in evidence if item is not None),
            fix=tuple(fix),
            verify=tuple(verify),
            ruled_out=tuple(ruled_out),
        )

    def ruled_out(self, why: str, evidence: Iterable[Evidence | None] = ()) -> RuledOut:
        """A suspicion of this rule that the evidence refutes."""
        return RuledOut(self.id, self.name, why, tuple(item for item in evidence if item is not None))


Outcome = Iterator[Finding | RuledOut]


@cache
def catalogue(*families: str) -> tuple[Rule, ...]:
    """One instance of every rule, by id; of the named families (packages below ``analysis/rules``) alone if any is named.

    Raises:
        TypeError: two rules share an id or a name, or a module holds none.
    """
    import analysis.rules

    found: dict[str, Rule] = {}
    names: set[str] = set()
    for module_info in pkgutil.walk_packages(analysis.rules.__path__, "analysis.rules."):
        if module_info.ispkg or (families and module_info.name.split(".")[2] not in families):
            continue
        module = importlib.import_module(module_info.name)
        classes = [
            item
            for _, item in inspect.getmembers(module, inspect.isclass)
            if issubclass(item, Rule) and item.__module__ == module.__name__
        ]
        for rule_class in classes:
            if rule_class.id in found or rule_class.name in names:
                raise TypeError(f"{module.__name__}: rule {rule_class.id} {rule_class.name} exists already")
            found[rule_class.id] = rule_class()
            names.add(rule_class.name)
    return tuple(found[rule_id] for rule_id in sorted(found))


def find_rule(text: str) -> Rule:
    """The rule of this id or name.

    Raises:
        UnknownName: there is none; the hint names the nearest.
    """
    import difflib

    rules = catalogue()
    for rule in rules:
        if text.upper() == rule.id or text.lower() == rule.name:
            return rule
    known = [word for rule in rules for word in (rule.id, rule.name)]
    near = difflib.get_close_matches(text, known, 1, 0.5) or difflib.get_close_matches(text.upper(), known, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near else "draftscope rules lists them"
    raise UnknownName(f"no rule named {text!r}", hint=hint)
