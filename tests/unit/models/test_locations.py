"""Models where people have them; what is broken or hostile is refused in words, and nothing is written."""

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.bundle import BundleOptions, read_bundle
from collector.domain.drafts import ModelConfig, Tensor
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.domain.layouts import kind_of, layout_of, trained_depth, trained_for
from collector.models import open_model
from collector.models.archive import FREE_BYTES
from collector.models.keys import unknown_keys
from collector.models.weights import read_header
from tests.unit.models.made import HEAD, LAYOUTS, LLAMA_8B, safetensors

CONFIG = json.dumps({**LAYOUTS["eagle3-specforge"][0]}, indent=1)
LAUNCH = (
    "python -m sglang.launch_server --model-path /m --speculative-draft-model-path /d --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-algorithm"
)
SHAPES = {"fc.weight": (64, 192), "midlayer.self_attn.q_proj.weight": (64, 128), "d2t": (32,)}


@pytest.fixture
def folder(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(CONFIG)
    safetensors(model / "model.safetensors", SHAPES)
    return model


def listing(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def tar_of(path: Path, mode: str, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path


def test_a_folder_with_the_headers_of_its_weights(folder):
    config = open_model(folder)
    assert config.layers == 1
    assert config.weights.tensors["fc.weight"] == Tensor("BF16", (64, 192))
    assert config.evidence("draft_vocab_size").place.startswith(f"{folder}/config.json:")
    assert open_model(folder / "config.json").weights == config.weights
    assert open_model(folder / "model.safetensors").weights.tensors == config.weights.tensors


def test_a_config_under_another_name_stands_alone(folder):
    (folder / "draft_config.json").write_text(CONFIG)
    assert open_model(folder / "draft_config.json").weights is None


def test_shards_are_read_together(folder):
    (folder / "model.safetensors").unlink()
    safetensors(folder / "model-00001-of-00002.safetensors", {"fc.weight": (64, 192)})
    index = {"weight_map": {"fc.weight": "model-00001-of-00002.safetensors", "d2t": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    weights = open_model(folder).weights
    assert (set(weights.tensors), weights.complete) == ({"fc.weight"}, False)
    safetensors(
        folder / "model-00002-of-00002.safetensors", {"d2t": (32,), "model.layers.3.mlp.experts.7.up_proj.weight": (1,)}
    )
    weights = open_model(folder).weights
    assert (set(weights.tensors), weights.complete) == ({"fc.weight", "d2t"}, True)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", ".."])
def test_an_index_that_leads_out_is_refused(folder, name):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"fc.weight": name}}))
    with pytest.raises(MalformedInput) as caught:
        open_model(folder)
    assert "outside the model's folder" in caught.value.what


def test_only_the_header_of_five_gigabytes_is_read(folder):
    path = safetensors(folder / "model.safetensors", SHAPES, size=5 << 30)
    assert path.stat().st_size == 5 << 30
    before = os.times()
    assert open_model(folder).weights.tensors["d2t"].shape == (32,)
    assert os.times().system - before.system < 1, "the data must not be read"


def test_a_folder_of_the_download_cache(tmp_path, folder):
    cache = tmp_path / "models--org--draft"
    for revision in ("aaa", "bbb"):
        (cache / "snapshots" / revision).mkdir(parents=True)
    (cache / "blobs").mkdir()
    digest = "ab" * 32
    (folder / "model.safetensors").rename(cache / "blobs" / digest)
    (cache / "snapshots" / "bbb" / "model.safetensors").symlink_to(Path("../../blobs") / digest)
    (cache / "snapshots" / "bbb" / "config.json").write_text(CONFIG)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("bbb\n")
    config = open_model(cache)
    assert (config.weights.digest, config.layers) == (digest, 1)
    (cache / "refs" / "main").write_text("../../../etc")
    os.utime(cache / "snapshots" / "aaa", (4e9, 4e9))
    with pytest.raises(UnreadableInput):  # the newest revision is taken, and that one is empty
        open_model(cache)
    bundle = read_bundle([cache.parent], BundleOptions(engine="sglang"))
    assert any("models--org--draft" in reading.source for reading in bundle.readings)


def test_a_pointer_in_place_of_weights(folder):
    oid = "cd" * 32
    (folder / "model.safetensors").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n"
    )
    weights = open_model(folder).weights
    assert (weights.digest, weights.complete, dict(weights.tensors)) == (oid, False, {})


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_an_archive_is_read_where_it_is(tmp_path, folder, kind):
    members = {
        "draft/nested/config.json": b'{"hidden_size": 1, "vocab_size": 2}',
        "draft/config.json": CONFIG.encode(),
        "draft/model.safetensors": (folder / "model.safetensors").read_bytes(),
    }
    path = tmp_path / f"draft.{kind}"
    if kind == "zip":
        zip_of(path, members)
    else:
        tar_of(path, f"w:{kind.partition('.')[2]}", members)
    before = listing(tmp_path)
    config = open_model(path)
    assert (config.layers, config.source) == (1, f"{path}:draft/config.json")
    assert config.weights.tensors["fc.weight"].shape == (64, 192)
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["../escape/config.json", "/tmp/config.json", "a/../../config.json", "..\\config.json"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_that_leads_out_is_refused_and_writes_nothing(tmp_path, name, kind):
    path = tmp_path / "inner" / f"draft.{kind}"
    path.parent.mkdir()
    members = {"draft/config.json": CONFIG.encode(), name: CONFIG.encode()}
    if kind == "zip":
        zip_of(path, members)
    else:
        tar_of(path, "w", members)
    before = listing(tmp_path)
    with pytest.raises(MalformedInput) as caught:
        open_model(path)
    assert "leads out" in caught.value.what
    assert listing(tmp_path) == before


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    path = tmp_path / "draft.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("draft/config.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    with pytest.raises(MalformedInput):
        open_model(path)


def test_an_archive_that_expands_without_end_is_refused(tmp_path):
    path = tmp_path / "bomb.tar.xz"
    with tarfile.open(path, "w:xz", preset=0) as archive:
        entry = tarfile.TarInfo("padding.bin")
        entry.size = FREE_BYTES + (8 << 20)
        with Path("/dev/zero").open("rb") as zeros:
            archive.addfile(entry, zeros)
    with pytest.raises(MalformedInput) as caught:
        open_model(path)
    assert "expands" in caught.value.what


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.zip", b"PK\x03\x04" + b"x" * 100),
        ("cut.tar.gz", b"\x1f\x8b\x08" + b"x" * 100),
        ("empty.tar", b"\0" * 257 + b"ustar" + b"\0" * 300),
    ],
)
def test_a_broken_archive_is_named(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        open_model(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08",
        b"\xff" * 8 + b"{}",
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x10\0\0\0\0\0\0\0{}",
        b"\x09\0\0\0\0\0\0\0" + b'{"a": {}}',
    ],
)
def test_a_broken_header_is_named(folder, data):
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(MalformedInput) as caught:
        open_model(folder)
    assert caught.value.where == "model.safetensors"


