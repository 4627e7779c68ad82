"""An alert as it is told."""

from dashboard.sinks.notice import Notice, NoticedCause, NoticedFinding, NoticedRun, NoticeType

_RUN = NoticedRun(
    id="17",
    engine="sglang",
    engine_version="0.5.10",
    method="eagle3",
    model="Kimi-K2.5",
    draft="kimi-k25-eagle3",
    source="input.log",
    started_at=1775743330.0,
)
_FINDING = NoticedFinding(
    rule="PAY001",
    name="slower-than-baseline",
    severity="critical",
    confidence="high",
    scope="run",
    title="Speculation makes this server 39% slower",
    why="54.8 tok/s against 89.9 tok/s → ×0.609.",
    values={"speedup": 0.609, "step_cost_ratio": 2.96, "acceptance_rate_at": [0.5, float("nan")]},
    fix=("Repair acceptance.", "Lower the step cost."),
)
NOTICE = Notice(
    type=NoticeType.OPENED,
    at=1775750000.25,
    key="5f3f0a3c9be24a5d8e1b0c2d4e6f8091",
    deployment="kimi-prod",
    run=_RUN,
    finding=_FINDING,
    link="https://draftscope.example.org/runs/17#PAY001",
    labels={"team": "search"},
    cause=NoticedCause("capture-layers-wrong", "The draft is fed other layers than it was trained on", "likely"),
)
