"""Launch commands in Kubernetes manifests, with the manifest's own lines."""

from __future__ import annotations

import json

import pytest
import yaml

from collector.domain.errors import MalformedInput, UnreadableInput
from collector.launch import find_launches, parse_launch

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: decode
spec:
  template:
    spec:
      initContainers:
        - name: wait
          image: busybox
          command: [sh, -c, "until nc -z db 5432; do sleep 1; done"]
      containers:
        - name: server
          image: registry.local:5000/lmsysorg/sglang:v0.5.9-cu126
          command: ["python3", "-m", "sglang.launch_server"]
          args:
            - --model-path
            - /models/x          # a comment
            - "--speculative-num-draft-tokens=16"
            - --speculative-eagle-topk
            - "1"
            - --api-key
            - not-for-eyes
          env:
            - {name: HF_TOKEN, value: also-secret}
            - name: SGLANG_ENABLE_SPEC_V2
              value: "1"
            - name: POD
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
"""
LEADER_AND_WORKER = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  leaderWorkerTemplate:
    leaderTemplate:
      spec:
        containers:
          - name: leader
            image: lmsysorg/sglang:latest
            command:
              - sh
              - -c
              - |
                set -e
                export SGLANG_ENABLE_SPEC_V2=1
                # the leader
                exec python3 -m sglang.launch_server --model-path /m \\
                  --tp 16 --dist-init-addr $(LWS_LEADER_ADDRESS):20000 \\
                  --node-rank 0
    workerTemplate:
      spec:
        containers:
          - name: worker
            image: lmsysorg/sglang:latest
            args:
              - >-
                python3 -m sglang.launch_server --model-path /m
                --tp 16
                --node-rank $LWS_WORKER_INDEX
            command: [sh, -c]
"""
SCRIPT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: start
data:
  notes.txt: don't read this, it isn't shell
  nginx.conf: "server { listen 80; }"
  run.sh: |
    #!/bin/bash
    export SGLANG_ENABLE_SPEC_V2=1

    python3 -m sglang.launch_server \\
      --config /etc/serve/spec.yaml \\
      --tp 8
  spec.yaml: |
    # what the server drafts with
    speculative-algorithm: EAGLE3
    speculative-num-steps: 5
    trust-remote-code: true
"""


def test_arguments_of_a_container_stand_at_their_lines():
    launch = parse_launch(DEPLOYMENT, "deploy.yaml")
    assert launch.requested == {
        "model_path": "/models/x",
        "speculative_num_draft_tokens": 16,
        "speculative_eagle_topk": 1,
        "api_key": "***",
    }
    assert launch.environment == {"HF_TOKEN": "***", "SGLANG_ENABLE_SPEC_V2": "1"}
    assert (launch.label, launch.release, launch.line) == ("Deployment decode, container server", "0.5.9", 15)
    place = launch.evidence_of("speculative_num_draft_tokens")
    assert (place.place, place.text) == ("deploy.yaml:19", '- "--speculative-num-draft-tokens=16"')
    assert launch.evidence_of("speculative_eagle_topk").line == 20
    assert "not-for-eyes" not in repr(launch)
    assert "also-secret" not in repr(launch)


def test_the_same_manifest_as_json():
    launch = parse_launch(json.dumps(yaml.safe_load(DEPLOYMENT), indent=2), "deploy.json")
    assert launch.requested == parse_launch(DEPLOYMENT).requested
    assert launch.evidence_of("speculative_eagle_topk").text == '"--speculative-eagle-topk",'


def test_leader_and_workers_are_both_found_and_their_scripts_read():
    leader, worker = find_launches(LEADER_AND_WORKER, "lws.yaml")
    assert leader.requested == {
        "model_path": "/m",
        "tp_size": 16,
        "dist_init_addr": "$(LWS_LEADER_ADDRESS):20000",
        "node_rank": 0,
    }
    assert leader.environment == {"SGLANG_ENABLE_SPEC_V2": "1"}
    assert [leader.evidence_of(name).line for name in ("model_path", "tp_size", "node_rank")] == [18, 19, 20]
    assert worker.requested == {"model_path": "/m", "tp_size": 16, "node_rank": "$LWS_WORKER_INDEX"}
    assert [worker.evidence_of(name).line for name in ("model_path", "tp_size", "node_rank")] == [28, 29, 30]
    assert worker.label == "LeaderWorkerSet big, container worker"


def test_a_script_in_a_config_map_with_the_settings_file_it_names():
    launch = parse_launch(SCRIPT, "start.yaml")
    assert launch.requested == {
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 5,
        "trust_remote_code": True,
        "config": "/etc/serve/spec.yaml",
        "tp_size": 8,
    }
    assert launch.environment == {"SGLANG_ENABLE_SPEC_V2": "1"}
    assert launch.label == "ConfigMap start, run.sh"
    assert launch.evidence_of("tp_size").place == "start.yaml:14"
    assert launch.evidence_of("speculative_num_steps").place == "start.yaml:18"


def test_a_rendered_chart_of_many_documents():
    text = f"---\n# Source: chart/a.yaml\n{SCRIPT}---\nkind: Service\n---\n{LEADER_AND_WORKER}---\n{DEPLOYMENT}"
    launches = find_launches(text, "all.yaml")
    assert [launch.label for launch in launches] == [
        "LeaderWorkerSet big, container leader",
        "LeaderWorkerSet big, container worker",
        "Deployment decode, container server",
        "ConfigMap start, run.sh",
    ]
    lines = text.splitlines()
    for launch in launches:
        for name in launch.requested:
            place = launch.evidence_of(name)
            if place is not launch.evidence:
                assert place.line is not None
                assert lines[place.line - 1].strip().removesuffix("\\").rstrip() == place.text


def test_an_image_that_serves_by_itself_needs_no_command():
    manifest = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "v", "image": "vllm/vllm-openai:v0.11.0", "args": ["--model", "m", "--port", "1"]}]
        },
    }
    launch = parse_launch(yaml.safe_dump(manifest))
    assert (launch.engine, launch.release) == ("vllm", "0.11.0")
    assert launch.requested == {"model": "m", "port": 1}


def test_a_command_stands_in_for_the_images_own():
    manifest = {
        "containers": [{"name": "v", "image": "vllm/vllm-openai:v0.11.0", "command": ["sleep"], "args": ["inf"]}]
    }
    with pytest.raises(UnreadableInput):
        parse_launch(yaml.safe_dump(manifest))


def test_resources_of_operators_and_values_files():
    values = """
