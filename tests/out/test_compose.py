"""The compose file and what it starts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.settings import CONFIG_VARIABLE, load_settings, variables

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
EXAMPLE = (ROOT / "deploy" / "example.env").read_text(encoding="utf-8")


def test_service_database_and_prometheus_are_there_and_watched() -> None:
    assert set(SERVICES) == {"postgres", "migrate", "draftscope", "prometheus"}
    assert {name for name, service in SERVICES.items() if "healthcheck" in service} == {
        "postgres",
        "draftscope",
        "prometheus",
    }
    assert set(COMPOSE["volumes"]) == {"postgres", "prometheus"}


def test_each_waits_for_what_it_needs() -> None:
    needs = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    assert needs["migrate"] == {"postgres": "service_healthy"}
    assert needs["draftscope"] == {"postgres": "service_healthy", "migrate": "service_completed_successfully"}
    assert needs["prometheus"] == {"draftscope": "service_healthy"}


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
    assert load_settings(ROOT / "deploy" / "draftscope.toml", {}).channels == ()


def test_nothing_is_open_to_others_or_runs_with_more_rights_than_needed() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    service = SERVICES["draftscope"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]


def test_every_mounted_file_is_there() -> None:
    mounts = [mount for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    assert len(files) == 2
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_prometheus_scrapes_the_service() -> None:
    config = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["draftscope:8787"]}]


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
