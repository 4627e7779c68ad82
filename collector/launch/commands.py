"""From the text of a launch command to what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from operator import itemgetter
from pathlib import PurePath
from typing import Final

from collector.domain.arguments import LaunchCommand
from collector.domain.errors import MalformedInput, NoLaunchCommand
from collector.domain.evidence import Evidence
from collector.domain.redaction import MASK, is_secret_name, redact_mapping, redact_text
from collector.launch.base import Dialect
from collector.launch.dialects import dialect_of, dialects, mentions_engine
from collector.launch.options import Read, read_options
from collector.launch.render import quoted
from collector.launch.settings import settings_file, with_settings
from collector.launch.shell import Word, split_words
from collector.launch.sources import Snippet, snippets_of

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_REDIRECTION: Final = re.compile(r"\d*(?:>>?|<)(?:&\d+)?(?P<target>.*)")
_CONTAINER_TOOLS: Final = frozenset({"docker", "podman", "nerdctl"})
_NAME_OPTIONS: Final = frozenset({"--name", "--hostname", "-h", "--network-alias", "--pod"})
"""Options of container tools whose value is a name of the user's own."""
_VARIABLE_OPTION: Final = re.compile(r"(?:-e|--env)=?(?P<pair>[A-Za-z_]\w*=.*)?", re.DOTALL)
_NEAR: Final = 0.8
"""Likeness from which a known option is offered for one that is not. Ratio."""
_SHORTEST_SECRET: Final = 4
"""Characters from which a secret is looked for in other places of the text."""


def parse_launch(text: str, source: str = "launch.txt") -> LaunchCommand:
    """What the first launch command of a text asks for; see :func:`find_launches`.

    Raises:
        MalformedInput: a quote is not closed or an option lacks its value.
        NoLaunchCommand: no engine is launched in this text.
    """
    return find_launches(text, source)[0]


def find_launches(text: str, source: str = "launch.txt") -> tuple[LaunchCommand, ...]:
    """What every launch command of a text asks for, at least one; secrets are masked, variables stay as they are written.

    The text may be shell text, a compose file, Kubernetes manifests, a systemd unit, lines of ``ps``
    or server information. Commands that ask for the same are given once.

    Raises:
        MalformedInput: a quote is not closed, an option lacks its value, a manifest is not valid.
        NoLaunchCommand: no engine is launched in this text.
    """
    return _launches(snippets_of(text, source), source, text.splitlines())


def launches_of_words(words: Sequence[str], source: str, engine: str | None = None) -> tuple[LaunchCommand, ...]:
    """The same for a command whose words are split already; with ``engine`` they may be its options alone.

    Raises:
        MalformedInput: an option lacks its value.
        NoLaunchCommand: no engine is launched.
    """
    if engine is not None and words and words[0].startswith("-"):
        words = [*dialect_of(engine).program, *words]
    return _launches([Snippet([Word(text, 1, 0, 0) for text in words], verbatim=False)], source, [])


