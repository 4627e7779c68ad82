"""From what is asked for back to a launch command: the inverse of reading one."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from collector.domain.arguments import LaunchCommand
from collector.launch.dialects import dialect_of
from collector.launch.options import Kind, Option, field_of, guessed

_WIDE: Final = 100
"""Characters up to which a command stays on one line."""
_TO_ESCAPE: Final = re.compile(r"([\"\\])")
_PLAIN: Final = re.compile(r"~?(?:[\w@%+=:,./-]|\$\w|\$\{\w+\})+")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*=)(.*)", re.DOTALL)


def render(launch: LaunchCommand) -> str:
    """The command as shell text, one option a line where it is long; reading it gives the same arguments.

    Secrets stay masked, variables stay variables.
    """
    assigned = [f"{name}={value}" for name, value in launch.environment.items()]
    program = [
        *(pair for pair in assigned if not any(word.endswith(pair) for word in launch.program)),
        *(launch.program or dialect_of(launch.engine).program),
    ]
    groups = [program, *rendered_options(launch.engine, launch.requested, tuple(program))]
    parts = [" ".join(map(quoted, group)) for group in groups]
    line = " ".join(parts)
    return line if len(line) <= _WIDE else " \\\n  ".join(parts)


def rendered_options(engine: str, requested: Mapping[str, Any], program: tuple[str, ...]) -> Iterator[list[str]]:
    """The words of each option in the engine's own spelling; what the program takes without an option comes first."""
    bare = dialect_of(engine).positional(("x",)) if program[-1:] and program[-1].endswith("serve") else {}
    first = [name for name in bare if _can_stand_bare(requested.get(name))]
    yield from ([requested[name]] for name in first)
    spellings = _spellings(engine)
    gathered: dict[str, dict[str, Any]] = {}
    for name in requested:
        base, dot, key = name.partition(".")
        if dot and "." not in key and base in spellings and spellings[base][1].kind is Kind.JSON:
            gathered.setdefault(base, {})[key] = requested[name]
    for name, value in requested.items():
        base = name.partition(".")[0]
        if name in first:
            continue
        if base in gathered and name.partition(".")[2] in gathered[base]:
            inside = gathered[base]
            if next(iter(inside)) == name.partition(".")[2]:
                yield [spellings[base][0], json.dumps(inside, ensure_ascii=False)]
        elif name in spellings:
            yield _known(engine, *spellings[name], value)
        else:
            yield _unknown(name, value, inside=base != name and base in spellings)


def quoted(text: str) -> str:
    """A word as the shell must see it; a variable in it stays one."""
    if _PLAIN.fullmatch(text):
        return text
    assignment = _ASSIGNMENT.fullmatch(text)
    if assignment is not None:
        return assignment[1] + quoted(assignment[2])
    return '"' + _TO_ESCAPE.sub(r"\\\1", text) + '"' if "$" in text else shlex.quote(text)


def _can_stand_bare(value: Any) -> bool:
    return isinstance(value, str) and value != "" and not value.startswith("-")


@cache
def _spellings(engine: str) -> Mapping[str, tuple[str, Option]]:
    """The spelling of each field: its own name where that is one, else the longest."""
    best: dict[str, tuple[str, Option]] = {}
    for spelling, option in sorted(dialect_of(engine).options().items(), key=lambda item: (len(item[0]), item[0])):
        known = best.get(option.field)
        if known is None or field_of(known[0]) != option.field:
            best[option.field] = (spelling, option)
    return best


def _known(engine: str, spelling: str, option: Option, value: Any) -> list[str]:
    if option.is_switch:
        off = "--no-" + spelling.removeprefix("--")
        if value is True:
            return [spelling]
        has_opposite = spelling.startswith("--") and off not in dialect_of(engine).options()
        return [off] if value is False and has_opposite else [f"{spelling}={_plain(value)}"]
    if isinstance(value, list) and option.arity in ("+", "*"):
        return [spelling, *(_text(option, item) for item in value)]
    if value is True and option.arity == "?":
        return [spelling]
    return _joined(spelling, _text(option, value))


def _unknown(name: str, value: Any, *, inside: bool) -> list[str]:
    """An option that is not known, or a setting deep inside one that is."""
    spelling = "--" + name.replace("_", "-")
    if value is True:
        return [spelling]
    return _joined(spelling, _in_json(value) if inside else _plain(value))


def _joined(spelling: str, text: str) -> list[str]:
    """Name and value; as one word where the value would be taken for an option."""
    return [f"{spelling}={text}"] if text == "" or text.startswith("-") else [spelling, text]


def _text(option: Option, value: Any) -> str:
    return _in_json(value) if option.kind is Kind.JSON or isinstance(value, (dict, list)) else _plain(value)


def _plain(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


def _in_json(value: Any) -> str:
    """JSON; text that is none stands as it is, unless it begins as JSON does."""
    if isinstance(value, str) and not value.lstrip().startswith(("{", "[")):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return value if guessed(value) == value else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
