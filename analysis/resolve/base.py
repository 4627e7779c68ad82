"""How an engine's treatment of its flags is written down: ordered, named steps over plain values.

An engine is a package or module below ``analysis/resolve`` with one :class:`Engine` named
``ENGINE``. Its steps are functions marked with :meth:`Engine.step`; each changes a
:class:`Launch` as that engine does. A function that several releases run with another text, at
another point or under another number carries the mark several times.

What a step cannot know (the GPU, a model's ``config.json``) is asked for through
:class:`Launch`, which answers or raises :class:`Unsettled`: then every flag the step decides
ends as "depends on ...", never as a guess.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Any, NoReturn, Protocol

from collector.domain.arguments import Value
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release, ReleaseRange


@dataclass(frozen=True, slots=True)
class Step:
    """One thing an engine does to its flags.

    ``condition`` and ``effect`` are words for people; ``announced`` is the line the engine
    prints, with ``{}`` where it prints a value, ``None`` if it says nothing. ``sets`` are the
    flags it decides. ``source`` is the file of the engine that does it.
    """

    id: str
    title: str
    condition: str
    effect: str
    announced: str | None
    releases: ReleaseRange
    source: str
    stage: int
    sets: tuple[str, ...]
    apply: Callable[[Launch], None] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Change:
    """A flag that runs with another value than before the step; ``line`` is what the engine prints about it."""

    flag: str
    before: Value
    after: Value
    step: Step
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """A flag (or environment variable) that was asked for and has no effect."""

    flag: str
    reason: str
    step: Step


@dataclass(frozen=True, slots=True)
class Remark:
    """A flag that keeps its value and does less, or something else, than it says."""

    flag: str
    text: str
    step: Step


@dataclass(frozen=True, slots=True)
class Rejection:
    """The engine refuses to start.

    ``kind`` is the name of the error it raises (``SystemExit`` where its parser does), ``checked``
    marks a refusal of its last check, when every flag has its final value already.
    """

    message: str
    step: Step
    kind: str = "ValueError"
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Resolution:
    """What an engine makes of the requested flags.

    ``release`` is ``None`` where the resolution holds for all of several ``releases``.
    ``effective`` has every flag whose value is known, defaults included; it is empty where the
    engine refuses before its flags are final. ``depends`` says for every other flag what its
    value hangs on. ``announced`` are the lines the engine prints, in order. ``reason`` says why
    nothing, or only with caution, could be predicted.
    """

    engine: str
    release: Release | None
    effective: Mapping[str, Value] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    remarks: tuple[Remark, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    depends: Mapping[str, str] = field(default_factory=dict)
    announced: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()
    reason: str = ""

    def changes_of(self, flag: str) -> tuple[Change, ...]:
        """What happens to one flag, in order."""
        return tuple(change for change in self.changes if change.flag == flag)


class Unsettled(Exception):  # noqa: N818 - an outcome, not an error
    """What is asked for depends on something unknown; the text says on what."""


class Refused(Exception):  # noqa: N818 - an outcome, not an error
    """The engine stops here; the rejection is in the launch already."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """An accelerator as far as the engines' defaults ask.

    ``memory`` in MiB as the driver states it (0 where there is no GPU), ``capability`` the CUDA
    compute capability ((0, 0) for another vendor's).
    """

    name: str
    memory: int
    capability: tuple[int, int]
    vendor: str = "nvidia"


@cache
def _release(text: str) -> Release:
    return Release.parse(text)


class Launch:
    """A launch while the engine's steps work on it.

    Flags are read and set like a mapping. ``requested`` is what the command asked for and does
    not change; ``environment`` holds the variables set for the engine.
    """

    def __init__(
        self,
        engine: str,
        release: Release,
        requested: Mapping[str, Value],
        defaults: Mapping[str, Value],
        *,
        environment: Mapping[str, str],
        draft: ModelConfig | None,
        target: ModelConfig | None,
        gpu: Gpu | None,
    ) -> None:
        self.engine = engine
        self.release = release
        self.requested = requested
        self.defaults = defaults
        self.check_stage: int | None = None
        self.environment = environment
        self._draft = draft
        self._target = target
        self._gpu = gpu
        self.values: dict[str, Value] = {**defaults, **requested}
        self.notes: dict[str, Any] = {}
        """What one step found out for a later one, where the engine keeps it outside its flags."""
        self.depends: dict[str, str] = {
            flag: f"the shell's value of {value}"
            for flag, value in requested.items()
            if isinstance(value, str) and "$" in value
        }
        self.changes: list[Change] = []
        self.ignored: list[Ignored] = []
        self.remarks: list[Remark] = []
        self.rejections: list[Rejection] = []
        self.announced: list[str] = []
        self._step: Step | None = None
        self._line: str | None = None

    def __getitem__(self, flag: str) -> Any:
        """The value of a flag now; ``None`` where the release has no such flag.

        Raises:
            Unsettled: its value hangs on something unknown.
        """
        if flag in self.depends:
            raise Unsettled(self.depends[flag])
        return self.values.get(flag)

    def __setitem__(self, flag: str, value: Value) -> None:
        """Give a flag the value the engine gives it."""
        before = self.values.get(flag)
        unsettled = self.depends.pop(flag, None) is not None
        self.values[flag] = value
        if unsettled or before != value or type(before) is not type(value):
            self.changes.append(Change(flag, before, value, self.step, self._line))

    @property
    def step(self) -> Step:
        """The step at work."""
        assert self._step is not None
        return self._step

    def given(self, flag: str) -> bool:
        """Whether the command asked for this flag."""
        return flag in self.requested

    def has(self, flag: str) -> bool:
        """Whether this release has the flag."""
        return flag in self.defaults

    def since(self, release: str) -> bool:
        """Whether the launch's release is this one or later."""
        return self.release >= _release(release)

    @property
    def gpu(self) -> Gpu:
        """The accelerator.

        Raises:
            Unsettled: nobody said which.
        """
        if self._gpu is None:
            raise Unsettled("the GPU, its memory and architecture (say which with --device)")
        return self._gpu

    @property
    def memory(self) -> int:
        """Memory of the accelerator, MiB.

        Raises:
            Unsettled: nobody said which it is, or there is none.
        """
        if not self.gpu.memory:
            raise Unsettled("the machine's memory")
        return self.gpu.memory

    def vendor_is(self, vendor: str) -> bool:
        """Whether the GPU is known to be of this vendor; where nobody said which it is, it is taken for NVIDIA's."""
        return self._gpu is not None and self._gpu.vendor == vendor

    @property
    def target(self) -> ModelConfig:
        """The target's ``config.json``.

        Raises:
            Unsettled: it was not given.
        """
        if self._target is None:
            raise Unsettled("the target's config.json (--target-config)")
        return self._target

    @property
    def draft(self) -> ModelConfig:
        """The draft's ``config.json``.

        Raises:
            Unsettled: it was not given.
        """
        if self._draft is None:
            raise Unsettled("the draft's config.json (--draft-config)")
        return self._draft

    @property
    def has_draft(self) -> bool:
        """Whether the draft's ``config.json`` is known."""
        return self._draft is not None

    @property
    def has_target(self) -> bool:
        """Whether the target's ``config.json`` is known."""
        return self._target is not None

    def target_is_a_draft(self) -> None:
        """The model named as the target turned out to be a draft: its config is the draft's, the target's is unknown."""
        self._draft, self._target = self._target, None

    def announce(self, *values: object, **named: object) -> None:
        """Print the step's line; changes of this step made afterwards carry it. Nothing for a silent step."""
        if self.step.announced is not None:
            self._line = self.step.announced.format(*values, **named)
            self.announced.append(self._line)

    def leave_out(self, *flags: str) -> None:
        """Drop flags that do not exist in this configuration, such as a draft's settings without a draft."""
        for flag in flags:
            self.values.pop(flag, None)
            self.depends.pop(flag, None)

    def ignore(self, flag: str, reason: str) -> None:
        """Note that a flag was asked for in vain."""
        if self.given(flag):
            self.ignored.append(Ignored(flag, reason, self.step))

    def remark(self, flag: str, text: str) -> None:
        """Note that a flag does something else than it says."""
        self.remarks.append(Remark(flag, text, self.step))

    def ignore_variable(self, name: str, reason: str) -> None:
        """Note that an environment variable was set in vain."""
        self.ignored.append(Ignored(name, reason, self.step))

    def reject(self, message: str, kind: str = "ValueError") -> NoReturn:
        """Refuse to start.

        Raises:
            Refused: always.
        """
        self.rejections.append(Rejection(message, self.step, kind, checked=self.step.stage == self.check_stage))
        raise Refused

    def run(self, step: Step) -> None:
        """Let one step do its work; what it cannot settle becomes "depends on".

        A size of zero fails in the engine where it fails here: in a division.
        """
        self._step, self._line = step, None
        try:
            step.apply(self)
        except ZeroDivisionError as error:
            self.reject(str(error), "ZeroDivisionError")
        except Unsettled as unsettled:
            for flag in step.sets:
                if self.has(flag):
                    self.depends.setdefault(flag, str(unsettled))


def with_names_of_their_own(requested: Mapping[str, Value], nested: tuple[str, ...]) -> dict[str, Value]:
    """The same flags, with each setting of a nested one (an object, or JSON text) under ``flag.setting``."""
    named: dict[str, Value] = {}
    for flag, value in requested.items():
        inner = _object(value) if flag in nested else None
        if inner is None:
            named[flag] = value
        else:
            named |= {f"{flag}.{key.replace('-', '_')}": item for key, item in inner.items() if item is not None}
    return named


def _object(value: Value) -> Mapping[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


class Mark(Protocol):
    """What :meth:`Engine.step` returns: takes a function, registers it and gives it back."""

    def __call__(self, apply: Callable[[Launch], None], /) -> Callable[[Launch], None]:
        """Register the function."""


class Engine:
    """The steps of one engine.

    Parameters:
        name: as in ``Resolution.engine``.
        title: as people write it.
        releases: the releases whose source was read, oldest first.
        defaults: the flags of a release with their defaults.
        check_stage: the stage whose refusals come when every flag is final.
        spelled: gives what was asked for the names that the steps use, where a command may spell it in several ways.
        sampled: only samples of many releases were read: what one in between does is known where both neighbours agree.
    """

    def __init__(
        self,
        name: str,
        title: str,
        *,
        releases: tuple[Release, ...],
        defaults: Callable[[Release], Mapping[str, Value]],
        check_stage: int | None = None,
        spelled: Callable[[Mapping[str, Value]], Mapping[str, Value]] = dict,
        sampled: bool = False,
    ) -> None:
        self.name = name
        self.title = title
        self.releases = releases
        self.defaults = defaults
        self.check_stage = check_stage
        self.spelled = spelled
        self.sampled = sampled
        self._steps: list[Step] = []
        self._steps_of: dict[Release, tuple[Step, ...]] = {}

    def step(
        self,
        step_id: str,
        title: str,
        *,
        when: str,
        then: str,
        releases: str = "*",
        source: str,
        stage: IntEnum,
        sets: tuple[str, ...] = (),
        says: str | None = None,
    ) -> Mark:
        """Mark a function as a step of this engine; ``releases`` as :meth:`ReleaseRange.parse` reads it."""

        def mark(apply: Callable[[Launch], None]) -> Callable[[Launch], None]:
            covered = ReleaseRange.parse(releases)
            # Marks of one function apply from the last to the first; the steps stand as they are written.
            place = next((i for i, known in enumerate(self._steps) if known.apply is apply), len(self._steps))
            self._steps.insert(place, Step(step_id, title, when, then, says, covered, source, stage, sets, apply))
            return apply

        return mark

    def stands_for(self, release: Release) -> tuple[Release, ...]:
        """The releases whose steps say what this one does: itself, or both neighbours of one between samples."""
        if not self.sampled or release in self.releases or not self.releases[0] < release < self.releases[-1]:
            return (release,)
        after = next(index for index, read in enumerate(self.releases) if release < read)
        return self.releases[after - 1 : after + 1]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, in the order the engine runs them."""
        return tuple(sorted(self._steps, key=lambda step: step.stage))

    def steps_of(self, release: Release) -> tuple[Step, ...]:
        """The steps of one release, in order; kept for the releases that were read."""
        steps = self._steps_of.get(release)
        if steps is None:
            steps = tuple(step for step in self.steps if release in step.releases)
            if release in self.releases:
                self._steps_of[release] = steps
        return steps

    def resolve(self, launch: Launch) -> Resolution:
        """Run every step of the launch's release.

        A release older than all that were read is predicted only where a step names it; one
        newer than all is taken for the newest, and ``reason`` says so.
        """
        launch.check_stage = self.check_stage
        unread = launch.release < self.releases[0]
        refused = False
        for step in self.steps_of(launch.release):
            if refused:
                break
            if unread and step.releases.first is None:
                continue
            try:
                launch.run(step)
            except Refused:
                refused = True
        if unread:
            _forget_unread(launch)
        final = not refused or launch.step.stage == self.check_stage
        hidden = launch.depends if final else launch.values
        return Resolution(
            engine=self.name,
            release=launch.release,
            effective={flag: value for flag, value in launch.values.items() if flag not in hidden},
            changes=tuple(launch.changes),
            ignored=tuple(launch.ignored),
            remarks=tuple(launch.remarks),
            rejections=tuple(launch.rejections),
            depends=dict(launch.depends) if final else {},
            announced=tuple(launch.announced),
            releases=(launch.release,),
            reason=self._caution(launch.release),
        )

    def _caution(self, release: Release) -> str:
        newest = ReleaseRange(None, self.releases[-1])
        if release < self.releases[0]:
            return f"{self.title} {release} is older than the oldest release read ({self.releases[0]})"
        if release not in newest:
            return f"{self.title} {release} is newer than the newest release read ({self.releases[-1]})"
        return ""


def _forget_unread(launch: Launch) -> None:
    """Keep only what the steps decided: the rest of an unread release is not known."""
    decided = {change.flag for change in launch.changes}
    for flag in launch.requested:
        if flag not in decided:
            launch.depends.setdefault(flag, f"what release {launch.release} does, which was not read")
    launch.values = {
        flag: value for flag, value in launch.values.items() if flag in decided or flag in launch.requested
    }
