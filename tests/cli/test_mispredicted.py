"""A prediction that the engine contradicts is told, not hidden."""

from __future__ import annotations

import pytest

COMMAND = (
    "python -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3 --speculative-draft-model-path /d "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens {asked}\n"
)
LOG = (
    "[2026-01-01 00:00:01] server_args=ServerArgs(model_path='/m', speculative_algorithm='EAGLE3', "
    "speculative_draft_model_path='/d', speculative_num_steps=3, speculative_eagle_topk=1, "
    "speculative_num_draft_tokens={runs})\n"
)


@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize(("asked", "runs", "told"), [(8, 4, False), (8, 8, True), (4, 4, False)])
def test_a_wrong_prediction_is_told(draftscope, tmp_path, form, asked, runs, told):
    (tmp_path / "launch.txt").write_text(COMMAND.format(asked=asked))
    (tmp_path / "input.log").write_text(LOG.format(runs=runs))
    ran = draftscope("diagnose", tmp_path, "--engine-version", "0.5.9", "--format", form)
    assert ("Predicted otherwise than it runs" in ran.out) is told
    assert ("speculative-num-draft-tokens: predicted 4, runs 8" in " ".join(ran.out.split())) is told
