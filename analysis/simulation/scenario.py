"""What to simulate: the traffic, the draft, the server, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from analysis.theory.trees import Node, check_tree
from collector.domain.errors import InputError


@dataclass(frozen=True, slots=True)
class Profile:
    """Traffic by how hard its tokens are for the draft.

    A request has a difficulty ``mean + between N(0, 1)``, its tokens add ``within`` times a
    first-order autoregression with coefficient ``persistence``; the logistic of the sum, times
    ``depth_decay`` per position beyond the first, is the probability that the draft is right.
    ``steps`` is the median number of verify steps of a request at depth 5, ``length`` the
    acceptance length there, which together give its tokens (lognormal, sigma 0.8).
    """

    name: str
    mean: float
    between: float
    within: float
    persistence: float
    depth_decay: float
    steps: float
    length: float


IID: Final = Profile("iid", 0.85, 0.0, 0.0, 0.0, 1.0, 62, 2.94)
"""All tokens alike: only the truncated geometric is left."""
MATHS: Final = Profile("maths-like", 1.1, 0.2, 0.9, 0.5, 0.985, 62, 2.96)
CHAT: Final = Profile("chat-like", 1.15, 0.55, 1.3, 0.75, 0.96, 260, 2.69)
CODE: Final = Profile("code-like", 1.75, 0.55, 1.3, 0.75, 0.96, 60, 3.21)
PROFILES: Final = (IID, MATHS, CHAT, CODE)


class Fault(StrEnum):
    """What can be wrong, described. The first five change what happens, the rest what is printed."""

    WIRING = "the draft reads the wrong states: every position accepts 0.3 times as often"
    FEEDBACK = "the draft's own states are lost: positions from the second on accept half as often"
    CONTEXT_DECAY = "acceptance halves with every 1,500 tokens of context"
    MIX_CHANGE = "the traffic becomes harder; nothing is broken"
    REPLICA = "this replica accepts 0.85 times as often at every position"
    DROPPED_BONUS = "the printed length leaves out the target's own token"
    SWAPPED_RATE = "the printed rate is accepted over depth in a release that prints length over width"
    MISDECLARED_DEPTH = "the stated depth is two less than what runs"

    @property
    def position_factors(self) -> tuple[float, float]:
        """What the probability of being right is multiplied with: at the first position, and at later ones."""
        return {Fault.WIRING: (0.3, 0.3), Fault.FEEDBACK: (1.0, 0.5), Fault.REPLICA: (0.85, 0.85)}.get(self, (1.0, 1.0))


CONTEXT_HALVING: Final = 1500.0
"""Tokens of context after which :attr:`Fault.CONTEXT_DECAY` has halved the probabilities."""
MIX_SHIFT: Final = -1.2
"""Change of a request's difficulty under :attr:`Fault.MIX_CHANGE`."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One server under a constant number of requests: the next one starts as soon as one ends.

    Attributes:
        profile: the traffic.
        depth: drafts per step; 0 is plain decoding.
        tree: nodes of a draft tree; empty for a chain.
        rank_shares: how the draft's second, third, ... choices share the cases in which the first
            is wrong; matters for trees only.
        running: concurrent requests.
        windows, interval: log lines to simulate, and iterations per line.
        prompt_tokens: median prompt (lognormal, sigma 0.6).
        tokens_scale: factor on the length of answers.
        plain_step_seconds: time of a plain decode step at this load.
        step_cost_ratio: plain steps that a speculative step costs.
        step_noise: relative noise of a step's time.
        prefill_seconds: time that a new request's prompt takes from the others.
        startup_seconds: time before the first step that the first line's clock includes.
        idle: (window, seconds) pauses inside the windows of these indexes.
        fault: what is wrong; ``None`` for a healthy server.
        onset: index of the window from which on it is wrong.
    """

    profile: Profile = CHAT
    depth: int = 5
    tree: tuple[Node, ...] = ()
    rank_shares: tuple[float, ...] = (0.35, 0.15)
    running: int = 8
    windows: int = 60
    interval: int = 40
    prompt_tokens: float = 400.0
    tokens_scale: float = 1.0
    plain_step_seconds: float = 0.011
    step_cost_ratio: float = 1.6
    step_noise: float = 0.02
    prefill_seconds: float = 0.03
    startup_seconds: float = 5.0
    idle: tuple[tuple[int, float], ...] = ()
    fault: Fault | None = None
    onset: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated.

        Raises:
            InputError: a count is not positive, or the tree is none or deeper than the depth.
        """
        if min(self.running, self.windows, self.interval) < 1 or self.depth < 0:
            raise InputError("a scenario needs at least one request, one window and one iteration per window")
        check_tree(self.tree)
        if any(len(node) > self.depth for node in self.tree):
            raise InputError("the tree is deeper than the draft depth")

    @property
    def iterations(self) -> int:
        """Verify steps of each slot."""
        return self.windows * self.interval

    @property
    def width(self) -> int:
        """Tokens verified per request and step, the root included."""
        return len(self.tree) + 1 if self.tree else self.depth + 1

    @property
    def branching(self) -> int:
        """Children of the root: 1 for a chain."""
        return max(1, sum(len(node) == 1 for node in self.tree))

    @property
    def step_seconds(self) -> float:
        """True mean time of an iteration without prefill or pause."""
        return self.plain_step_seconds * (self.step_cost_ratio if self.depth else 1.0)
