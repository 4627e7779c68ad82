"""Acceptance over requests, traffic by what the requests are, and what a change of the mixture does."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from analysis import diagnose
from analysis.case import Case
from analysis.causes.base import STRONG
from analysis.causes.facts import Facts
from analysis.causes.temperature import SamplingTemperature
from analysis.diagnosis import schema
from analysis.drafting import Drafting
from analysis.figures import pooled_requests
from analysis.promise import promise_of
from analysis.theory.intervals import request_interval
from analysis.traffic import NOT_STATED, OTHERS, Traffic
from collector.bundle import BundleOptions, read_bundle
from collector.domain.drafts import Measure, Validation
from collector.domain.errors import InputError
from collector.domain.findings import Severity
from collector.domain.requests import RequestResult
from collector.domain.runs import Bundle, RunRecord
from dashboard.formats import find_format
from tests.golden.responses.expected import FOLDER

LOGS = Path(FOLDER).parent / "logs"
MIXED = FOLDER / "vllm" / "eagle3-mixed-temperature.jsonl"
CHAIN = Drafting("eagle3", known=True, depth=3, width=4, topk=1)


def requests(count, *, length, steps=40, **told):
    """Requests with about this acceptance length, spread a little around it."""
    made = []
    for number in range(count):
        accepted = round((length - 1) * steps) + (-1) ** number * (number % 3)
        made.append(
            RequestResult("sglang", f"{told}-{number}", verify_steps=steps, accepted_tokens=accepted, drafted_tokens=3 * steps,
                          output_tokens=steps + accepted + 1,
                depth=3, **told)
        )  # fmt: skip
    return made


def traffic(*groups):
    return Traffic([item for group in groups for item in group], CHAIN, stand=True)


def judged(*groups, previous=()):
    def run(results):
        return RunRecord("sglang", "responses.jsonl", requests=list(results))

    subject = run([item for group in groups for item in group])
    return diagnose(Bundle(subject, run(previous) if previous else None))


def test_the_interval_is_that_of_requests_and_the_totals_are_exact():
    results = requests(30, length=2.4)
    pooled = pooled_requests(results, CHAIN)
    accepted, steps = [r.accepted_tokens for r in results], [r.verify_steps for r in results]
    assert (pooled.accepted_tokens, pooled.verify_steps, pooled.windows) == (sum(accepted), sum(steps), 30)
    assert pooled.interval == request_interval(accepted, steps)
    assert pooled.interval.method == "jackknife"


def test_histograms_give_the_shares_by_position():
    results = [
        RequestResult("vllm", "a", verify_steps=10, accepted_tokens=14, histogram=(2, 4, 2, 2)),
        RequestResult("vllm", "b", verify_steps=10, accepted_tokens=2, histogram=(8, 2)),
    ]
    assert pooled_requests(results, CHAIN).prefix == pytest.approx((10 / 20, 4 / 20, 2 / 20))


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), min_size=1, max_size=8))
def test_length_is_one_and_the_sum_of_the_shares(histograms):
    results = [
        RequestResult("vllm", str(number), verify_steps=sum(h), accepted_tokens=sum(i * n for i, n in enumerate(h)), histogram=tuple(h))
        for number, h in enumerate(histograms)
    ]  # fmt: skip
    pooled = pooled_requests(results, CHAIN)
    if pooled is None:
        assert not sum(map(sum, histograms))
        return
    assert 1 + math.fsum(pooled.prefix) == pytest.approx(pooled.length)
    assert list(pooled.prefix) == sorted(pooled.prefix, reverse=True)


def test_traffic_by_temperature_route_and_length():
    told = traffic(
        requests(20, length=2.8, temperature=0.0, route="chat", prompt_tokens=100),
        requests(20, length=1.9, steps=80, temperature=1.0, route="batch", prompt_tokens=9_000),
    )
    found = {(item.by, item.value): item for item in told.strata}
    assert found["temperature", "0"].pooled.length == pytest.approx(2.8, abs=0.02)
    assert found["temperature", "1"].pooled.length == pytest.approx(1.9, abs=0.02)
    assert found["temperature", "1"].share == pytest.approx(2 / 3)
    assert {value for by, value in found if by == "route"} == {"chat", "batch"}
    assert [value for by, value in found if by == "prompt_tokens"] == ["under 512", "8,192 to 32,767"]
    assert told.temperatures == pytest.approx({0.0: 1 / 3, 1.0: 2 / 3})
    # the mean of all is the pooled one, not the mean of the two
    assert told.pooled.length == pytest.approx(1 + (1.8 + 2 * 0.9) / 3, abs=0.02)


@given(
    st.lists(
        st.builds(
            lambda steps, accepted, temperature, route, number: RequestResult(
                "sglang", str(number), temperature=temperature, route=route, verify_steps=steps, accepted_tokens=accepted
            ),
            st.integers(1, 90), st.integers(0, 90), st.sampled_from([None, 0.0, 0.7]), st.sampled_from(["", "a", "b"]),
            st.integers(),
        ),
        min_size=1, max_size=20,
    )
)  # fmt: skip
def test_strata_add_up_to_the_whole(results):
    told = traffic(results)
    for by in {item.by for item in told.strata}:
        strata = [item for item in told.strata if item.by == by]
        assert sum(item.requests for item in strata) == len(results)
        assert math.fsum(item.share for item in strata) == pytest.approx(1)
        assert sum(item.pooled.accepted_tokens for item in strata) == told.pooled.accepted_tokens


def test_many_routes_are_put_together_and_unknown_ones_named():
    groups = [requests(2, length=2.0, steps=10 + number, route=f"/route/{number}") for number in range(12)]
    values = [item.value for item in traffic(*groups, requests(2, length=2.0)).strata if item.by == "route"]
    assert len(values) == 10
    assert values[-2:] == [OTHERS, NOT_STATED]
    assert "/route/11" in values


def test_a_temperature_that_some_do_not_state_is_not_known():
    assert traffic(requests(3, length=2.0, temperature=0.0), requests(3, length=2.0)).temperatures == {}


@pytest.mark.parametrize(("name", "greedy", "sampled"), [("llamacpp/draft-near-drift.jsonl", 0.60, 0.41)])
def test_where_steps_are_not_counted_rates_are_given_by_temperature(name, greedy, sampled):
    run = diagnose(read_bundle([], BundleOptions(responses=(FOLDER / name,)))).subject
    rates = {
        item.value: item.quantities["draft_acceptance_rate"] for item in run.traffic.strata if item.by == "temperature"
    }
    assert rates["0"].value == pytest.approx(greedy, abs=0.01)
    assert rates["1.5"].value == pytest.approx(sampled, abs=0.01)
    assert rates["1.5"].high < rates["0"].low
    assert run.pooled is None
    assert run.method == "unknown"


# ---- what a run is judged by


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log.txt").write_bytes((LOGS / "sglang" / "0.5.11-eagle3" / "log.txt").read_bytes())
    return tmp_path


def responses(count):
    document = json.loads((FOLDER / "sglang" / "0.5.11-eagle3.json").read_text("utf-8"))[0]
    metas = ({**document["answer"]["meta_info"], "id": str(number)} for number in range(count))
    return "".join(json.dumps({"answer": {"meta_info": meta}}) + "\n" for meta in metas)


@pytest.mark.parametrize(("count", "stand"), [(4, False), (10, True)])
def test_a_handful_of_answers_beside_a_log_does_not_stand_for_it(folder, count, stand):
    log = diagnose(read_bundle([folder])).subject.pooled
    (folder / "responses.jsonl").write_text(responses(count))
    run = diagnose(read_bundle([folder])).subject
    assert run.traffic.stand is stand
    assert run.pooled.length == (pytest.approx(1 + 38 / 25) if stand else log.length)


def test_few_answers_that_were_asked_for_are_judged(folder):
    file = folder / "kept.txt"
    file.write_text(responses(4))
    run = diagnose(read_bundle([folder / "log.txt"], BundleOptions(responses=(file,)))).subject
    assert run.quantities["verify_steps"].value == 100
    assert run.quantities["acceptance_length"].value == pytest.approx(1 + 38 / 25)
    assert "fewer than 10 requests" in run.quantities["acceptance_length"].note


def test_responses_alone_are_a_run():
    diagnosis = diagnose(read_bundle([], BundleOptions(responses=(MIXED,))))
    run = diagnosis.subject
    assert (run.record.engine, run.depth, run.width) == ("vllm", 3, 4)
    assert run.pooled.accepted_per_step == pytest.approx(690 / 1217)
    assert diagnosis.judged
    document = diagnosis.document()
    jsonschema.validate(document, schema())
    told = document["runs"][0]["requests"]
    assert (told["count"], told["with_verify_steps"], told["judged_by"]) == (20, 20, True)
    assert [item["value"] for item in told["strata"] if item["by"] == "temperature"] == ["0", "0.7"]
    for form in ("text", "markdown"):
        report = find_format(form).diagnosis(diagnosis, Console(width=100))
        assert "Temperature 0.7" in report
        assert "20 requests. Acceptance is theirs." in report


def test_responses_of_another_engine_are_told_not_used(folder):
    bundle = read_bundle([folder], BundleOptions(responses=(MIXED,)))
    assert bundle.subject.requests == []
    assert "20 of its responses are not of sglang" in " ".join(bundle.problems)


def test_responses_of_the_run_before_are_its_own(tmp_path):
    (tmp_path / "log.txt").write_bytes((LOGS / "sglang" / "0.5.11-restarts" / "log.txt").read_bytes())
    before = read_bundle([tmp_path]).previous
    line = json.loads(responses(1).strip()) | {"at": (before.started_at + before.ended_at) / 2}
    line["answer"]["meta_info"] = {k: v for k, v in line["answer"]["meta_info"].items() if not k.endswith("_ts")}
    (tmp_path / "responses.jsonl").write_text(json.dumps(line))
    bundle = read_bundle([tmp_path])
    assert (len(bundle.previous.requests), len(bundle.subject.requests)) == (1, 0)
    assert "came from the run before" in " ".join(bundle.problems)


def test_a_file_without_a_response_says_what_is_wanted(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text('{"choices": []}\n')
    with pytest.raises(InputError) as refused:
        read_bundle([], BundleOptions(responses=(file,)))
    assert "no response with figures of speculation" in refused.value.what
    assert "--per-request-spec-decode-metrics" in refused.value.hint


# ---- rules


def test_a_fall_that_the_mixture_explains_is_a_note():
    before = requests(40, length=2.8, temperature=0.0) + requests(10, length=1.8, temperature=1.0)
    now = requests(10, length=2.8, temperature=0.0), requests(40, length=1.8, temperature=1.0)
    (found,) = [item for item in judged(*now, previous=before).findings if item.rule == "ACC003"]
    assert found.severity is Severity.INFO
    assert found.values["mixture"] == "temperature"
    assert found.values["lost_to_mixture"] == pytest.approx(0.6, abs=0.02)
    assert "Another mixture of temperatures explains it" in found.why


def test_a_fall_inside_the_kinds_of_traffic_is_none_of_the_mixture():
    before = requests(30, length=2.8, route="a") + requests(30, length=2.4, route="b")
    now = requests(30, length=2.2, route="a"), requests(30, length=1.8, route="b")
    (found,) = [item for item in judged(*now, previous=before).findings if item.rule == "ACC003"]
    assert found.severity is Severity.WARNING
    assert abs(found.values["lost_to_mixture"]) < 0.02


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 80)), min_size=4, max_size=4),
)
def test_mixture_and_rest_add_up_to_the_fall(counts):
    runs = [
        traffic([RequestResult("sglang", f"{i}", route="ab"[i], verify_steps=n, accepted_tokens=a) for i, (n, a) in enumerate(part)])
        for part in (counts[:2], counts[2:])
    ]  # fmt: skip
    shift = runs[1].shift_from(runs[0])
    fall = runs[0].pooled.accepted_per_step - runs[1].pooled.accepted_per_step
    assert shift.from_mixture + shift.within == pytest.approx(fall, abs=1e-9)


def test_what_is_promised_allows_for_the_temperatures_of_the_traffic():
    validation = Validation(0.7, measure=Measure.CONDITIONAL)
    greedy, sampled = (promise_of(validation, 3, temperature) for temperature in (0.0, 1.0))
    mixed = promise_of(validation, 3, {0.0: 0.25, 1.0: 0.75})
    assert mixed.margin == pytest.approx(np.average([greedy.margin, sampled.margin], weights=[1, 3]))
    told = judged(requests(20, length=2.2, temperature=1.0)).subject
    record = replace(told.record, validation=validation)
    assert diagnose(Bundle(record)).subject.value("realistic_acceptance_length") == pytest.approx(
        sampled.realistic_length
    )


@pytest.mark.parametrize(
    ("sampled", "weight", "text"),
    [
        (1.3, STRONG, "length 1.90 of greedy requests, 1.30 of sampled ones"),
        (1.9, -STRONG, "length 1.90 of greedy requests, 1.90 of sampled ones: no difference is seen"),
    ],
)
def test_sampling_is_weighed_by_what_it_costs_here(sampled, weight, text):
    run = [*requests(20, length=1.9, temperature=0.0), *requests(20, length=sampled, temperature=1.0)]
    facts = Facts(Case(Bundle(RunRecord("sglang", "r", requests=run))), [])
    assert (text, weight) in [(reason.text, reason.weight) for reason in SamplingTemperature().weigh(facts)]


@pytest.mark.parametrize("fires", [True, False])
def test_answers_without_drafts_of_a_server_that_should_draft(tmp_path, fires):
    responses = (FOLDER / "llamacpp" / "draft-near-drift.jsonl").read_text("utf-8")
    if fires:
        responses = re.sub(r', "draft_n": \d+, "draft_n_accepted": \d+', "", responses)
    (tmp_path / "responses.jsonl").write_text(responses)
    (tmp_path / "launch.txt").write_text("llama-server -m target.gguf -md draft.gguf --spec-type draft-simple")
    diagnosis = diagnose(read_bundle([tmp_path]))
    assert any(finding.rule == "FLG006" for finding in diagnosis.findings) is fires
