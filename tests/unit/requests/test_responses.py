"""Responses of engines are read for what they count, whatever stands around them and however they end."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.requests import holds_responses, read_responses
from collector.requests.base import instant
from collector.requests.reader import LONGEST_LINE
from tests.golden.responses.expected import FOLDER, as_read, files

EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
META = {
    "id": "a1",
    "prompt_tokens": 12,
    "completion_tokens": 20,
    "cached_tokens": 4,
    "spec_verify_ct": 8,
    "spec_num_correct_drafts": 12,
    "spec_num_proposed_drafts": 24,
    "spec_correct_drafts_histogram": [2, 2, 2, 2],
    "e2e_latency": 0.5,
}
SPECULATIVE = {
    "num_spec_steps": 4,
    "num_accepted_draft_tokens": 6,
    "num_draft_tokens": 12,
    "num_spec_tokens": 3,
    "acceptance_histogram": [1, 1, 1, 1],
}
TIMINGS = {"cache_n": 2, "prompt_n": 10, "predicted_n": 9, "predicted_ms": 16.0, "draft_n": 12, "draft_n_accepted": 4}
NATIVE = {"text": "…", "meta_info": META}
CHAT = {"id": "chatcmpl-1", "object": "chat.completion", "usage": {"prompt_tokens": 7, "completion_tokens": 11}}


def read(*documents, end="\n"):
    return read_responses(["".join(json.dumps(document) + end for document in documents).encode()], "some.jsonl")


def one(document):
    (result,) = read(document).results
    return result


@pytest.mark.parametrize("name", files())
def test_golden(name):
    assert as_read(name) == EXPECTED[name]


def _all_of(value, key):
    """Every value under a key, anywhere."""
    if isinstance(value, dict):
        yield from ([value[key]] if value.get(key) is not None else [])
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _all_of(inner, key)


@pytest.mark.parametrize(
    ("name", "steps", "accepted", "drafted"),
    [
        ("sglang/0.5.9-eagle3-tree.json", "spec_verify_ct", "spec_accept_token_num", "spec_draft_token_num"),
        ("sglang/0.5.11-eagle3.json", "spec_verify_ct", "spec_accepted_drafts", "spec_proposed_drafts"),
        ("sglang/0.5.19-ngram.json", "spec_verify_ct", "spec_num_correct_drafts", "spec_num_proposed_drafts"),
        ("sglang/0.5.23-eagle3.json", "spec_verify_ct", "spec_num_correct_drafts", "spec_num_proposed_drafts"),
        ("vllm/eagle3-mixed-temperature.jsonl", "num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens"),
        ("llamacpp/ngram-map-k.jsonl", None, "draft_n_accepted", "draft_n"),
    ],
)
def test_totals_are_those_of_the_responses(name, steps, accepted, drafted):
    text = (FOLDER / name).read_text("utf-8")
    documents = json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    found = [r for r in read_responses([text.encode()], name).results if r.speculated]
    if steps:
        assert sum(r.verify_steps for r in found) == sum(_all_of(documents, steps))
        assert all(sum(r.histogram) == r.verify_steps for r in found)
    assert sum(r.accepted_tokens for r in found) == sum(_all_of(documents, accepted))
    assert sum(r.drafted_tokens for r in found) == sum(_all_of(documents, drafted))


# ---- forms


def test_native_sglang():
    result = one({"route": "chat", "sampling_params": {"temperature": 0.7}, "answer": NATIVE, "t": 1795976222.5})
    assert (result.engine, result.route, result.temperature, result.at) == ("sglang", "chat", 0.7, 1795976222.5)
    assert (result.verify_steps, result.accepted_tokens, result.drafted_tokens) == (8, 12, 24)
    assert (result.prompt_tokens, result.cached_tokens, result.output_tokens) == (12, 4, 20)
    assert (result.histogram, result.latency_seconds) == ((2, 2, 2, 2), 0.5)


def test_choices_with_meta_info():
    choices = [{"index": 0, "meta_info": META}, {"index": 1, "meta_info": META | {"completion_tokens": 21}}]
    found = read({**CHAT, "created": 1795976222, "choices": choices})
    assert [result.output_tokens for result in found.results] == [20, 21]
    assert {result.at for result in found.results} == {1795976222.0}


@pytest.mark.parametrize(
    "document",
    [
        [NATIVE],
        {"status": 200, "answer": NATIVE},
        {"custom_id": "x", "response": {"status_code": 200, "body": NATIVE}},
        {"request": {"text": "…", "sampling_params": {"temperature": 0.0}}, "responses": [NATIVE]},
    ],
)
def test_what_stands_around_a_response_does_not_change_it(document):
    assert one(document).key == one(NATIVE).key


def test_a_document_over_several_lines_and_documents_one_after_another():
    other = {**NATIVE, "meta_info": META | {"id": "a2"}}
    pretty = json.dumps([NATIVE, other], indent=2)
    one_after_another = json.dumps(NATIVE, indent=2) + "\n" + json.dumps(other, indent=2)
    rows = f"[\n{json.dumps(NATIVE)},\n{json.dumps(other)}\n]\n"
    keys = [result.key for result in read(NATIVE, other).results]
    for text in (pretty, one_after_another, rows, json.dumps([NATIVE, other])):
        found = read_responses([text.encode()], "some.json")
        assert [result.key for result in found.results] == keys
        assert not found.foreign + found.broken
        assert not found.cut_off


def test_of_a_streamed_answer_the_last_part_counts():
    counts = [(1, 0, 0), (9, 4, 4), (20, 8, 11)]
    parts = [
        {"meta_info": {"id": "a1", "completion_tokens": n, "spec_verify_ct": s, "spec_num_correct_drafts": a}}
        for n, s, a in counts
    ]
    text = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
    found = read_responses([text.encode()], "stream.txt")
    assert [(r.output_tokens, r.accepted_tokens) for r in found.results] == [(20, 11)]
    assert (found.parts, found.repeated, found.broken, found.foreign) == (2, 0, [], [])


def test_vllm():
    found = one(
        {**CHAT, "metrics": {"speculative_decoding": SPECULATIVE, "queue_time_ms": 2.0, "time_to_first_token_ms": 30.0}}
    )
    assert (found.engine, found.verify_steps, found.accepted_tokens, found.drafted_tokens) == ("vllm", 4, 6, 12)
    assert (found.prompt_tokens, found.output_tokens, found.depth) == (7, 11, 3)
    assert found.first_token_seconds == pytest.approx(0.032)


def test_vllm_without_drafts_for_one_request():
    found = one({**CHAT, "metrics": {"speculative_decoding": None}})
    assert not found.speculated
    assert found.output_tokens == 11


def test_llamacpp():
    settings = {"temperature": 0.8}
    found = one({"content": "…", "stop": True, "timings": TIMINGS, "generation_settings": settings})
    assert (found.accepted_tokens, found.drafted_tokens, found.temperature) == (4, 12, 0.8)
    assert (found.prompt_tokens, found.cached_tokens, found.output_tokens) == (12, 2, 9)
    assert found.verify_steps is None  # it does not say how many steps verified a draft
    assert found.token_seconds == pytest.approx(0.002)


def test_llamacpp_without_draft_figures_drafted_nothing():
    silent = {key: value for key, value in TIMINGS.items() if not key.startswith("draft")}
    found = one({**CHAT, "timings": silent})
    assert (found.verify_steps, found.accepted_tokens, found.drafted_tokens) == (0, 0, 0)


def test_parts_of_an_answer_of_llamacpp_say_nothing_yet():
    assert not read({"content": "a", "stop": False, "timings": TIMINGS}).results


# ---- definitions by release


def test_without_counts_the_tokens_after_the_first_tell_what_was_accepted():
    # up to 0.5.4; the first token comes from the prompt, and each step adds one of the target's own
    found = one({"meta_info": {"completion_tokens": 64, "spec_verify_ct": 26, "spec_accept_rate": 0.0}})
    assert (found.verify_steps, found.accepted_tokens, found.histogram) == (26, 37, None)


def test_counts_that_are_one_too_low_a_step_are_corrected():
    # n-gram drafting up to 0.5.12: 8 steps that accepted 12 tokens are counted as 4
    found = one(
        {
            "meta_info": META
            | {"completion_tokens": 21, "spec_num_correct_drafts": 4, "spec_correct_drafts_histogram": None}
        }
    )
    assert found.accepted_tokens == 12


def test_a_retraction_makes_another_token_without_a_step():
    found = one({"meta_info": META | {"completion_tokens": 26, "num_retractions": 5}})
    assert (found.accepted_tokens, found.histogram) == (12, (2, 2, 2, 2))


# ---- what is wrong


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"meta_info": META | {"spec_verify_ct": -1}}, "spec_verify_ct is -1"),
        ({"meta_info": META | {"spec_verify_ct": 8.5}}, "spec_verify_ct is 8.5"),
        ({"meta_info": META | {"spec_verify_ct": True}}, "spec_verify_ct is True"),
        ({"meta_info": META | {"completion_tokens": float("nan")}}, "completion_tokens is nan"),
        ({"meta_info": META | {"spec_num_proposed_drafts": 11}}, "12 draft tokens accepted of 11"),
        ({"meta_info": META | {"spec_correct_drafts_histogram": [3, 2, 2, 2]}}, "9 steps, the response counts 8"),
        ({"meta_info": META | {"spec_correct_drafts_histogram": [1, 3, 2, 2]}}, "13 accepted tokens"),
        ({"meta_info": META | {"spec_correct_drafts_histogram": "many"}}, 'histogram is "many"'),
        ({"meta_info": {"spec_verify_ct": 3}}, "nothing tells what they accepted"),
        ({"metrics": {"speculative_decoding": SPECULATIVE | {"num_spec_tokens": 2}}}, "accepted 3 draft tokens"),
        ({"metrics": {"speculative_decoding": SPECULATIVE | {"num_spec_steps": 10**400}}}, "num_spec_steps is 1000"),
        ({"timings": TIMINGS | {"draft_n_accepted": 13}}, "13 draft tokens accepted of 12"),
    ],
)
def test_impossible_figures_are_refused(document, what):
    found = read(NATIVE, {**document, "id": "other"})
    assert len(found.results) == 1
    (error,) = found.refused
    assert what in error.what
    assert error.where == "some.jsonl, line 2"
    assert error.why
    assert "with figures that are not possible" in " ".join(found.notes())


def test_what_is_no_response_is_counted_and_told():
    text = (
        json.dumps(NATIVE) + "\n" + json.dumps(NATIVE) + '\n{"error": "no such model"}\nnot JSON\n{"meta_info": {"compl'
    )
    found = read_responses([text.encode()], "some.jsonl")
    assert (len(found.results), found.repeated, found.foreign, found.broken, found.cut_off) == (1, 1, [3], [4], True)
    told = " / ".join(found.notes())
    assert "1 response there before, counted once" in told
    assert "1 line without figures of a response (first: line 3)" in told
    assert "1 line no JSON (first: line 4)" in told
    assert "the last line is cut off" in told
    reading = found.reading()
    assert (reading.lines, reading.understood, reading.unread) == (5, 2, 2)


def test_a_list_that_is_cut_off_keeps_what_comes_before():
    text = json.dumps([NATIVE, {**NATIVE, "meta_info": META | {"id": "a2"}}], indent=1)
    found = read_responses([text[:-30].encode()], "some.json")
    assert len(found.results) == 1
    assert found.cut_off


def test_a_line_over_the_cap_is_dropped_and_told():
    long = b'{"meta_info": "' + b"x" * LONGEST_LINE + b'"}'
    blocks = [long[i : i + (1 << 21)] for i in range(0, len(long), 1 << 21)]
    found = read_responses([*blocks, b"\n", json.dumps(NATIVE).encode()], "some.jsonl")
    assert (len(found.results), found.oversize, found.lines) == (1, 1, 2)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1795976222.5, 1795976222.5),
        (1795976222500, 1795976222.5),
        ("2026-11-29T18:17:02.5Z", 1795976222.5),
        ("2026-11-29T19:17:02.5+01:00", 1795976222.5),
        (3.6445, None),
        (True, None),
        ("soon", None),
        (10**400, None),
        (-1.0, None),
    ],
)
def test_instants(value, seconds):
    assert instant(value) == seconds


# ---- properties

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "meta_info",
                    "metrics",
                    "timings",
                    "speculative_decoding",
                    "id",
                    "request",
                    "temperature",
                    "x",
                    *META,
                    *TIMINGS,
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_at_all_are_read(blocks):
    found = read_responses(blocks, "x")
    assert found.lines <= b"".join(blocks).count(b"\n") + 1


@given(ANY_JSON)
def test_any_document_at_all_is_read(document):
    found = read_responses([json.dumps(document).encode()], "x")
    for result in found.results:
        assert result.accepted_tokens is None or result.accepted_tokens >= 0
        assert result.drafted_tokens is None or (result.accepted_tokens or 0) <= result.drafted_tokens


LINES = b"".join((FOLDER / "vllm/eagle3-mixed-temperature.jsonl").read_bytes().splitlines(keepends=True)[:4])
LISTED = (FOLDER / "sglang/0.4.6.post5-eagle3.json").read_bytes()


@given(st.sampled_from([LINES, LISTED]), st.lists(st.integers(1, 5000), max_size=8))
def test_how_bytes_arrive_does_not_matter(content, sizes):
    blocks, at = [], 0
    for size in sizes:
        blocks.append(content[at : at + size])
        at += size
    assert read_responses([*blocks, content[at:]], "x").results == read_responses([content], "x").results


@given(st.sampled_from([LINES, LISTED]), st.data())
def test_what_is_cut_off_anywhere_gives_the_responses_before_it(content, data):
    whole = read_responses([content], "x").results
    part = read_responses([content[: data.draw(st.integers(0, len(content)))]], "x")
    assert part.results == whole[: len(part.results)]


@given(st.permutations(LINES.splitlines(keepends=True)), st.integers(0, 4))
def test_repeated_and_shuffled_lines_give_each_response_once(lines, again):
    found = read_responses([b"".join([*lines, *lines[:again]])], "x")
    assert {r.key for r in found.results} == {r.key for r in read_responses([LINES], "x").results}
    assert found.repeated == again


def test_what_a_file_begins_with_tells_responses():
    assert holds_responses(LINES[:6000])
    assert holds_responses(LISTED[:6000])
    log = (Path(FOLDER).parent / "logs" / "sglang" / "0.5.11-eagle3" / "log.txt").read_bytes()
    assert not holds_responses(log)


def test_the_line_of_the_documentation_is_read():
    page = (Path(__file__).parents[3] / "docs" / "requests.md").read_text("utf-8")
    (line,) = re.findall(r"```json\n(.*)\n```", page)
    (result,) = read_responses([line.encode()], "docs/requests.md").results
    assert (result.route, result.temperature, result.at, result.verify_steps) == ("chat", 0.7, 1795976222.0, 24)
