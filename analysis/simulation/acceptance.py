"""Token by token: which drafts are right, and what each verify step therefore accepts.

One uniform number per token decides whether the draft is right, so a token has the same luck at
every depth. A step accepts while right and within the depth, then the target adds one token; the
next step starts behind it. What a step starting at any token would accept is worked out for all
tokens at once; walking from step to step is then a look-up, done for all slots of all runs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.simulation.scenario import CONTEXT_HALVING, MIX_SHIFT, Fault, Scenario

Floats: TypeAlias = NDArray[np.float32]
Counts: TypeAlias = NDArray[np.int32]

_LOOKUP_BYTES = 200_000_000
"""Look-up tables of as many runs as fit in this are walked together."""
_LENGTH_SIGMA = 0.8
_PROMPT_SIGMA = 0.6


@dataclass(frozen=True, slots=True)
class Walk:
    """The verify steps of one run, iteration by slot.

    Attributes:
        accepted: drafts accepted, ``(iterations, running)``.
        request: number of the request in the slot, from 0.
        age: tokens the request had generated before the step.
        prompt: the request's prompt tokens.
        first_accuracy: share of all generated tokens at which a healthy draft's first choice is
            right: what a validation run on this traffic would report.
    """

    accepted: NDArray[np.int8]
    request: Counts
    age: Counts
    prompt: Counts
    first_accuracy: float


@dataclass(slots=True)
class _Stream:
    """The token streams of one run's slots, and the look-up tables from token to accepted drafts."""

    healthy: NDArray[np.int8]
    faulty: NDArray[np.int8] | None
    request_starts: list[Counts]
    prompts: list[Counts]
    first_accuracy: float


