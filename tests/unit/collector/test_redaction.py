"""No secret leaves the border, and nothing else is lost there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.domain.redaction import MASK, is_secret_name, redact_mapping, redact_text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("ServerArgs(api_key='sk-1', port=1)", f"ServerArgs(api_key='{MASK}', port=1)"),
        ("{'admin_api_key': 'a, b', 'port': 1}", f"{{'admin_api_key': '{MASK}', 'port': 1}}"),
        ('ssl_keyfile_password="it\'s", x=1', f'ssl_keyfile_password="{MASK}", x=1'),
        ("--api-key K1 --model m", f"--api-key {MASK} --model m"),
        ("--admin-api-key=K2 --tp 2", f"--admin-api-key={MASK} --tp 2"),
        ("env HF_TOKEN=abc python", f"env HF_TOKEN={MASK} python"),
        ("docker run -e HF_TOKEN=abc -e A=1", f"docker run -e HF_TOKEN={MASK} -e A=1"),
        ("export OPENAI_API_KEY='a b'", f"export OPENAI_API_KEY='{MASK}'"),
        ("x=api_key=secret", f"x=api_key={MASK}"),
        ("Authorization: Bearer abcdef123", f"Authorization: Bearer {MASK}"),
        ("http://user:pass@host:1/x?api_key=12ab&y=2", f"http://{MASK}@host:1/x?api_key={MASK}&y=2"),
        ("https://ghp_abc@github.com/x", f"https://{MASK}@github.com/x"),
        ("loading with hf_abcdefghijklmnopqrstuvwx", f"loading with {MASK}"),
    ],
)
def test_secrets_are_masked_in_text(text, redacted):
    assert redact_text(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "Decode batch, #running-req: 1, #token: 450, token usage: 0.00, accept len: 1.78",
        "speculative_num_draft_tokens=2, max_total_tokens=None, speculative_token_map='/m'",
        "piecewise_cuda_graph_tokens=[4, 8, 12], cuda_graph_max_bs=8",
        "tokenizer_path='/x', api_key=None, ssl_keyfile='/k'",
        "chunked_prefill_size=-1, max_prefill_tokens=16384, key: value",
        "POST http://10.0.0.7:30000/generate 200",
    ],
)
def test_everything_else_stays(text):
    assert redact_text(text) == text


def test_mappings_are_masked_at_any_depth():
    values = {
        "api_key": "x",
        "admin_api_key": None,
        "max_total_tokens": 4,
        "nested": {"hf_token": "z", "urls": ["http://u:p@h/"]},
        "model_path": "/models/a",
    }
    assert redact_mapping(values) == {
        "api_key": MASK,
        "admin_api_key": None,
        "max_total_tokens": 4,
        "nested": {"hf_token": MASK, "urls": [f"http://{MASK}@h/"]},
        "model_path": "/models/a",
    }


@pytest.mark.parametrize("name", ["api_key", "--api-key", "HF_TOKEN", "ssl_keyfile_password", "client_secret"])
def test_secret_names(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["speculative_num_draft_tokens", "ssl_keyfile", "max_total_tokens", "tokenizer_path"])
def test_harmless_names(name):
    assert not is_secret_name(name)


@given(st.text(st.characters(codec="ascii", exclude_characters="'\"\\"), min_size=8, max_size=40))
def test_a_quoted_secret_never_survives(secret):
    for text in (f"api_key='{secret}', port=1", f"{{'hf_token': '{secret}', 'a': 1}}"):
        redacted = redact_text(text)
        assert MASK in redacted
        assert f"'{secret}'" not in redacted


@given(st.text(max_size=300))
def test_masking_twice_changes_nothing(text):
    once = redact_text(text)
    assert redact_text(once) == once
