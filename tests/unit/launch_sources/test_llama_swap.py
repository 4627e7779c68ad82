"""Launch commands in configurations of llama-swap."""

from __future__ import annotations

import pytest

from collector.domain.errors import NoLaunchCommand
from collector.launch import find_launches

CONFIG = """\
healthCheckTimeout: 300
macros:
  "server": >
    /usr/local/bin/llama-server --host 0.0.0.0
    --port ${PORT}
  "draft": "--spec-type draft-simple -md /models/d.gguf"
models:
  "with heads":
    cmd: |
      # the model's own layers draft
      /app/llama-server
      --port ${PORT}
      -m /models/m.gguf
      --spec-type draft-mtp --spec-draft-n-max 3
    env:
      - "LLAMA_ARG_N_PARALLEL=2"
    ttl: 300
  with-draft:
    cmd: ${server} -m /models/q.gguf ${draft}
  other:
    proxy: http://127.0.0.1:9000
"""


def test_each_model_is_a_command_whose_lines_belong_together():
    heads, draft = find_launches(CONFIG, "config.yaml")
    assert (heads.engine, heads.label) == ("llamacpp", "with heads")
    asked = {"model": "/models/m.gguf", "spec_type": "draft-mtp", "spec_draft_n_max": 3, "parallel": 2}
    assert {name: heads.requested[name] for name in asked} == asked
    assert heads.evidence_of("spec_type").place == "config.yaml:14"
    assert draft.label == "with-draft"
    asked = {
        "model": "/models/q.gguf",
        "spec_type": "draft-simple",
        "spec_draft_model": "/models/d.gguf",
        "host": "0.0.0.0",
    }
    assert {name: draft.requested[name] for name in asked} == asked


def test_other_files_with_models_are_not_taken_for_one():
    with pytest.raises(NoLaunchCommand):
        find_launches("models:\n  - name: a\n    path: b\n", "m.yaml")
