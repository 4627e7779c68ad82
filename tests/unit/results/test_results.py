"""What benchmark tools write is read as they mean it, and used as evidence and as a baseline."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis import diagnose
from analysis.benchmarks import report_contradictions
from collector.bundle import BundleOptions, read_bundle
from collector.domain.errors import InputError, MalformedInput
from collector.domain.findings import Question, State
from collector.domain.results import Latency
from collector.results import read_results, tool_of

GOLDEN = Path(__file__).parents[2] / "golden" / "results"
EXPECTED = yaml.safe_load((GOLDEN / "expected.yaml").read_text("utf-8"))
LAUNCH = (
    "python -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3 --speculative-draft-model-path /d "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)


@pytest.mark.parametrize("name", EXPECTED)
def test_golden(name):
    expected = EXPECTED[name]
    text = (GOLDEN / name).read_text("utf-8")
    found = read_results(text, name)
    assert (found.tool, found.engine) == (expected["tool"], expected["engine"])
    assert list(found.unknown) == expected.get("unknown", [])
    assert tool_of(text) == expected["tool"]
    assert len(found.rows) == len(expected["rows"])
    for row, wanted in zip(found.rows, expected["rows"], strict=True):
        assert row.tool == expected["tool"]
        assert row.evidence.source == name
        for key, value in wanted.items():
            if key == "line":
                assert row.evidence.line == value
            elif key in ("time_to_first_token", "time_per_output_token", "inter_token_latency", "request_latency"):
                stated: Latency = getattr(row, key)
                figures = [stated.mean, stated.p50, stated.p90, stated.p99]
                assert figures == [None if one is None else pytest.approx(one) for one in value], key
            elif key == "acceptance_rate_at":
                assert list(row.acceptance_rate_at) == value
            else:
                assert getattr(row, key) == (pytest.approx(value) if isinstance(value, float) else value), key


def test_every_golden_file_is_expected():
    assert {path.name for path in GOLDEN.iterdir()} == {*EXPECTED, "README.md", "expected.yaml"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bundle_takes_the_golden_file_for_benchmark_results(name, tmp_path):
    shutil.copy(GOLDEN / name, tmp_path / f"results-{name}")
    (tmp_path / "launch.txt").write_text(LAUNCH)
    bundle = read_bundle([tmp_path])
    assert len(bundle.subject.results) == len(EXPECTED[name]["rows"]), [
        (reading.source, reading.kind, reading.notes) for reading in bundle.readings
    ]


@pytest.mark.parametrize("name", ["vllm-serve.txt", "vllm-offline.txt", "llama-speculative.txt"])
def test_what_a_benchmark_printed_into_a_log_is_no_log(name, tmp_path):
    shutil.copy(GOLDEN / name, tmp_path / "run.log")
    assert len(read_bundle([tmp_path / "run.log"]).subject.results) == len(EXPECTED[name]["rows"])


def test_the_rows_of_a_table_in_a_post_say_what_drafts_gain():
    diagnosis = diagnose(read_bundle([GOLDEN / "table.md"]))
    assert diagnosis.crashes == ()
    assert diagnosis.subject.quantities["speedup"].value == pytest.approx(1.25)


def test_a_loss_is_told_where_the_table_states_no_length(tmp_path):
    (tmp_path / "post.md").write_text(
        "| Run | Wall (s) | Accept rate | Avg tok/s |\n|---|--:|--:|--:|\n| Baseline | 72.7 | n/a | ~20.0 |\n"
        "| MTP `n=2` | 78.0 | 0.8 | ~19.0 (slow) |\n| MTP `n=3` | 82.5 | 71% | **17.0** |\n"
    )
    diagnosis = diagnose(read_bundle([tmp_path]))
    assert diagnosis.crashes == ()
    found = rules(diagnosis)["PAY001"]
    assert found["speedup"] == pytest.approx(0.85)
    assert (found["generation_throughput"], found["baseline_throughput"]) == (17.0, 20.0)
    assert diagnosis.subject.quantities["speedup"].value == pytest.approx(0.85)
    assert [row.label for row in diagnosis.subject.record.results] == ["Baseline", "MTP n=2", "MTP n=3"]


@pytest.mark.parametrize(("throughput", "state"), [(250, State.OK), (200, State.CANNOT_TELL), (150, State.PROBLEM)])
def test_whether_it_pays_needs_two_throughputs_alone(throughput, state, tmp_path):
    (tmp_path / "bench.csv").write_text(f"run,throughput\nplain,200\nmtp,{throughput}\n")
    verdict = diagnose(read_bundle([tmp_path])).verdicts[Question.PAYOFF]
    assert verdict.state is state


def rules(diagnosis) -> dict[str, dict]:
    return {finding.rule: finding.values for finding in diagnosis.findings}


@pytest.mark.parametrize(
    ("name", "speedup", "length"),
    [("sglang-serving.jsonl", 1.25, 2.5), ("vllm-sweep-summary.json", 1.25, 2.5), ("vllm-sweep-summary.csv", 1.25, 2.5),
     ("specforge-bench.jsonl", 1.8, 2.6), ("table.csv", 1.25, None)],
)  # fmt: skip
def test_a_report_with_and_without_drafts_says_what_they_gain(name, speedup, length, tmp_path):
    shutil.copy(GOLDEN / name, tmp_path / name)
    diagnosis = diagnose(read_bundle([tmp_path]))
    assert diagnosis.crashes == ()
    figures = diagnosis.subject.quantities
    assert figures["draft_depth"].value == 3
    if length is not None:
        assert figures["acceptance_length"].value == pytest.approx(length)
    assert figures["speedup"].value == pytest.approx(speedup)
    assert diagnosis.payoff.baseline_throughput == pytest.approx(figures["generation_throughput"].value / speedup)


def test_latencies_of_the_report_are_quantities():
    bundle = read_bundle([GOLDEN / "vllm-serve.json"])
    figures = diagnose(bundle).subject.quantities
    assert figures["time_to_first_token_seconds"].value == pytest.approx(0.08)
    assert "p99 0.2 s" in figures["time_to_first_token_seconds"].note
    assert figures["time_per_output_token_seconds"].value == pytest.approx(0.015)
    assert figures["acceptance_rate_at"].value == pytest.approx([0.75, 0.5, 0.25])


def test_a_loss_in_a_report_alone_is_a_finding(tmp_path):
    rows = [json.loads(line) for line in (GOLDEN / "sglang-serving.jsonl").read_text().splitlines()]
    deep = {
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 7,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 8,
    }
    rows[1] |= {"output_throughput": 500.0, "accept_length": 1.5, "duration": 32.0, "server_info": deep}
    (tmp_path / "bench.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = rules(diagnose(read_bundle([tmp_path])))
    assert found["PAY001"]["speedup"] == pytest.approx(0.625)
    assert found["PAY003"]["best_draft_depth"] < 7


def test_time_per_token_will_do_where_no_throughput_is_stated(tmp_path):
    (tmp_path / "bench.csv").write_text(
        "run,batch_size,steps,topk,num_draft_tokens,accept_length,tpot_ms\nplain,1,0,0,0,,10\neagle,1,3,1,4,2.0,16\n"
    )
    diagnosis = diagnose(read_bundle([tmp_path]))
    assert diagnosis.payoff.speedup == pytest.approx(0.625)
    assert "PAY001" in rules(diagnosis)


def test_a_log_wins_over_a_report_and_the_report_gives_its_baseline(tmp_path):
    case = Path(__file__).parents[2] / "cases" / "qwen3-moe-slower"
    for name in ("input.log", "launch.txt", "bench.csv", "target_config.json"):
        shutil.copy(case / name, tmp_path / name)
    record = diagnose(read_bundle([tmp_path])).subject.record
    assert {window.origin for window in record.windows} == {"log"}


def test_reports_are_compared(tmp_path):
    from analysis.compare import compare

    first, second = tmp_path / "a", tmp_path / "b"
    for folder, throughput in ((first, 500.0), (second, 550.0)):
        folder.mkdir()
        document = json.loads((GOLDEN / "vllm-serve.json").read_text())
        (folder / "bench.json").write_text(
            json.dumps({**document, "output_throughput": throughput, "duration": 16000 / throughput})
        )
    comparison = compare([read_bundle([first]), read_bundle([second])], ["a", "b"])
    keys = {item.key: item for item in comparison.against[0].differences}
    assert keys["generation_throughput"].change == pytest.approx(50)
    assert keys["time_per_output_token_seconds"].change == pytest.approx(0)


def test_results_are_stored_and_judged_alike(sqlite_database, tmp_path):
    from collector.ingest import ingest, load_for_judgement

    shutil.copy(GOLDEN / "vllm-sweep-summary.json", tmp_path / "bench.json")
    (tmp_path / "launch.txt").write_text(LAUNCH.replace("sglang.launch_server", "sglang.launch_server"))
    run_id = ingest(sqlite_database, [tmp_path]).subjects[0]
    with sqlite_database.reading() as connection:
        stored = load_for_judgement(connection, run_id)
    read = read_bundle([tmp_path])
    assert stored.subject.results == read.subject.results
    assert diagnose(stored).subject.quantities == diagnose(read).subject.quantities


@pytest.mark.parametrize(
    "text",
    [
        '{"benchmarks": [{"metrics": {"output_tokens_per_second": 3}}]}',
        '{"output_throughput": "fast", "model_id": 1, "tokenizer_id": 2}',
        '{"output_throughput": 1e400, "model_id": 1, "tokenizer_id": 2, "spec_decode_num_drafts": -4}',
        '{"output_throughput": ' + "9" * 5000 + ', "model_id": 1, "tokenizer_id": 2}',
        '{"output_throughput": 1, "model_id": 1, "tokenizer_id": 2, "spec_decode_per_position_acceptance_rates": [7, "x"]}',
        '{"mtbench": [{"batch_size": 1, "steps": "three", "metrics": [7, {}]}]}',
        '{"output_token_throughput": {"avg": null}, "request_latency": {"unit": 5}}',
        "[" * 5000,
        '{"a": ' * 5000,
        "subset,num_drafts,num_draft_tokens,num_accepted_tokens\nqa,many,few,none\n",
        "Metric,avg\nOutput Token Throughput (tokens/sec),fast\nRequest Count,x\n",
    ],
)
def test_hostile_results_are_read_for_what_they_are_or_refused(tmp_path, text):
    (tmp_path / "bench.json").write_text(text)
    (tmp_path / "launch.txt").write_text(LAUNCH)
    bundle = read_bundle([tmp_path], BundleOptions())
    assert diagnose(bundle).crashes == ()
    for row in bundle.subject.results:
        assert row.throughput is None or row.throughput > 0


def test_what_nobody_wrote_is_named():
    with pytest.raises(MalformedInput) as caught:
        read_results('{"x": 1}', "bench.json")
    assert caught.value.where.startswith("bench.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "benchmarks",
                        "metrics",
                        "output_throughput",
                        "model_id",
                        "tokenizer_id",
                        "config",
                        "steps",
                        "batch_size",
                        "successful",
                        "x",
                        "output_tokens_per_second",
                        "spec_decode_num_drafts",
                        "output_token_throughput",
                        "avg",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_read_or_refused(document):
    tool = "none"
    try:
        tool = read_results(json.dumps(document), "bench.json").tool
    except InputError:
        return
    assert isinstance(tool, str)


@pytest.mark.parametrize(
    ("columns", "figures", "contradicted"),
    [
        ("steps,p0,p1", "2,0.8,0.6", True),  # 1 + 0.8 + 0.6 = 2.4
        ("steps,p0,p1", "2,0.9,0.7", False),
        ("steps,p0", "3,0.8", False),  # the other positions are not told
        ("p0", "0.8", False),
        ("p0,p1", "0.99,0.98", True),  # these two alone give more
    ],
)
def test_positions_that_are_not_all_told_give_a_lower_bound(columns, figures, contradicted):
    rows = read_results(f"run,accept_length,{columns}\non,2.6,{figures}\n", "bench.csv").rows
    assert bool(list(report_contradictions(rows))) is contradicted
