"""A file that grows is read on; rotations and truncations are noticed and nothing is lost or read twice."""

import os
import random
from pathlib import Path

import pytest

from collector.sources.follow import Follower

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def told(follower):
    """What a poll gives: data per file."""
    files = []
    for growth in follower.poll():
        if growth.file is not None:
            files.append([growth.file.name, b""])
        elif not files:
            files.append([None, growth.data])
        else:
            files[-1][1] += growth.data
    return files


def append(path, data):
    with path.open("ab") as stream:
        stream.write(data)


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path):
    log = tmp_path / "server.log"
    follower = Follower(log)
    assert told(follower) == []
    log.write_bytes(b"")
    assert told(follower) == [["server.log", b""]]
    assert told(follower) == []
    append(log, b"one\n")
    append(log, b"tw")
    assert told(follower) == [[None, b"one\ntw"]]
    append(log, b"o\n")
    assert told(follower) == [[None, b"o\n"]]
    follower.close()


def test_a_rotated_file_is_read_to_its_end_before_the_next(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    follower = Follower(log)
    assert told(follower) == [["server.log", b"one\n"]]
    append(log, b"two\n")
    rotated = log.rename(tmp_path / "server.log.1")
    append(rotated, b"three\n")
    assert told(follower) == [[None, b"two\nthree\n"]]
    log.write_bytes(b"four\n")
    assert told(follower) == [["server.log", b"four\n"]]
    follower.close()


def test_files_that_were_rotated_in_between_are_read_as_well(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    follower = Follower(log)
    assert told(follower) == [["server.log", b"one\n"]]
    log.rename(tmp_path / "server.log.2")
    (tmp_path / "server.log.1").write_bytes(b"two\n")
    log.write_bytes(b"three\n")
    assert told(follower) == [["server.log.1", b"two\n"], ["server.log", b"three\n"]]
    follower.close()


@pytest.mark.parametrize("after", [b"x\n", b"another beginning, longer than what was there before\n" * 9])
def test_a_truncated_file_begins_anew(tmp_path, after):
    log = tmp_path / "server.log"
    log.write_bytes(b"a first line\n" * 20)
    follower = Follower(log)
    assert told(follower) == [["server.log", b"a first line\n" * 20]]
    with log.open("r+b") as stream:
        stream.truncate(0)
        stream.write(after)
    assert told(follower) == [["server.log", after]]
    follower.close()


@pytest.mark.skipif(os.name != "posix", reason="rotation by renaming an open file")
def test_any_course_of_writing_and_rotating_is_read_once(tmp_path):
    for seed in range(100 if SOAK else 10):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        log = folder / "server.log"
        written = b"first\n"
        log.write_bytes(written)
        follower = Follower(log)
        read = b"".join(growth.data for growth in follower.poll())
        for number in range(60):
            action = chance.random()
            if action < 0.6:
                data = b"%d %s\n" % (number, b"x" * chance.randrange(50))
                append(log, data)
                written += data
            elif action < 0.75 and log.exists():
                rotate(log)
            else:
                read += b"".join(growth.data for growth in follower.poll())
        for _ in range(3):
            read += b"".join(growth.data for growth in follower.poll())
        assert read == written
        follower.close()


def rotate(log: Path):
    for number in range(70, 0, -1):
        old = log.with_name(f"server.log.{number}")
        if old.exists():
            old.rename(log.with_name(f"server.log.{number + 1}"))
    log.rename(log.with_name("server.log.1"))
