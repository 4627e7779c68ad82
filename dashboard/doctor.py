"""How the service itself is: each thing it reads or does, whether that goes well, and what to do where it does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any

from collector.domain.conditions import Aspect, Condition
from collector.domain.errors import StorageError
from collector.formats import formats
from collector.formats.base import self_check
from collector.storage.engine import Database
from collector.storage.states import judged_states, run_states
from dashboard.api.security import is_loopback
from dashboard.collecting import Collection
from dashboard.feeding import Feeding
from dashboard.judging import judged_as
from dashboard.pages import figures
from dashboard.settings import Settings


@dataclass(frozen=True, slots=True)
class Doctor:
    """Looks at a running service."""

    database: Database
    settings: Settings
    collection: Collection | None = None
    feeding: Feeding | None = None
    now: Callable[[], float] = time.time

    def look(self) -> list[Aspect]:
        """Every aspect as it is now; nothing outside of the service is asked."""
        return [*self._stored(), *self._watched(), *self._sources(), self._channels(), self._reach(), log_formats()]

    def in_use(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The settings as they are in use, secrets masked, by table."""
        service = [
            (item.name, _text(getattr(self.settings.service, item.name))) for item in fields(self.settings.service)
        ]
        service.append(("database in use", self.database.name))
        thresholds = [(name, _text(value)) for name, value in asdict(self.settings.thresholds).items()]
        return [("Service", service), ("Thresholds", thresholds)]

    def _stored(self) -> Iterator[Aspect]:
        try:
            with self.database.reading() as connection:
                states, judged = run_states(connection), judged_states(connection)
        except StorageError as error:
            yield Aspect("Database", Condition.ERROR, str(error), error.hint)
            return
        count = figures.plural(len(states), "run")
        yield Aspect("Database", Condition.READING, f"{self.database.name}, {count}")
        waiting = sum(
            judged.get(run_id, ("", 0.0))[0] != judged_as(state, self.settings.thresholds)
            for run_id, state in states.items()
        )
        if waiting:
            says = f"{waiting} of {count} wait to be judged as they are stored now"
            yield Aspect(
                "Judging", Condition.WARNING, says, "the service judges them within a minute; its log says why not"
            )
        else:
            yield Aspect("Judging", Condition.READING, "every run is judged as it is stored")

    def _watched(self) -> Iterator[Aspect]:
        targets = self.collection.states() if self.collection is not None else []
        if not targets:
            yield Aspect(
                "Targets", Condition.NOT_SET, "no engine is watched", "name some under [[targets]] in the settings"
            )
        for target in targets:
            name = f"Target {target.address}"
            if target.error:
                seen = (
                    "never answered"
                    if target.last_success_at is None
                    else f"answered last at {figures.instant(target.last_success_at)}"
                )
                yield Aspect(name, Condition.ERROR, f"{target.error}; {seen}", target.hint)
            elif not target.scrapes:
                yield Aspect(name, Condition.WARNING, "not asked yet")
            else:
                yield Aspect(name, Condition.READING, f"{target.engine}, {figures.plural(target.scrapes, 'scrape')}")
        for problem in self.collection.problems.values() if self.collection is not None else ():
            yield Aspect("Targets", Condition.ERROR, problem.what, problem.hint)

    def _sources(self) -> Iterator[Aspect]:
        sources = self.feeding.states() if self.feeding is not None else []
        if not sources:
            yield Aspect(
                "Sources",
                Condition.NOT_SET,
                "no store of metrics or logs is read",
                "name some under [[sources]] in the settings",
            )
        for source in sources:
            name = f"Source {source.kind} {source.place}"
            if source.error:
                yield Aspect(name, Condition.ERROR, source.error, source.hint)
            else:
                condition = Condition.WARNING if source.problems else Condition.READING
                yield Aspect(name, condition, "; ".join([figures.plural(source.runs, "run"), *source.problems]))

    def _channels(self) -> Aspect:
        channels = self.settings.channels
        if not channels:
            return Aspect(
                "Alert channels",
                Condition.NOT_SET,
                "nobody is told of findings",
                "name one under [[alerts.channel]] in the settings",
            )
        kinds = ", ".join(channel.kind for channel in channels)
        return Aspect("Alert channels", Condition.READING, f"{figures.plural(len(channels), 'channel')}: {kinds}")

    def _reach(self) -> Aspect:
        service = self.settings.service
        if is_loopback(service.host):
            return Aspect("Reach", Condition.READING, f"{service.host}: this machine alone")
        return Aspect(
            "Reach",
            Condition.READING,
            f"{service.host or 'every address'}: writing needs the token, reading needs nothing",
        )


@cache
def log_formats() -> Aspect:
    """Whether every format of logs reads its own samples: the same as long as the program runs."""
    faults = [fault for form in formats() for fault in self_check(form)]
    if faults:
        return Aspect("Log formats", Condition.ERROR, "; ".join(faults[:3]), "a fault of draftscope; please report it")
    return Aspect(
        "Log formats", Condition.READING, f"{figures.plural(len(formats()), 'format')}, each reads its own samples"
    )


def _text(value: Any) -> str:
    return "not set" if value in (None, "") else str(value)
