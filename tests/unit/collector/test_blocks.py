"""Lines come out whole and the same, however their bytes came in."""

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from collector.formats import blocks
from collector.formats.blocks import LINE_CAP, BlockCutter


def cut(pieces):
    """(offset, line number, line) of every line, and the cutter."""
    cutter = BlockCutter()
    found = []
    for block in [block for piece in pieces for block in cutter.feed(piece)] + cutter.finish():
        offset, number = block.offset, block.first_line
        for line in block.data.splitlines(keepends=True) if b"\r" not in block.data else block.data.split(b"\n"):
            found.append((offset, number, line.rstrip(b"\n")))
            offset += len(line) if line.endswith(b"\n") else len(line) + 1
            number += 1
    return found, cutter


def pieces_of(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(
    st.binary(max_size=400).map(lambda data: data.replace(b"\r", b"x").replace(b"\x0b", b"\n")),
    st.lists(st.integers(0)),
)
@example(b"a\n\nb", [1, 1, 3])
def test_lines_do_not_depend_on_the_pieces(data, cuts):
    whole, cutter = cut([data])
    parts, other = cut(pieces_of(data, cuts))
    assert parts == whole
    assert cutter.lines == other.lines == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    for offset, _, line in whole:
        assert data[offset : offset + len(line)] == line


def test_lines_longer_than_the_cap_are_dropped_and_counted():
    long = b"x" * (LINE_CAP + 1)
    data = b"first\n" + long + b"\nlast\n" + long
    for size in (1 << 16, 3 << 20, len(data)):
        lines, cutter = cut([data[start : start + size] for start in range(0, len(data), size)])
        assert [(number, line) for _, number, line in lines] == [(1, b"first"), (3, b"last")]
        assert lines[1][0] == len(b"first\n") + len(long) + 1
        assert (cutter.oversize, cutter.lines) == (2, 4)


def test_a_line_of_exactly_the_cap_is_kept():
    data = b"x" * LINE_CAP
    assert [len(line) for _, _, line in cut([data + b"\n" + data])[0]] == [LINE_CAP, LINE_CAP]


def test_blocks_are_bounded():
    cutter = BlockCutter()
    found = cutter.feed(b"line\n" * 1_000_000)
    assert max(len(block.data) for block in found) <= blocks.BLOCK_BYTES + LINE_CAP


def test_a_block_of_very_many_lines_is_cut():
    data = b"\n" * 1_000_000 + b"line\n" * 100_000
    found = BlockCutter().feed(data)
    assert b"".join(block.data for block in found) == data
    assert max(block.data.count(b"\n") for block in found) <= blocks.LARGE
    lines = data.split(b"\n")[:-1]
    assert [(number, line) for block in found for _, number, line in block.lines()] == list(enumerate(lines, 1))
