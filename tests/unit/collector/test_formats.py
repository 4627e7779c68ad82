"""Every format proves itself by its samples, and says what is wrong where it cannot."""

from dataclasses import replace

import pytest

from collector.domain.errors import UnknownName
from collector.domain.versions import ReleaseRange
from collector.formats import format_of, formats
from collector.formats.base import Line, Sample, self_check
from collector.formats.sglang.messages import Stage, field_ranges, known_messages


@pytest.mark.parametrize("log_format", formats(), ids=lambda log_format: log_format.engine)
def test_samples_prove_the_format(log_format):
    assert self_check(log_format) == []


@pytest.mark.parametrize("log_format", formats(), ids=lambda log_format: log_format.engine)
def test_ranges_of_releases_are_ranges(log_format):
    for line in log_format.lines:
        ReleaseRange.parse(line.versions)


def test_self_check_reports_each_fault():
    sglang = format_of("sglang")
    broken = replace(
        sglang,
        lines=(
            *sglang.lines,
            Line("lonely", b"Nobody prints this"),
            Line("greedy", b"The server is fired up"),
            Line("ready", b"Ready again"),
        ),
        samples=(
            *sglang.samples,
            Sample("[2026-01-01 00:00:00] Unheard of", "decode"),
            Sample("[2026-01-01 00:00:00] Using KV cache dtype: auto", "kv-cache-dtype", {"dtype": "fp8"}),
        ),
    )
    problems = "\n".join(self_check(broken))
    assert "two lines are named ready" in problems
    assert "line lonely has no sample" in problems
    assert "claimed by ready, greedy" in problems
    assert "claimed by no line" in problems
    assert "reads dtype as 'auto', not 'fp8'" in problems


def test_unknown_engine_names_the_known_ones():
    with pytest.raises(UnknownName) as error:
        format_of("vlm")
    assert "sglang" in error.value.hint


def test_known_messages_take_the_longest_beginning():
    table = known_messages()
    short = table.find(b"Cuda graph is disabled for prefill server")
    long = table.find(b"Cuda graph is disabled for prefill server when piecewise cuda graph is not enabled.")
    assert (short.stage, str(short.versions)) == (Stage.ARGUMENTS, "0.4.4 to 0.5.5")
    assert str(long.versions) == "0.5.6 to 0.5.12"
    assert table.find(b"An unheard of message") is None


def test_fields_of_the_argument_line_have_releases():
    ranges = field_ranges()
    assert str(ranges["enable_beta_spec"]) == "0.5.3"
    assert ranges["speculative_dflash_block_size"].first is not None
    assert "model_path" not in ranges
