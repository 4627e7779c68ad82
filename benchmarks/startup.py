"""CPU time of the command line's start and of a check after it, seconds: ``python benchmarks/startup.py``.

Processor time of the process itself, the least of several tries, so that other work on the machine
matters little. Asked for: start below 0.4 s, a check below 0.5 s after the start.
"""

from __future__ import annotations

import resource
import shlex
import subprocess
import sys
from pathlib import Path

TRIES = 7
LAUNCH = (
    "python -m sglang.launch_server --model-path m --tp 8 --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 16"
)
COMMAND = shlex.split(LAUNCH)
CASES = {
    "start (--version)": ["--version"],
    "start (--help)": ["--help"],
    "check, release given": ["check", "--engine-version", "0.5.9", "--device", "h100", "--", *COMMAND],
    "check, all releases": ["check", "--", *COMMAND],
    "check, all releases, json": ["check", "--format", "json", "--", *COMMAND],
    "check, all releases, sarif": ["check", "--format", "sarif", "--", *COMMAND],
}


def cpu_seconds(arguments: list[str]) -> float:
    """Least processor time of several runs of the installed command."""
    program = Path(sys.executable).parent / "draftscope"
    times = []
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    start = cpu_seconds(["--version"])
    print(f"{'':32}  CPU s  after start")
    for name, arguments in CASES.items():
        total = cpu_seconds(arguments)
        print(f"{name:32}  {total:.3f}  {max(total - start, 0):.3f}")


if __name__ == "__main__":
    main()
