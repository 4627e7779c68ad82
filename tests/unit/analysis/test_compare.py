from __future__ import annotations

import json

import pytest

from analysis.compare import compare
from collector.domain.errors import InputError
from tests.rules.build import bundle

K5 = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 5,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 6,
}
K3 = {**K5, "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}


def test_a_difference_beyond_both_intervals_has_its_word_and_interval() -> None:
    runs = [
        bundle({"args": K5, "windows": {"count": 21, "length": length, "spread": 0.1}}) for length in (2.2, 2.8, 2.81)
    ]
    comparison = compare(runs, ["a", "b", "c"])
    first = {one.key: one for one in comparison.against[0].differences}
    assert first["acceptance_length"].word == "rose"
    assert first["acceptance_length"].change == pytest.approx(0.6, abs=0.02)
    assert first["acceptance_length"].half < 0.2
    assert comparison.ranked_by == "acceptance_length"
    assert [ranked.label for ranked in comparison.ranking][-1] == "a"
    assert comparison.ranking[1].tied == (comparison.ranking[0].label,)
    assert comparison.ranking[2].tied == ()


def test_equal_runs_show_no_difference() -> None:
    given = {"args": K5, "windows": {"count": 21, "length": 2.2, "spread": 0.1, "throughput": 80.0}}
    comparison = compare([bundle(given), bundle(given)], ["a", "b"])
    words = {one.key: one.word for one in comparison.against[0].differences}
    assert words["acceptance_length"] == words["generation_throughput"] == "no difference"
    assert comparison.against[0].effects == ()


def test_other_depths_are_ranked_by_the_conditional_rate() -> None:
    runs = [bundle({"args": args, "windows": {"count": 21, "length": 2.0, "spread": 0.05}}) for args in (K5, K3)]
    comparison = compare(runs, ["deep", "short"])
    words = {one.key: one.word for one in comparison.against[0].differences}
    assert words["acceptance_length"] == "not comparable"
    assert words["conditional_acceptance_rate"] == "rose"
    assert comparison.ranked_by == "conditional_acceptance_rate"
    assert comparison.ranking[0].label == "short"


def test_a_change_that_does_not_run_is_called_out() -> None:
    asked = {"args": {**K5, "speculative_num_draft_tokens": [16, 6], "max_running_requests": [64, 64]}}
    before = {"args": {**K5, "max_running_requests": [32, 32]}}
    effects = {
        effect.what: effect for effect in compare([bundle(before), bundle(asked)], ["a", "b"]).against[0].effects
    }
    assert effects["--speculative-num-draft-tokens"].effect == "no"
    assert effects["--max-running-requests"].effect == "yes"


def test_a_change_of_layers_takes_effect_where_the_captured_layers_differ() -> None:
    target = {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61}
    drafts = [{"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}} for ids in ([2, 30, 58], [1, 29, 57], None)]
    runs = [bundle({"version": "0.5.13", "args": K5, "draft": draft, "target": target}) for draft in drafts]
    against = compare(runs, ["a", "b", "c"]).against
    assert [item.effects[-1].effect for item in against] == ["no", "no"]
    older = [bundle({"version": "0.5.12", "args": K5, "draft": draft, "target": target}) for draft in drafts[:2]]
    assert compare(older, ["a", "b"]).against[0].effects[-1].effect == "yes"


def test_the_document_is_json() -> None:
    runs = [bundle({"args": K5, "windows": {"count": count, "length": 2.2}}) for count in (21, 3)]
    document = json.loads(json.dumps(compare(runs, ["a", "b"]).document(), allow_nan=False))
    assert document["schema"] == "draftscope.comparison/1"
    assert [item["label"] for item in document["runs"]] == ["a", "b"]


def test_one_run_is_no_comparison() -> None:
    with pytest.raises(InputError):
        compare([bundle({"args": K5})], ["a"])
