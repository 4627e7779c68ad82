"""What differs between two runs besides their figures."""

from __future__ import annotations

from analysis import words
from analysis.view import RunView
from collector.domain.arguments import UNSEEN, Value

PER_LAUNCH = frozenset(
    {"random_seed", "port", "host", "log_level", "dist_init_addr", "nccl_port", "log_requests", "served_model_name"}
)


def changed_arguments(before: RunView, after: RunView) -> dict[str, tuple[Value, Value]]:
    """Arguments that both runs state and that run with another value, old and new; those of each launch are left out."""
    pairs = {name: (before.arguments[name].runs, argument.runs) for name, argument in after.arguments.items()}
    return {
        name: (old, new)
        for name, (old, new) in pairs.items()
        if name not in PER_LAUNCH and old is not UNSEEN and new is not UNSEEN and old != new
    }


def argument_differences(before: RunView, after: RunView) -> list[str]:
    """Differences in words: ``--dp-size 1 → 4``, ``release 0.5.4 → 0.5.5``; what only one run states is left out."""
    found: list[str] = []
    releases = (before.record.engine_version, after.record.engine_version)
    if all(releases) and releases[0] != releases[1]:
        found.append(f"release {releases[0]} → {releases[1]}")
    elif before.releases.intersect(after.releases) is None:
        found.append(f"release {before.releases} → {after.releases}")
    found += [
        f"{words.flag(name)} {words.value(old)} → {words.value(new)}"
        for name, (old, new) in changed_arguments(before, after).items()
    ]
    drafts = (before.record.draft_config, after.record.draft_config)
    if drafts[0] is not None and drafts[1] is not None and drafts[0].raw != drafts[1].raw:
        keys = sorted(set(drafts[0].raw) | set(drafts[1].raw))
        found += [f"draft config {key}" for key in keys if drafts[0].raw.get(key) != drafts[1].raw.get(key)]
    return found