@given(st.binary(max_size=100))
def test_any_header_is_read_or_refused(tail):
    try:
        found = read_header(io.BytesIO(len(tail).to_bytes(8, "little") + tail), "w")
    except MalformedInput:
        return
    assert isinstance(found, dict)


@pytest.mark.parametrize("make", ["absent", "empty", "two"])
def test_what_is_no_model(tmp_path, make):
    path = tmp_path / "m"
    if make != "absent":
        path.mkdir()
    if make == "two":
        (path / "a.gguf").write_bytes(b"GGUF")
        (path / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(UnreadableInput) as caught:
        open_model(path)
    assert caught.value.hint


# -- GGUF -----------------------------------------------------------------------------------------


def gguf_file(path: Path, architecture: str = "llama", **numbers: int) -> Path:
    import numpy as np
    from gguf import GGUFWriter

    writer = GGUFWriter(path, architecture)
    writer.add_block_count(numbers.get("layers", 2))
    writer.add_context_length(2048)
    writer.add_embedding_length(64)
    writer.add_rope_freq_base(500_000.0)
    writer.add_file_type(15)
    writer.add_token_list([f"t{i}" for i in range(100)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_tensor("token_embd.weight", np.zeros((100, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_header_reads_like_a_config(tmp_path):
    config = open_model(gguf_file(tmp_path / "draft.gguf"))
    assert (config.layers, config.number("vocab_size"), config.number("hidden_size")) == (2, 100, 64)
    assert (config.number("rope_theta"), config.number("max_position_embeddings")) == (500_000.0, 2048)
    assert (config.raw["bos_token_id"], config.raw["eos_token_id"]) == (1, 2)
    assert config.raw["quantization_config"] == {"quant_method": "Q4_K_M"}
    assert config.weights.tensors["token_embd.weight"] == Tensor("F32", (100, 64))
    assert (kind_of(config), layout_of(config)) == ("draft model", "GGUF")
    assert unknown_keys(config) == ()
    assert open_model(tmp_path).layers == 2


def test_a_gguf_pair_is_judged(tmp_path):
    from analysis import diagnose

    gguf_file(tmp_path / "draft.gguf")
    gguf_file(tmp_path / "target.gguf", layers=8)
    (tmp_path / "launch.txt").write_text(f"{LAUNCH} STANDALONE")
    diagnosis = diagnose(read_bundle([tmp_path]))
    assert diagnosis.subject.record.target_config.layers == 8
    assert not [finding for finding in diagnosis.findings if finding.rule == "DRF004"]


@pytest.mark.parametrize("keep", [4, 24, 60, 400])
def test_a_cut_gguf_file_is_named(tmp_path, keep):
    path = gguf_file(tmp_path / "draft.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError) as caught:
        open_model(path)
    assert caught.value.where == str(path)


def test_without_the_package_the_hint_says_how_to_get_it(tmp_path, monkeypatch):
    import sys

    path = gguf_file(tmp_path / "draft.gguf")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UnreadableInput) as caught:
        open_model(path)
    assert "draftscope[gguf]" in caught.value.hint


# -- layouts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_are_told_apart(name):
    raw, kind, layout, _ = LAYOUTS[name]
    config = ModelConfig("config.json", raw)
    assert (kind_of(config), layout_of(config)) == (kind, layout)
    assert unknown_keys(config) == ()
    assert config.number("hidden_size") == (None if name == "medusa" else raw.get("hidden_size", 4096))


def test_ten_layouts_in_one_folder_are_judged_and_unknown_keys_are_listed_once(tmp_path):
    from analysis import diagnose

    for name, (raw, _, _, args) in LAYOUTS.items():
        bundle = tmp_path / name
        draft = bundle / "draft"
        draft.mkdir(parents=True)
        nested = {key: {**value, "odd_inner": 1} for key, value in raw.items() if key.endswith("eagle_config")}
        (draft / "config.json").write_text(json.dumps({**raw, **nested, "odd_key": 1, "other_odd_key": {"odd_key": 2}}))
        (bundle / "target_config.json").write_text(json.dumps(LLAMA_8B))
        flags = {
            "model_path": "/m",
            "speculative_draft_model_path": "/d",
            "speculative_num_steps": 3,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 4,
            **args,
        }
        command = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in flags.items())
        (bundle / "launch.txt").write_text(f"python -m sglang.launch_server {command}")
        diagnosis = diagnose(read_bundle([bundle]))
        assert diagnosis.crashes == ()
        (notes,) = [reading.notes for reading in diagnosis.readings if reading.kind == "draft config"]
        listed = [note for note in notes if note.startswith("keys not known: ")]
        assert len(listed) == 1, name
        keys = listed[0].removeprefix("keys not known: ").split(", ")
        assert sorted(keys) == sorted([*(["eagle_config.odd_inner"] if nested else []), "odd_key", "other_odd_key"])


def test_what_a_speculators_config_states():
    config = ModelConfig("c", LAYOUTS["eagle3-speculators"][0])
    assert trained_depth(config) == (3, "speculative_tokens")
    assert trained_for(config) == ("meta-llama/Llama-3.1-8B-Instruct", "name_or_path")
    assert config.evidence("speculative_tokens").text == "speculative_tokens: 3"
    assert config.number("num_hidden_layers") == 1


def test_nested_text_configs_are_found_at_every_depth():
    config = ModelConfig(
        "c", {"thinker_config": {"text_config": {"num_hidden_layers": 28, "hidden_size": 8}}, "vocab_size": 5}
    )
    assert (config.layers, config.number("vocab_size")) == (28, 5)


@pytest.mark.parametrize(
    "text",
    [
        '{"hidden_size": ' + "9" * 5000 + ', "vocab_size": 2}',
        '{"hidden_size": 1e400, "vocab_size": -1, "num_hidden_layers": 1e300}',
        '{"hidden_size": "wide", "vocab_size": [], "num_hidden_layers": {}, "architectures": 7, "eagle_config": 3}',
        '{"hidden_size": null, "vocab_size": true, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1e99]}}',
        '{"architectures": [1, null], "model_type": 5, "rope_scaling": [1], "speculators_config": {"proposal_methods": 3}}',
        '{"text_config": [], "vocab_size": 3}',
        '{"text_config": {"text_config": {"text_config": {"text_config": {}}}}, "vocab_size": 3}',
        '{"medusa_num_heads": -4, "base_model_name_or_path": 7}',
        '{"dflash_config": {"target_layer_ids": "x"}, "block_size": 1e9, "model_type": "qwen3", "vocab_size": 1}',
    ],
)
def test_hostile_configs_are_judged_or_refused(tmp_path, text):
    from analysis import diagnose

    (tmp_path / "draft_config.json").write_text(text)
    (tmp_path / "target_config.json").write_text(
        json.dumps({**LLAMA_8B, **{key: HEAD[key] for key in ("rms_norm_eps",)}})
    )
    (tmp_path / "launch.txt").write_text(
        "python -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3 --speculative-draft-model-path /d"
    )
    bundle = read_bundle([tmp_path])
    assert diagnose(bundle).crashes == ()
    assert bundle.problems == [] or "draft_config.json" in bundle.problems[0]
