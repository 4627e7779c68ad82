"""The server around the drafts: batching, time, windows and requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from analysis.simulation.acceptance import Walk, walk_runs
from analysis.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Windows:
    """What happened between two lines of a log, one entry per window.

    Attributes:
        at: end of the window, seconds since the run began.
        seconds: its length by the engine's clock, pauses and prefills included.
        running: concurrent requests.
        steps: verify steps, iterations times requests.
        accepted: drafts accepted in them; ``accepted_at[w, i]``: steps that accepted more than i.
        generated: tokens generated.
        prefills, prompt_tokens: prompts processed inside the window.
        tokens_in_use: tokens in the cache at its end.
        steady: no start-up, pause or prefill inside its clock.
    """

    at: NDArray[float64]
    seconds: NDArray[float64]
    running: NDArray[float64]
    steps: NDArray[float64]
    accepted: NDArray[float64]
    accepted_at: NDArray[float64]
    generated: NDArray[float64]
    prefills: NDArray[float64]
    prompt_tokens: NDArray[float64]
    tokens_in_use: NDArray[float64]
    steady: NDArray[np.bool_]

    @property
    def accepted_per_step(self) -> NDArray[float64]:
        """Accepted drafts per verify step."""
        return self.accepted / self.steps

    @property
    def length(self) -> NDArray[float64]:
        """Acceptance length."""
        return 1 + self.accepted_per_step

    @property
    def throughput(self) -> NDArray[float64]:
        """Tokens generated per second."""
        return self.generated / self.seconds


@dataclass(frozen=True, slots=True)
class Simulation:
    """One simulated run: what happened, in full."""

    scenario: Scenario
    seed: int
    walk: Walk
    iteration_end: NDArray[float64]
    """End of each iteration, seconds since the run began."""
    pause: NDArray[np.bool_]
    """Whether an iteration's clock holds the start-up or a pause."""

    @property
    def accepted_per_step(self) -> float:
        """Pooled over the run."""
        return float(self.walk.accepted.mean(dtype=float64))

    @property
    def length(self) -> float:
        """Pooled acceptance length."""
        return 1 + self.accepted_per_step

    @property
    def new_request(self) -> NDArray[np.bool_]:
        """Where a step is the first of its request, iteration by slot."""
        request = self.walk.request
        return np.concatenate([np.ones((1, request.shape[1]), dtype=np.bool_), np.diff(request, axis=0) > 0])

    def windows(self, seconds: float | None = None) -> Windows:
        """Windows of the scenario's interval of iterations, or of a number of seconds.

        A window of seconds in which no step ended, as during a long pause, is left out (engines
        print none), and so is an unfinished one at the end.
        """
        scenario, walk = self.scenario, self.walk
        if seconds is None:
            edges = np.arange(0, scenario.iterations + 1, scenario.interval)
            marks = np.append(0.0, self.iteration_end[edges[1:] - 1])
        else:
            marks = np.arange(0.0, self.iteration_end[-1], seconds)
            edges = np.searchsorted(self.iteration_end, marks, side="right")
        filled = np.diff(edges) > 0
        first, ends = edges[:-1][filled], edges[1:][filled] - 1

        def total(values: NDArray[np.generic]) -> NDArray[float64]:
            return np.add.reduceat(values[: edges[-1]].astype(float64), first, axis=0)

        at = marks[1:][filled]
        steps = total(np.full(scenario.iterations, scenario.running))
        accepted = total(walk.accepted.sum(axis=1, dtype=np.int64))
        by_position = [total((walk.accepted > position).sum(axis=1)) for position in range(scenario.depth)]
        new = self.new_request
        in_use = (walk.prompt + walk.age + walk.accepted + 1).sum(axis=1)
        prefills = total(new.sum(axis=1))
        return Windows(
            at=at,
            seconds=np.diff(marks)[filled],
            running=np.full(at.size, float(scenario.running)),
            steps=steps,
            accepted=accepted,
            accepted_at=np.stack(by_position, axis=1) if by_position else np.empty((at.size, 0)),
            generated=accepted + steps,
            prefills=prefills,
            prompt_tokens=total((walk.prompt * new).sum(axis=1)),
            tokens_in_use=in_use[ends].astype(float64),
            steady=(prefills == 0) & (total(self.pause) == 0),
        )

    def requests(self) -> tuple[NDArray[float64], NDArray[float64]]:
        """Accepted drafts and verify steps of every request that began and ended inside the run."""
        accepted: list[NDArray[float64]] = []
        steps: list[NDArray[float64]] = []
        for slot in range(self.scenario.running):
            request = self.walk.request[:, slot]
            finished = int(request[-1])
            accepted.append(np.bincount(request, self.walk.accepted[:, slot])[:finished].astype(float64))
            steps.append(np.bincount(request)[:finished].astype(float64))
        return np.concatenate(accepted), np.concatenate(steps)


def simulate(scenario: Scenario, seed: int) -> Simulation:
    """Simulate one run; the same seed gives the same run."""
    return simulate_many(scenario, [seed])[0]


def simulate_many(scenario: Scenario, seeds: Sequence[int]) -> list[Simulation]:
    """Simulate one run per seed, much faster together than one by one, and with the same outcome."""
    return [
        Simulation(scenario, seed, walk, *_clock(scenario, seed, walk))
        for seed, walk in zip(seeds, walk_runs(scenario, seeds), strict=True)
    ]


def _clock(scenario: Scenario, seed: int, walk: Walk) -> tuple[NDArray[float64], NDArray[np.bool_]]:
    random = np.random.default_rng([seed, 2])
    noise = 1 + scenario.step_noise * random.standard_normal(scenario.iterations)
    seconds = scenario.step_seconds * np.maximum(noise, 0.1)
    new = np.concatenate([[scenario.running], (np.diff(walk.request, axis=0) > 0).sum(axis=1)])
    seconds = seconds + scenario.prefill_seconds * new
    pause = np.zeros(scenario.iterations, dtype=np.bool_)
    pauses = [(0, scenario.startup_seconds)]
    pauses += [(window * scenario.interval + scenario.interval // 2, length) for window, length in scenario.idle]
    for iteration, length in pauses:
        if iteration < scenario.iterations:
            seconds[iteration] += length
            pause[iteration] = True
    return np.cumsum(seconds), pause