engine:
  extraPodSpec:
    mainContainer:
      command: [python3, -m, sglang.launch_server]
      args:
        - --tp
        - '4'
"""
    launch = parse_launch(values, "values.yaml")
    assert launch.requested == {"tp_size": 4}
    assert launch.evidence_of("tp_size").line == 7


def test_a_broken_manifest_names_the_line():
    with pytest.raises(MalformedInput) as error:
        parse_launch(SCRIPT + "---\n" + DEPLOYMENT.replace("          args:", "         args:"), "d.yaml")
    assert error.value.where.startswith("d.yaml:")
    assert int(error.value.where.rpartition(":")[2]) > len(SCRIPT.splitlines())


def test_a_template_that_is_not_rendered_says_what_to_do():
    with pytest.raises(MalformedInput) as error:
        parse_launch(DEPLOYMENT.replace("name: decode", "name: {{ .Values.name }}-{{ .Release }}"), "t.yaml")
    assert "helm template" in error.value.hint


def test_a_broken_document_without_a_launch_hides_nothing():
    assert parse_launch("kind: [\n---\n" + DEPLOYMENT).requested["model_path"] == "/models/x"


def test_a_broken_command_names_the_manifests_line():
    with pytest.raises(MalformedInput) as error:
        parse_launch(DEPLOYMENT.replace('            - "1"\n', ""), "d.yaml")
    assert (error.value.what, error.value.where) == ("--speculative-eagle-topk has no value", "d.yaml:20")


def test_an_open_quote_in_a_script_names_the_manifests_line():
    with pytest.raises(MalformedInput) as error:
        parse_launch(LEADER_AND_WORKER.replace("# the leader", "echo 'open"), "l.yaml")
    assert error.value.where == "l.yaml:17"


def test_a_mapping_that_merges_itself_does_no_harm():
    bomb = "a: &a [&b [x, x], *b, *b]\nm: &m {<<: *m, command: [sglang, serve, m]}\nkind: Pod\n"
    assert parse_launch(bomb).requested == {"model_path": "m"}


def test_a_manifest_inside_a_script():
    script = f"""#!/bin/bash
set -e
kubectl apply -f - <<'EOF'
{DEPLOYMENT}EOF
echo "it's applied" <<<x
kubectl apply -f - <<-END
{SCRIPT}END
sglang serve other
"""
    launches = find_launches(script, "apply.sh")
    assert [launch.label for launch in launches] == [
        "Deployment decode, container server",
        "ConfigMap start, run.sh",
        "",
    ]
    assert launches[0].evidence_of("speculative_eagle_topk").place == "apply.sh:23"
    assert launches[2].evidence.place == f"apply.sh:{len(script.splitlines())}"


def test_a_script_that_writes_a_manifest_line_is_no_manifest():
    assert parse_launch("#!/bin/sh\necho '\nkind: Pod\n'\nsglang serve m\n").requested == {"model_path": "m"}
