"""Trees of drafts: expected length, the best tree of a size, and bounds.

A node is the path of ranks that leads to it: ``(0, 1)`` is the draft's second choice after its
first choice. The root (the last accepted token) is not a node.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from analysis.theory.chain import expected_length
from collector.domain.errors import ImpossibleFigure, InputError

Node: TypeAlias = tuple[int, ...]


def check_tree(nodes: Iterable[Sequence[int]]) -> tuple[Node, ...]:
    """The nodes as paths, once it is sure that they form a tree.

    Raises:
        InputError: a node is listed twice, or its parent is not in the tree.
    """
    paths = [tuple(node) for node in nodes]
    known = {(), *paths}
    if len(known) != len(paths) + 1:
        raise InputError("a tree lists a node twice, or the root", hint="leave out the root and repeated paths")
    for path in paths:
        if path[:-1] not in known:
            raise InputError(f"node {path} has no parent in the tree", hint="list every node on the way to it")
    return tuple(paths)


def tree_length(rank_probabilities: Sequence[float], nodes: Iterable[Sequence[int]]) -> float:
    """Expected length of a tree whose ranks are independent: ``1 + sum over nodes of the product along the path``.

    ``rank_probabilities[r]`` is the probability that the target's token is the draft's choice of
    rank r. A rank beyond the list is never right.

    Raises:
        InputError: as :func:`check_tree`.
        ImpossibleFigure: the probabilities are not shares of one.
    """
    _check_ranks(rank_probabilities)
    return 1 + math.fsum(_reach(rank_probabilities, node) for node in check_tree(nodes))


def best_tree(rank_probabilities: Sequence[float], budget: int, max_depth: int) -> tuple[float, tuple[Node, ...]]:
    """Expected length and nodes of the best tree of ``budget`` nodes: the most probable paths first.

    Source: the idea of Sequoia (arXiv 2402.12374) and EAGLE-2 (arXiv 2406.16858).

    Raises:
        ImpossibleFigure: the probabilities are not shares of one.
    """
    _check_ranks(rank_probabilities)
    waiting: list[tuple[float, Node]] = [(-share, (rank,)) for rank, share in enumerate(rank_probabilities)]
    heapq.heapify(waiting)
    chosen: list[Node] = []
    reaches: list[float] = []
    while waiting and len(chosen) < budget:
        negative, node = heapq.heappop(waiting)
        chosen.append(node)
        reaches.append(-negative)
        if len(node) < max_depth:
            for rank, share in enumerate(rank_probabilities):
                heapq.heappush(waiting, (negative * share, (*node, rank)))
    return 1 + math.fsum(reaches), tuple(chosen)


def tree_upper_bound(top_accuracy: float, depth: int, width: int | None = None) -> float:
    """No tree yields more than ``1 + sum A^i``, A = accuracy of the first k choices, nor than the run it can hold.

    ``width`` is the verify width n, root included; a step accepts at most ``min(depth, n - 1)`` drafts.

    Raises:
        ImpossibleFigure: the accuracy is not between 0 and 1.
    """
    return expected_length(top_accuracy, depth if width is None else min(depth, width - 1))


def tree_lower_bound(rate: float, depth: int, width: int) -> float | None:
    """The contained chain's length, ``None`` where the tree is too small to contain one (n - 1 < k).

    It holds only if the tree does contain the chain of full depth, which branching does not promise.

    Raises:
        ImpossibleFigure: the rate is not between 0 and 1.
    """
    return expected_length(rate, depth) if width - 1 >= depth else None


def contains_full_chain(nodes: Iterable[Sequence[int]], depth: int) -> bool:
    """Whether the draft's first choice is in the tree at every depth."""
    paths = {tuple(node) for node in nodes}
    return all((0,) * level in paths for level in range(1, depth + 1))


def depth_efficiency(length: float, depth: float) -> float:
    """Accepted drafts over the most a step can accept, ``(L - 1) / k``: the share to compare trees by.

    Raises:
        ImpossibleFigure: the depth is not above zero.
    """
    if not depth > 0:
        raise ImpossibleFigure(f"no share of depth {depth:g}", why="nothing can be accepted where nothing is drafted")
    return (length - 1) / depth


def worth_adding(reach: float, speedup: float, verify_growth: float) -> bool:
    """Whether a node pays: its probability of being accepted against ``S`` times what verifying it costs."""
    return reach > speedup * verify_growth


def _reach(rank_probabilities: Sequence[float], node: Node) -> float:
    return math.prod(rank_probabilities[rank] if rank < len(rank_probabilities) else 0.0 for rank in node)


def _check_ranks(rank_probabilities: Sequence[float]) -> None:
    total = math.fsum(rank_probabilities)
    if not (all(share >= 0 for share in rank_probabilities) and total <= 1 + 1e-9):
        raise ImpossibleFigure(
            f"rank probabilities that sum to {total:g}", why="only one rank can hold the target's token"
        )
