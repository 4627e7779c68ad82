"""How a run drafts: method, depth, width and branching, from arguments or from printed pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.domain.arguments import Arguments
from collector.domain.deployments import method_of
from collector.domain.quantities import Estimate
from collector.domain.requests import RequestResult

if TYPE_CHECKING:
    import numpy as np

TAKEN_OVER = "taken to draft as the judged run does; its inputs do not say"

MTP_WITHOUT_DRAFT = frozenset({"eagle", "mtp"})
"""Methods that use the target's own module when no draft is named."""

BLOCK_METHODS = frozenset({"dflash", "dspark", "ngram", "ngram_gpu", "medusa"})
"""Methods whose depth is the verify width less one (DESIGN section 5)."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """What a run drafts with.

    Attributes:
        method: the engine's effective name in lower case; ``None`` where the run does not speculate.
        known: whether anything said so; ``False`` means that nobody stated the drafting arguments.
        depth: k, longest run of drafts. ``width``: n, tokens verified, root included. ``topk``: branching, 1 = chain.
        assumed: taken over from the judged run, or inferred from printed pairs.
        note: how, in words.
    """

    method: str | None = None
    known: bool = False
    depth: int | None = None
    width: int | None = None
    topk: int | None = None
    has_draft_path: bool | None = None
    assumed: bool = False
    note: str = ""

    @property
    def chain(self) -> bool:
        """Whether drafts form a chain."""
        return self.topk in (None, 1)

    @property
    def one_module(self) -> bool:
        """Whether the target's own single module drafts, so that more depth means running it again."""
        return self.method == "mtp" or (self.method == "eagle" and not self.has_draft_path)


def concerns_drafts(flag: str) -> bool:
    """Whether a flag, by its name, is about drafting."""
    return flag.startswith(("speculative", "spec_"))


def drafting_of(engine: str, arguments: Arguments) -> Drafting:
    """Read the drafting arguments; nothing is guessed here."""
    method = method_of(engine, arguments)
    reader = _READERS.get(engine)
    return reader(arguments, method) if method and reader else Drafting(known=method is not None)


def configuration_quantities(drafting: Drafting) -> dict[str, Estimate]:
    """Depth, width and the largest possible length."""
    figures: dict[str, Estimate] = {}
    if drafting.depth is not None:
        figures["draft_depth"] = Estimate(drafting.depth, assumed=drafting.assumed, note=drafting.note)
        figures["max_acceptance_length"] = Estimate(drafting.depth + 1, assumed=drafting.assumed, note=drafting.note)
    if drafting.width is not None:
        figures["verify_width"] = Estimate(drafting.width, assumed=drafting.assumed, note=drafting.note)
    return figures


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return int(value)


def _sglang(arguments: Arguments, method: str) -> Drafting:
    depth, width = (_whole(arguments.value(f"speculative_num_{name}")) for name in ("steps", "draft_tokens"))
    if method in BLOCK_METHODS:
        depth = width - 1 if width is not None else None
    path = arguments.value("speculative_draft_model_path")
    return Drafting(
        method=method,
        known=True,
        depth=depth,
        width=width,
        topk=_whole(arguments.value("speculative_eagle_topk")),
        has_draft_path=path is not None and path != arguments.value("model_path"),
    )


def _chain(method: str, depth: int | None, *, has_draft_path: bool) -> Drafting:
    """A method that drafts chains, all of which is verified."""
    width = None if depth is None else depth + 1
    return Drafting(method, known=True, depth=depth, width=width, topk=1, has_draft_path=has_draft_path)


def _vllm(arguments: Arguments, method: str) -> Drafting:
    """Depth by ``speculative_config``; releases before 0.8.5 had an option for each setting."""
    depth = _whole(arguments.value("speculative_config.num_speculative_tokens"))
    if depth is None:
        depth = _whole(arguments.value("num_speculative_tokens"))
    model = arguments.value("speculative_config.model") or arguments.value("speculative_model")
    return _chain(method, depth, has_draft_path=model is not None and model != arguments.value("model"))


_LLAMACPP_DEPTHS = ("size_m", "n_max")


def _llamacpp_depth(arguments: Arguments, kind: str) -> int | None:
    """The largest number of tokens in a draft of one type."""
    if kind.startswith("draft"):
        names = ["spec_draft_n_max", "draft_max"]
    else:
        names = [f"spec_{kind.replace('-', '_')}_{setting}" for setting in _LLAMACPP_DEPTHS]
    return next((depth for name in names if (depth := _whole(arguments.value(name))) is not None), None)