def walk_runs(scenario: Scenario, seeds: Sequence[int]) -> list[Walk]:
    """Simulate one run per seed; each depends on its own seed alone."""
    tokens = scenario.iterations * (scenario.depth + 1) + scenario.depth
    together = max(1, _LOOKUP_BYTES // (tokens * scenario.running))
    walks: list[Walk] = []
    for start in range(0, len(seeds), together):
        streams = [_stream(scenario, seed, tokens) for seed in seeds[start : start + together]]
        walks += _walk(scenario, streams)
    return walks


def _stream(scenario: Scenario, seed: int, tokens: int) -> _Stream:
    random = np.random.default_rng([seed, 0])
    profile, slots = scenario.profile, scenario.running
    starts, prompts, difficulty = _requests(scenario, seed, tokens)
    request = np.zeros((tokens, slots), dtype=np.int32)
    age = np.empty((tokens, slots), dtype=np.int32)
    remaining = np.empty((tokens, slots), dtype=np.int32)
    order = np.arange(tokens, dtype=np.int32)
    for slot, (slot_starts, slot_difficulty) in enumerate(zip(starts, difficulty, strict=True)):
        of_token = np.searchsorted(slot_starts, order, side="right") - 1
        request[:, slot] = of_token
        age[:, slot] = order - slot_starts[of_token]
        remaining[:, slot] = slot_starts[of_token + 1] - order
        difficulty[slot] = slot_difficulty[of_token]
    score = np.stack(difficulty, axis=1)
    if profile.within:
        score += np.float32(profile.within) * _autoregression(random, tokens, slots, profile.persistence)
    luck = random.random((tokens, slots), dtype=np.float32)
    right = _logistic(score)
    healthy = _accepted(scenario, right, luck, remaining, (1.0, 1.0))
    faulty = None
    if scenario.fault is not None:
        context = age + np.stack([prompts[slot][request[:, slot]] for slot in range(slots)], axis=1)
        faulty_right = _right_under(scenario.fault, score, context)
        faulty = _accepted(scenario, faulty_right, luck, remaining, scenario.fault.position_factors)
    return _Stream(healthy, faulty, starts, prompts, float((luck < right).mean()))


def _requests(scenario: Scenario, seed: int, tokens: int) -> tuple[list[Counts], list[Counts], list[Floats]]:
    """Per slot: where each request's tokens start, its prompt and its difficulty, enough to fill the stream."""
    random = np.random.default_rng([seed, 1])
    profile = scenario.profile
    median = profile.steps * profile.length * scenario.tokens_scale
    starts: list[Counts] = []
    prompts: list[Counts] = []
    difficulty: list[Floats] = []
    for _ in range(scenario.running):
        lengths = np.empty(0)
        while lengths.sum() <= tokens:
            more = np.ceil(median * random.lognormal(0.0, _LENGTH_SIGMA, int(tokens / median) + 8))
            lengths = np.concatenate([lengths, more])
        starts.append(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        prompts.append(
            np.ceil(scenario.prompt_tokens * random.lognormal(0.0, _PROMPT_SIGMA, lengths.size)).astype(np.int32)
        )
        difficulty.append((profile.mean + profile.between * random.standard_normal(lengths.size)).astype(np.float32))
    return starts, prompts, difficulty


def _autoregression(random: np.random.Generator, tokens: int, slots: int, persistence: float) -> Floats:
    """Stationary first-order autoregression with unit variance along the tokens of every slot.

    Summed by doubling: after j rounds a value holds its last 2^j innovations. It stops where older
    ones weigh nothing, and runs in over as many tokens.
    """
    rounds = max(1, int(np.ceil(np.log2(np.log(1e-6) / np.log(persistence)))))
    warm = 2**rounds
    values = random.standard_normal((tokens + warm, slots), dtype=np.float32) * np.float32(np.sqrt(1 - persistence**2))
    for level in range(rounds):
        reach = 2**level
        earlier = values[:-reach] * np.float32(persistence**reach)
        values[reach:] += earlier
    return values[warm:]


def _logistic(score: Floats) -> Floats:
    return np.float32(1) / (np.float32(1) + np.exp(-score))


def _right_under(fault: Fault, score: Floats, context: Counts) -> Floats:
    """Probability of being right at the first position, as far as the fault depends on the token."""
    if fault is Fault.MIX_CHANGE:
        return _logistic(score + np.float32(MIX_SHIFT))
    if fault is Fault.CONTEXT_DECAY:
        halvings = context.astype(np.float32) / np.float32(CONTEXT_HALVING)
        return np.asarray(_logistic(score) * np.exp2(-halvings), dtype=np.float32)
    return _logistic(score)


def _accepted(
    scenario: Scenario, right: Floats, luck: Floats, remaining: Counts, factors: tuple[float, float]
) -> NDArray[np.int8]:
    """What a step starting at each token accepts, the request's end allowed for."""
    find = _tree_runs if scenario.tree else _chain_runs
    accepted = find(scenario, right, luck, factors)
    return np.minimum(accepted, np.minimum(remaining - 1, 127).astype(np.int8))


def _chain_runs(scenario: Scenario, right: Floats, luck: Floats, factors: tuple[float, float]) -> NDArray[np.int8]:
    tokens = right.shape[0]
    accepted = np.zeros(right.shape, dtype=np.int8)
    running = np.ones(right.shape, dtype=np.bool_)
    for position in range(scenario.depth):
        factor = np.float32(scenario.profile.depth_decay**position * factors[position > 0])
        hit = luck[position:] < right[position:] * factor
        running[: tokens - position] &= hit
        running[tokens - position :] = False  # no run of right drafts leaves the stream
        accepted += running
    return accepted


def _tree_runs(scenario: Scenario, right: Floats, luck: Floats, factors: tuple[float, float]) -> NDArray[np.int8]:
    """Follow the target's tokens through the tree: at each level the rank of the target's token among the draft's."""
    ranks = 1 + len(scenario.rank_shares)
    children = _children(scenario, ranks)
    dead = children.shape[0] - 1
    tokens = right.shape[0]
    node = np.zeros(right.shape, dtype=np.int16)
    accepted = np.zeros(right.shape, dtype=np.int8)
    bounds = np.cumsum((0.0, *scenario.rank_shares)).astype(np.float32)
    for position in range(scenario.depth):
        factor = np.float32(scenario.profile.depth_decay**position * factors[position > 0])
        first = right[position:] * factor
        # Shares of the miss: 0 up to the first choice's probability, then each further choice's part of the rest.
        rank = sum((luck[position:] >= first + bound * (1 - first)).astype(np.int8) for bound in bounds)
        node[: tokens - position] = children[node[: tokens - position], rank]
        node[tokens - position :] = dead
        accepted += node != dead
    return accepted


def _children(scenario: Scenario, ranks: int) -> NDArray[np.int16]:
    """Node and rank to child; the last row is the place from which nothing is right any more."""
    number = {node: index for index, node in enumerate(((), *scenario.tree))}
    dead = len(number)
    table = np.full((dead + 1, ranks + 1), dead, dtype=np.int16)
    for node, index in number.items():
        if node and node[-1] < ranks:
            table[number[node[:-1]], node[-1]] = index
    return table


def _walk(scenario: Scenario, streams: Sequence[_Stream]) -> list[Walk]:
    healthy = np.concatenate([stream.healthy for stream in streams], axis=1)
    faulty = healthy
    if scenario.fault is not None:
        faulty = np.concatenate([stream.faulty for stream in streams if stream.faulty is not None], axis=1)
    slots = healthy.shape[1]
    columns = np.arange(slots)
    place = np.zeros(slots, dtype=np.int32)
    accepted = np.empty((scenario.iterations, slots), dtype=np.int8)
    starts = np.empty((scenario.iterations, slots), dtype=np.int32)
    onset = scenario.onset * scenario.interval
    for iteration in range(scenario.iterations):
        table = healthy if iteration < onset else faulty
        found = table[place, columns]
        accepted[iteration] = found
        starts[iteration] = place
        place += found
        place += 1
    return [
        _of_run(stream, accepted[:, first : first + scenario.running], starts[:, first : first + scenario.running])
        for stream, first in zip(streams, range(0, slots, scenario.running), strict=True)
    ]


def _of_run(stream: _Stream, accepted: NDArray[np.int8], starts: Counts) -> Walk:
    request, age, prompt = (np.empty_like(starts) for _ in range(3))
    for slot, slot_starts in enumerate(stream.request_starts):
        of_step = np.searchsorted(slot_starts, starts[:, slot], side="right") - 1
        request[:, slot] = of_step
        age[:, slot] = starts[:, slot] - slot_starts[of_step]
        prompt[:, slot] = stream.prompts[slot][of_step]
    return Walk(accepted.copy(), request, age, prompt, stream.first_accuracy)
