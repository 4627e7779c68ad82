"""Presets of a llama.cpp router."""

from __future__ import annotations

import pytest

from collector.domain.errors import NoLaunchCommand
from collector.launch import find_launches

PRESETS = """\
version = 1
; what all have
[*]
c = 8192
ngl = 99
flash-attn = on
LLAMA_ARG_CACHE_REUSE = 256

[org/Model-GGUF:Q8_0]
n-gpu-layers = 12
jinja = true
spec-type = draft-mtp,ngram-mod ; both
load-on-startup = true

[plain]
m = /models/plain.gguf
mmap = false
"""


def test_each_section_is_a_command_with_what_all_have():
    first, second = find_launches(PRESETS, "presets.ini")
    assert (first.engine, first.label) == ("llamacpp", "org/Model-GGUF:Q8_0")
    asked = {
        "ctx_size": 8192, "n_gpu_layers": 12, "flash_attn": "on", "jinja": True, "spec_type": "draft-mtp,ngram-mod",
        "hf_repo": "org/Model-GGUF:Q8_0", "cache_reuse": 256,
    }  # fmt: skip
    assert {name: first.requested[name] for name in asked} == asked
    assert first.unknown == ()
    assert first.evidence_of("spec_type").place == "presets.ini:12"
    assert second.label == "plain"
    asked = {"model": "/models/plain.gguf", "n_gpu_layers": 99, "mmap": False}
    assert {name: second.requested[name] for name in asked} == asked


@pytest.mark.parametrize("text", ['[section]\nmodel = "gpt"\n', "[a]\ncolour = red\n", "[Unit]\nDescription=c = 1\n"])
def test_other_files_of_pairs_are_not_taken_for_one(text):
    with pytest.raises(NoLaunchCommand):
        find_launches(text, "a.ini")