def _llamacpp(arguments: Arguments, method: str) -> Drafting:
    """A server may have several types, and each makes drafts of its own length; the depth is that of the longest."""
    types = [kind for kind in str(arguments.value("spec_type")).split(",") if kind not in {"", "none"}]
    depths = [depth for kind in types if (depth := _llamacpp_depth(arguments, kind)) is not None]
    has_draft = arguments.seen("spec_draft_model") or arguments.seen("spec_draft_hf")
    return _chain(method, max(depths) if len(depths) == len(types) else None, has_draft_path=has_draft)


def _tensorrt_llm(arguments: Arguments, method: str) -> Drafting:
    """Depth by ``speculative_config`` of the options file."""
    depth = _whole(arguments.value("speculative_config.max_draft_len"))
    if depth is None:
        depth = _whole(arguments.value("speculative_config.num_nextn_predict_layers"))
    models = map(arguments.value, ("speculative_config.speculative_model", "speculative_config.speculative_model_dir"))
    return _chain(method, depth, has_draft_path=any(model is not None for model in models))


_READERS = {"sglang": _sglang, "vllm": _vllm, "llamacpp": _llamacpp, "tensorrt-llm": _tensorrt_llm}


def infer_width(lengths: np.ndarray, rates: np.ndarray, widest: int = 65) -> tuple[int, str] | None:
    """The verify width and rate definition that explain every printed pair, if exactly one does.

    Shapes: ``lengths`` and ``rates`` (n,), as printed to two decimals. The two families of
    definitions (theory section 1.2) are tried: length / width, and (length - 1) / (width - 1).
    """
    import numpy as np

    known = np.isfinite(lengths) & np.isfinite(rates)
    lengths, rates = lengths[known], rates[known]
    if lengths.size == 0:
        return None
    fits: list[tuple[int, str]] = []
    for width in range(2, widest):
        for definition, implied, slack in (
            ("length/width", lengths / width, 0.005 / width),
            ("accepted/drafted", (lengths - 1) / (width - 1), 0.005 / (width - 1)),
        ):
            if np.all(np.abs(implied - rates) <= 0.005 + slack + 1e-9):
                fits.append((width, definition))
    return fits[0] if len(fits) == 1 else None


def assume_from(subject: Drafting, lengths: np.ndarray, rates: np.ndarray) -> Drafting:
    """The judged run's drafting for a run that states none, unless its own lines contradict.

    A contradiction is a length above depth + 1 or a printed rate that implies another width.
    """
    import numpy as np

    if subject.depth is not None and lengths.size and np.nanmax(lengths) > subject.depth + 1.005:
        return replace(
            subject,
            depth=None,
            width=None,
            topk=None,
            assumed=True,
            note="its lengths exceed the judged run's depth + 1",
        )
    inferred = infer_width(lengths, rates)
    if inferred is not None and subject.width is not None and inferred[0] != subject.width:
        return _of_width(subject, inferred[0], f"its printed rate implies a width of {inferred[0]}")
    return replace(subject, assumed=True, note=TAKEN_OVER)


def infer_from_requests(results: Sequence[RequestResult]) -> Drafting | None:
    """How requests draft, by what their responses count; ``None`` where they say nothing of drafts.

    Each verified the same number of drafts in every step, or they have no one width. A response may state the depth;
    else it is what a chain of that width has, where a step went as far as that.
    """
    if not any(result.speculated for result in results):
        return None
    counted = [result for result in results if result.counted]
    if not counted:
        return Drafting("unknown", assumed=True, note="by what the responses count")
    stated = {result.depth for result in counted}
    depth = stated.pop() if len(stated) == 1 else None
    a_step = {(result.drafted_tokens or 0) / (result.verify_steps or 1) for result in counted}
    drafted = a_step.pop() if len(a_step) == 1 else 0.0
    width = int(drafted) + 1 if drafted and drafted.is_integer() else None
    furthest = max((len(result.histogram) - 1 for result in counted if result.histogram is not None), default=None)
    if depth is None and width is not None and furthest == width - 1:
        depth = furthest
    chain = depth is not None and width in (None, depth + 1)
    return Drafting(
        "unknown",
        depth=depth,
        width=width if width is not None or depth is None else depth + 1,
        topk=1 if chain else None,
        assumed=True,
        note="by what the responses count" + ("; taken to be a chain" if chain else ""),
    )


def assume_width(subject: Drafting, inferred: Drafting) -> Drafting:
    """The judged run's drafting for a run whose requests tell only how wide it drafts."""
    if None in (inferred.width, subject.width) or inferred.width == subject.width:
        return replace(subject, assumed=True, note=TAKEN_OVER)
    return _of_width(subject, inferred.width or 0, f"its responses count a width of {inferred.width}")


def _of_width(subject: Drafting, width: int, note: str) -> Drafting:
    return replace(subject, depth=width - 1 if subject.chain else None, width=width, assumed=True, note=note)
