"""Request results: what an engine said of one request in its response."""

from __future__ import annotations

from dataclasses import dataclass

from collector.domain.errors import ImpossibleFigure


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The counts of one request; ``None`` where the response does not say.

    Counts never include the target's own token. A figure that no engine can produce is refused when the
    result is made.

    Attributes:
        engine: whose response it is.
        key: what makes two responses the same: the engine's own id, else a digest of what it says.
        line: line of the source it was read from, 1-based.
        at: when the response came, seconds since 1970.
        route: what kind of traffic the request belongs to; "" where nobody said.
        temperature: sampling temperature of the request.
        prompt_tokens, cached_tokens, output_tokens: of the prompt, of it found in the cache, of the answer.
        verify_steps: target passes that verified a draft of this request.
        accepted_tokens, drafted_tokens: draft tokens accepted and proposed.
        histogram: verify steps that accepted 0, 1, 2, ... draft tokens.
        depth: the largest number of draft tokens in a step, where the response states it.
        latency_seconds, first_token_seconds, token_seconds: of the whole request, to its first token, and per token
            after it.

    Raises:
        ImpossibleFigure: counts that contradict each other.
    """

    engine: str
    key: str
    line: int = 0
    at: float | None = None
    route: str = ""
    temperature: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    verify_steps: int | None = None
    accepted_tokens: int | None = None
    drafted_tokens: int | None = None
    histogram: tuple[int, ...] | None = None
    depth: int | None = None
    latency_seconds: float | None = None
    first_token_seconds: float | None = None
    token_seconds: float | None = None

    def __post_init__(self) -> None:
        steps, accepted, drafted = self.verify_steps, self.accepted_tokens, self.drafted_tokens
        if accepted is not None and drafted is not None and accepted > drafted:
            raise _impossible(
                f"{accepted} draft tokens accepted of {drafted}", "no more can be accepted than were drafted"
            )
        if steps == 0 and accepted:
            raise _impossible(f"{accepted} draft tokens accepted in no step", "each is accepted in a verify step")
        if self.histogram is None:
            return
        if steps is not None and sum(self.histogram) != steps:
            raise _impossible(
                f"the histogram holds {sum(self.histogram)} steps, the response counts {steps}",
                "each verify step is in the histogram once",
            )
        tokens = sum(count * number for count, number in enumerate(self.histogram))
        if accepted is not None and tokens != accepted:
            raise _impossible(
                f"the histogram holds {tokens} accepted tokens, the response counts {accepted}",
                "place i of the histogram counts the steps that accepted i tokens",
            )

    @property
    def counted(self) -> bool:
        """Whether the response counts verify steps, and there were some."""
        return bool(self.verify_steps) and self.accepted_tokens is not None

    @property
    def speculated(self) -> bool:
        """Whether the response says that something was drafted."""
        return bool(self.verify_steps or self.drafted_tokens)


def _impossible(what: str, why: str) -> ImpossibleFigure:
    return ImpossibleFigure(what, why=why, hint="the response was changed on its way, or counts something else")
