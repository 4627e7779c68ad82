"""Puts logs into wrappings, as their carriers do; the inverse of what is tested."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from collector.formats.wrappers.container_json import as_bytes

Lines = list[bytes]
Wrap = Callable[[Lines, str, random.Random], Lines]
TIME = "2026-01-01T00:00:01.123456789Z"


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _json(**record: object) -> bytes:
    return as_bytes(json.dumps(record, separators=(",", ":"), ensure_ascii=False))


def _cut(line: bytes, chance: random.Random) -> Lines:
    """A line in one to three parts."""
    edges = sorted(chance.randrange(len(line) + 1) for _ in range(chance.choice((0, 0, 0, 1, 2))))
    return [line[start:end] for start, end in zip([0, *edges], [*edges, len(line)], strict=True)]


def container_json(lines: Lines, _stream: str, chance: random.Random) -> Lines:
    found = []
    for line in lines:
        *before, last = _cut(line, chance)
        if any(part.decode("utf-8", "ignore").encode() != part for part in (*before, last)):
            before, last = [], line
        found += [_json(log=_text(part), stream="stderr", time=TIME) for part in before]
        found.append(_json(log=_text(last) + "\n", stream="stderr", time=TIME))
    return found


def pods_in_json(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    kubernetes = {"pod_name": stream, "container_name": "server"}
    return [_json(time=TIME, stream="stdout", log=_text(line), kubernetes=kubernetes) for line in lines]


def shipped_json(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [_json(labels={"pod": stream}, line=_text(line), timestamp=TIME) for line in lines]


def cri(lines: Lines, _stream: str, chance: random.Random) -> Lines:
    found = []
    for line in lines:
        *before, last = _cut(line, chance)
        found += [f"{TIME} stderr P ".encode() + part for part in before]
        found.append(f"{TIME} stderr F ".encode() + last)
    return found


def journal(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [
        _json(_HOSTNAME="gpu-7", _SYSTEMD_UNIT=stream, MESSAGE=list(line) if b"\x1b" in line else _text(line))
        for line in lines
    ]


def compose(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [f"\x1b[36m{stream}-1  | \x1b[0m".encode() + line for line in lines]


def pods(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [f"[pod/{stream}/server] ".encode() + line for line in lines]


def stern(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [f"{stream} server ".encode() + line for line in lines]


def timestamps(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [f"{TIME} ".encode() + line for line in lines]


def syslog(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [f"Nov 29 18:20:00 gpu-7 {stream}[812]: ".encode() + line.replace(b"\x1b", b"#033") for line in lines]


def new_syslog(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    return [f"<165>1 {TIME} gpu-7 {stream} 812 - - ".encode() + line for line in lines]


def mpi(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [b"[1,0]<stdout>:" + line for line in lines]


def torchrun(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [b"[default0]:" + line for line in lines]


def slurm(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [b" 3: " + line for line in lines]


def ray(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [b"\x1b[36m(RayWorkerWrapper pid=812, ip=10.0.0.7)\x1b[0m " + line for line in lines]


def colours(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [b"\x1b[32m" + line + b"\x1b[0m" for line in lines]


def windows_line_ends(lines: Lines, _stream: str, _chance: random.Random) -> Lines:
    return [line + b"\r" for line in lines]


def progress(lines: Lines, _stream: str, chance: random.Random) -> Lines:
    bar = b"Loading:  50%|#####     | 5/10 [00:01<00:01,  3.20it/s]\r"
    return [bar * 3 + line if chance.random() < 0.2 and line else line for line in lines]


def logfmt(lines: Lines, stream: str, _chance: random.Random) -> Lines:
    def quoted(line: bytes) -> bytes:
        for plain, escaped in ((b"\\", rb"\\"), (b'"', rb"\""), (b"\t", rb"\t"), (b"\r", rb"\r"), (b"\x1b", rb"\x1b")):
            line = line.replace(plain, escaped)
        return line

    return [
        b'time="%s" level=info msg="%s" component=%s' % (TIME.encode(), quoted(line), stream.encode()) for line in lines
    ]


WRAPS: dict[str, Wrap] = {
    wrap.__name__: wrap
    for wrap in (
        container_json,
        pods_in_json,
        shipped_json,
        cri,
        journal,
        compose,
        pods,
        stern,
        timestamps,
        syslog,
        new_syslog,
        mpi,
        torchrun,
        slurm,
        ray,
        logfmt,
        colours,
        windows_line_ends,
        progress,
    )
}
