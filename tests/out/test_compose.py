"""The compose file and what it starts."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from collector.metrics.exposition import parse_exposition
from collector.metrics.vllm.names import DRAFTS
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from dashboard.settings import CONFIG_VARIABLE, load_settings, variables
from dashboard.targets import find_all, read_targets

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
EXAMPLE = (ROOT / "deploy" / "example.env").read_text(encoding="utf-8")


def test_everything_is_there_and_watched() -> None:
    wanted = {"postgres", "migrate", "draftscope", "prometheus", "alertmanager", "grafana", "loki", "engine"}
    assert set(SERVICES) == wanted
    assert wanted - {name for name, service in SERVICES.items() if "healthcheck" in service} == {"migrate", "loki"}
    assert set(COMPOSE["volumes"]) == {"postgres", "draftscope", "prometheus", "alertmanager", "grafana", "loki"}
    assert {name for name, service in SERVICES.items() if "profiles" in service} == {"engine"}


def test_each_waits_for_what_it_needs() -> None:
    needs = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    assert needs["migrate"] == {"postgres": "service_healthy"}
    assert needs["draftscope"] == {"postgres": "service_healthy", "migrate": "service_completed_successfully"}
    assert needs["prometheus"] == {"draftscope": "service_healthy", "alertmanager": "service_healthy"}
    assert needs["grafana"] == {"prometheus": "service_healthy"}


def test_the_file_is_as_the_compose_specification_says() -> None:
    text = re.sub(r"\$\{\w+:\?.*?\}", "given", (ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    text = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", text)
    read = PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(text)))  # YAML's merges resolved
    assert set(read.service_names()) == set(SERVICES)


@pytest.mark.needs("docker")
def test_compose_takes_the_file() -> None:
    compose = ["docker", "compose"]
    if subprocess.run([*compose, "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("docker is here without its compose plugin")
    secrets = {"POSTGRES_PASSWORD": "a", "DRAFTSCOPE_TOKEN": "b", "GRAFANA_PASSWORD": "c"}
    done = subprocess.run(
        [*compose, "--profile", "replay", "config", "--quiet"],
        cwd=ROOT, env={**os.environ, **secrets}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_secrets_come_from_the_environment_and_are_required() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|TOKEN|SECRET|DATABASE_URL", name):
                assert re.search(r"\$\{\w+:\?", value), name
    words = re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert {word for word in words if f"{word}=" not in EXAMPLE} == set()
    assert not re.search(r"^(\w*(?:PASSWORD|TOKEN|SECRET))=.+", EXAMPLE, re.MULTILINE)


def test_the_service_is_given_settings_that_exist() -> None:
    assert set(SERVICES["draftscope"]["environment"]) <= {*variables(), CONFIG_VARIABLE}
    settings = load_settings(ROOT / "deploy" / "draftscope.toml", {})
    (channel,) = settings.channels
    assert channel.kind == "alertmanager"
    (source,) = settings.sources
    assert source.kind == "loki"
    (target,) = settings.targets
    mounted = [mount.rsplit(":", 2)[1] for mount in SERVICES["draftscope"]["volumes"]]
    assert target.file in mounted


def test_nothing_is_open_to_others_or_runs_with_more_rights_than_needed() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    for name in set(SERVICES) - {"postgres"}:
        assert SERVICES[name]["cap_drop"] == ["ALL"], name
    assert {name for name, service in SERVICES.items() if service.get("read_only")} == {
        "migrate", "draftscope", "prometheus", "alertmanager", "engine",
    }  # fmt: skip


def test_every_mounted_file_is_there() -> None:
    mounts = [mount for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = {re.sub(r"\$\{\w+:-(.*?)\}", r"\1", mount).split(":")[0] for mount in mounts}
    files = {name for name in files if name.startswith("./")}
    assert len(files) == 9
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_the_engines_file_is_one_for_all(tmp_path: Path) -> None:
    for name, addresses in (("engines.yml", []), ("replay/engines.yml", ["http://engine:8000"])):
        (target,) = read_targets([{"file": str(ROOT / "deploy" / name)}], "")
        found, problems = find_all([target])
        assert ([item.shown for item in found], problems) == (addresses, {})


def test_the_recorded_engine_goes_on_for_ever() -> None:
    replay = runpy.run_path(str(ROOT / "deploy" / "replay" / "replay.py"))
    recording = replay["Recording"](ROOT / "tests" / "golden" / "metrics" / "vllm" / "eagle3")
    drafts = [
        next(sample.value for sample in parse_exposition(recording.body(at).encode()) if sample.name == DRAFTS)
        for at in (0.0, recording.seconds / 2, recording.seconds - 0.01, recording.seconds, 10 * recording.seconds)
    ]
    assert drafts == sorted(drafts)
    assert drafts[0] < drafts[1]
    assert drafts[3] == drafts[2]
    assert drafts[4] - drafts[0] == 10 * (drafts[2] - drafts[0])


def test_the_recorded_engine_answers_as_one(tmp_path: Path) -> None:
    program = [sys.executable, ROOT / "deploy" / "replay" / "replay.py"]
    refused = subprocess.run([*program, tmp_path], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "fewer than two scrapes" in refused.stderr
    recording = ROOT / "tests" / "golden" / "metrics" / "vllm" / "eagle3"
    with subprocess.Popen([*program, recording, "--port", "0"], stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        try:
            with Endpoint(engine.stdout.readline().strip().removesuffix("/metrics")) as endpoint:
                scrape = Scraper(endpoint).scrape()
        finally:
            engine.terminate()
    assert scrape.engine.engine == "vllm"
    assert scrape.state.units


def test_prometheus_scrapes_the_service() -> None:
    config = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8"))
    own, engines = config["scrape_configs"]
    assert own["static_configs"] == [{"targets": ["draftscope:8787"]}]
    folder = "/etc/prometheus/"
    mounted = {mount.rsplit(":", 2)[1].removeprefix(folder) for mount in SERVICES["prometheus"]["volumes"][:-1]}
    assert mounted == {"prometheus.yml", "rules", *engines["file_sd_configs"][0]["files"]}


@pytest.mark.needs("promtool")
def test_prometheus_takes_its_configuration() -> None:
    done = subprocess.run(
        ["promtool", "check", "config", ROOT / "deploy" / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_image_runs_as_nobody_special_and_has_what_it_copies() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
    last = text[text.rindex("FROM ") :]
    assert text.count("\nFROM ") == 2
    assert re.search(r"^USER 10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    copied = [name for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for name in line.split()]
    allowed = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(copied) == set(allowed)
    assert [name for name in copied if not (ROOT / name).exists()] == []
