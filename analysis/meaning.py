"""Whether two values of a flag mean the same thing."""

from __future__ import annotations

from collector.domain.arguments import Seen


def same_meaning(flag: str, asked: Seen, runs: Seen) -> bool:
    """Equal values, an alias of a method, a path with a trailing slash, a list of one."""
    if isinstance(asked, str) and isinstance(runs, str):
        if flag == "speculative_algorithm":
            return {asked.upper(), runs.upper()} <= {"EAGLE", "NEXTN"} or asked.upper() == runs.upper()
        return asked.rstrip("/") == runs.rstrip("/")
    if isinstance(asked, list) and len(asked) == 1 and not isinstance(runs, list):
        return bool(asked[0] == runs)
    return str(asked) == str(runs)
