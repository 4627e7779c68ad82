"""``draftscope ingest --dry-run``: what would be stored, and what of a log is not read."""

from __future__ import annotations

from pathlib import Path

from collector.formats.blocks import LINE_CAP

LOG = Path(__file__).parents[1] / "golden" / "logs" / "sglang" / "0.5.11-restarts" / "log.txt"


def test_lines_over_the_cap_are_dropped_and_told(draftscope, tmp_path):
    whole = draftscope("ingest", "--dry-run", str(LOG)).out
    log = tmp_path / "server.log"
    log.write_bytes(LOG.read_bytes() + b"x" * (LINE_CAP + 1) + b"\n")
    out = " ".join(draftscope("ingest", "--dry-run", str(log)).out.split())
    assert "dropped 1 line over the size cap" in out
    assert "dropped" not in whole
    assert out.rpartition("; ")[2] == " ".join(whole.split()).rpartition("; ")[2]
