"""Inputs that were damaged on their way: whatever is in them, there is a diagnosis or an error in words."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import jsonschema
import pytest

from analysis.diagnosis import schema
from analysis.runner import diagnose
from collector.bundle import read_bundle
from collector.domain.errors import DraftscopeError
from tests.cases.test_cases import CASES

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = sorted({path.parent for path in GOLDEN.rglob("*") if path.is_file() and path.stat().st_size < 300_000})
ROUNDS = 3_000 if os.environ.get("DRAFTSCOPE_SOAK") == "1" else 60
BYTES = b"\n\r\x00[] ,.:0123456789aT\xff-{}\"'="
WORDS = (b"nan", b"inf", b"-1", b"9" * 30, b"1e400", b"0", b"null", b"true", b"\x1b[0m", "²".encode())


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, lost, doubled or put in."""
    text = bytearray(data)
    for _ in range(chance.choice((1, 3, 10, 40))):
        if not text:
            break
        place, kind = chance.randrange(len(text)), chance.random()
        if kind < 0.6:
            text[place] = chance.choice(BYTES)
        elif kind < 0.75:
            del text[place : place + chance.randrange(1, 200)]
        elif kind < 0.9:
            other = chance.randrange(len(text))
            text[place:place] = text[other : other + chance.randrange(1, 300)]
        else:
            text[place:place] = chance.choice(WORDS)
    return bytes(text)


@pytest.mark.parametrize("part", range(10))
def test_damaged_files_are_diagnosed_or_refused_in_words(part: int, tmp_path: Path) -> None:
    for number in range(part, ROUNDS, 10):
        chance = random.Random(number)
        source = chance.choice(CASES if chance.random() < 0.6 else RECORDED)
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in sorted(source.iterdir()):
            if path.is_file() and path.name != "expected.yaml" and path.stat().st_size < 300_000:
                data = path.read_bytes()
                (folder / path.name).write_bytes(damaged(data, chance) if chance.random() < 0.8 else data)
        try:
            document = json.loads(json.dumps(diagnose(read_bundle([folder])).document(), allow_nan=False))
        except DraftscopeError:
            continue
        except Exception as error:
            error.add_note(f"round {number}: {source.name}")
            raise
        assert document["crashed"] == [], f"round {number}: {source.name}"
        jsonschema.validate(document, schema())