def _launches(snippets: list[Snippet], source: str, lines: list[str]) -> tuple[LaunchCommand, ...]:
    found: list[LaunchCommand] = []
    for snippet in snippets:
        own = "" if snippet.replaced else snippet.image
        for match in _search(snippet.words, snippet.environment, own, source):
            launch = _launch(match, snippet, source, lines)
            if not any(_same(launch, known) for known in found):
                found.append(launch)
    if not found:
        known = ", ".join(dialect.title for dialect in dialects())
        raise NoLaunchCommand(
            "no launch command of a known engine is in this text",
            where=source,
            hint=f"launch commands of these engines are read: {known}",
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Match:
    """A command that launches an engine: the words before its options, its options, the variables set for it."""

    dialect: Dialect
    program: list[Word]
    options: list[Word]
    environment: Mapping[str, str]


def _search(words: list[Word], environment: Mapping[str, str], image: str, source: str) -> Iterator[_Match]:
    """Every command among the words that launches an engine, also inside quoted scripts."""
    environment = dict(environment)
    launched = False
    for command, new_line in _commands(words):
        if launched and new_line and command[0].text.startswith("--"):
            raise MalformedInput(
                f"{command[0].text.partition('=')[0]} does not belong to the command",
                why="the line before it does not end in a backslash, or something follows the backslash",
                where=f"{source}:{command[0].line}",
                hint="end every line of the command but the last in a backslash",
            )
        match = _match(command, environment, image)
        launched = match is not None
        if match is not None:
            yield match
            continue
        inside = {**environment, **_assignments(command)}
        for word in command:
            if any(blank in word.text for blank in " \n") and mentions_engine(word.text):
                script = split_words(word.text, source, word.line)
                if [part.text for part in script] != [word.text]:  # a substitution stays one word
                    yield from _search(script, inside, "", source)
        if command[0].text == "export" or all(_ASSIGNMENT.match(word.text) for word in command):
            environment |= _assignments(command)


def _match(command: list[Word], environment: Mapping[str, str], image: str) -> _Match | None:
    shown = _without_container_names(command) if _in_container(command) else command
    begins = [(begin, dialect) for dialect in dialects() if (begin := dialect.begins(shown)) is not None]
    if begins:  # the first: a later option may have another engine's name as its value
        begin, dialect = min(begins, key=itemgetter(0))
        program = command[:begin]
        return _Match(dialect, program, command[begin:], {**environment, **_assignments(program)})
    for dialect in dialects():
        if image and (started := dialect.starts_in(image)):
            line = command[0].line
            return _Match(dialect, [Word(text, line, 0, 0) for text in started], command, environment)
        if _in_container(command):
            place = next((index for index, word in enumerate(command) if dialect.starts_in(word.text)), None)
            if place is not None:
                program, options = command[: place + 1], command[place + 1 :]
                entry = _entry_point(program)
                begin = dialect.begins([*entry, *options])
                if entry and begin is not None:
                    program, options = [*program, *options[: begin - 1]], options[begin - 1 :]
                return _Match(dialect, program, options, {**environment, **_assignments(program)})
    return None


def _in_container(command: list[Word]) -> bool:
    return any(word.text.rpartition("/")[2] in _CONTAINER_TOOLS for word in command[:3])


def _without_container_names(command: list[Word]) -> list[Word]:
    """The command with the names that a container is given left blank: one may be called like a program."""
    before = [None, *command[:-1]]
    return [
        word._replace(text="") if named is not None and named.text in _NAME_OPTIONS else word
        for named, word in zip(before, command, strict=True)
    ]


def _entry_point(program: list[Word]) -> list[Word]:
    """The program that stands in for the image's own."""
    for word, after in pairwise(program):
        if word.text == "--entrypoint":
            return [after]
        if word.text.startswith("--entrypoint="):
            return [word._replace(text=word.text.partition("=")[2])]
    return []


def _launch(match: _Match, snippet: Snippet, source: str, lines: list[str]) -> LaunchCommand:
    """The command as the rest of the product knows it: redacted, with the place of each field."""
    dialect = match.dialect
    options = _without_redirections(match.options)
    read = read_options(options, dialect.options(), source)
    requested = dialect.settled(
        {**dialect.from_environment(match.environment), **dialect.positional(read.positional), **read.values}
    )
    secrets = _secrets(read.values, match.environment)
    words = [*match.program, *match.options]
    first, last = words[0].line, max(word.line + word.text.count("\n") for word in words)
    program = [redact_text(_without(word.text, secrets)) for word in match.program]
    own = "\n".join(lines[first - 1 : last]).strip()
    text = own if snippet.verbatim else " ".join(quoted(word.text) for word in words)
    launch = LaunchCommand(
        engine=dialect.engine,
        text=redact_text(_without(text, secrets)),
        requested=redact_mapping(requested),
        environment={
            name: MASK if is_secret_name(name) and value else redact_text(value)
            for name, value in match.environment.items()
        },
        unknown=read.unknown,
        source=source,
        line=first,
        program=tuple(program),
        places=_places(requested, read, source, lines, secrets) if last > first else {},
        label=snippet.label,
        release=dialect.release_in(snippet.image) or next(filter(None, map(dialect.release_in, program)), ""),
        nearest=_nearest(read.unknown, dialect),
    )
    name = settings_file(launch)
    mounted = snippet.settings.get(PurePath(name).name) if name is not None else None
    return launch if mounted is None else with_settings(launch, mounted.text, source, mounted.first_line)


def _nearest(unknown: tuple[str, ...], dialect: Dialect) -> dict[str, str]:
    if not unknown:
        return {}
    known = list(dialect.options())
    close = {name: get_close_matches(name.replace("_", "-"), known, 1, _NEAR) for name in unknown}
    return {name: found[0] for name, found in close.items() if found}


def _places(
    requested: Mapping[str, object], read: Read, source: str, lines: list[str], secrets: list[str]
) -> dict[str, Evidence]:
    """The line at which each field stands; a setting inside an option's value stands where the option does."""
    found: dict[str, Evidence] = {}
    for name in requested:
        number = read.lines.get(name) or read.lines.get(name.partition(".")[0])
        if number is not None and number <= len(lines):
            line = lines[number - 1].strip().removesuffix("\\").rstrip()
            found[name] = Evidence(source, number, redact_text(_without(line, secrets)))
    return found


def _same(launch: LaunchCommand, other: LaunchCommand) -> bool:
    """Whether two commands ask for the same: processes are forked, and shown again with the shell around them."""
    parts = (launch.engine, launch.requested, launch.environment)
    return parts == (other.engine, other.requested, other.environment)


def _secrets(values: Mapping[str, object], environment: Mapping[str, str]) -> list[str]:
    """Secrets that stand apart from their names, so that they can be masked wherever they are shown."""
    found = [value for name, value in {**values, **environment}.items() if is_secret_name(name)]
    texts = [text for value in found for text in (value if isinstance(value, list) else [value])]
    return [text for text in texts if isinstance(text, str) and len(text) >= _SHORTEST_SECRET and "$" not in text]


def _without(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _commands(words: list[Word]) -> Iterator[tuple[list[Word], bool]]:
    """Simple commands, and whether nothing but new lines stands between one and the command before it."""
    command: list[Word] = []
    new_line = next_new_line = False
    for word in words:
        if not word.operator:
            if not command:
                new_line = next_new_line
            command.append(word)
            continue
        if command:
            yield command, new_line
            command, next_new_line = [], True
        next_new_line &= word.text == "\n"
    if command:
        yield command, new_line


def _assignments(words: list[Word]) -> dict[str, str]:
    """Variables that a command sets: before its program, or with the option that container tools have for it."""
    own = (word.text for word in words if _ASSIGNMENT.match(word.text))
    pairs = _container_variables(words) if _in_container(words) else own
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _container_variables(words: list[Word]) -> Iterator[str]:
    for word, after in zip(words, [*words[1:], None], strict=True):
        option = _VARIABLE_OPTION.fullmatch(word.text)
        if option is None:
            continue
        if option["pair"] is not None:
            yield option["pair"]
        elif after is not None and _ASSIGNMENT.match(after.text):
            yield after.text


def _without_redirections(words: list[Word]) -> list[Word]:
    kept: list[Word] = []
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        match = _REDIRECTION.fullmatch(word.text) if word.bare else None
        if match is None:
            kept.append(word)
        else:
            skip = not match["target"] and "&" not in word.text
    return kept
