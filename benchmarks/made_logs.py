"""Logs as engines write them, from a seed, and what is true of them: ``python benchmarks/made_logs.py --help``.

Beside access lines and the samples they hold what a reader must survive: prompts that quote a sample
(decoys), lines cut by another writer (torn), long prompts, tracebacks, progress bars, restarts, bytes that
are no UTF-8, NUL bytes, Windows line ends. The truth counts whole samples that begin a line; figures
are summed as whole numbers (hundredths where the engine prints two decimals), so that sums compare exactly.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from abc import ABC, abstractmethod
from pathlib import Path

UNITS = {"k": 10**3, "M": 10**6, "G": 10**9}
RARE = 0.02
PROMPT = (
    "Summarise the report below in three sentences. Größe, 投机解码, спекуляция, 🚀. "
    "def accept(draft, target):\\n    return [d for d, t in zip(draft, target) if d == t]\\n"
    '{\\"role\\": \\"user\\", \\"content\\": \\"why is it slow?\\"} '
)
ANSWERS = [
    *['"POST /v1/chat/completions HTTP/1.1" 200 OK'] * 8,
    '"GET /health HTTP/1.1" 200 OK',
    '"POST /v1/completions HTTP/1.1" 400 Bad Request',
]


class MadeLog(ABC):
    """A log in the making: ``share`` of its lines are samples; ``truth`` is what is true of those so far."""

    start = 1_775_000_000.0
    tick = 0.012

    def __init__(self, seed: int, share: float) -> None:
        self.random = random.Random(seed)
        self.share = share
        self.at = self.start
        self.truth: dict[str, int] = {}
        self.clients = [f"10.{a}.{b}.{a ^ b}" for a, b in zip(range(200), range(50, 250), strict=True)]
        self._second = -1
        self._stamp = ""

    time_format = "%Y-%m-%d %H:%M:%S"

    def stamp(self) -> str:
        if int(self.at) != self._second:
            self._second = int(self.at)
            self._stamp = time.strftime(self.time_format, time.gmtime(self._second))
        return self._stamp

    def count(self, **sums: int) -> None:
        for name, value in sums.items():
            self.truth[name] = self.truth.get(name, 0) + value

    def address(self) -> str:
        number = int(self.random.random() * 5_600_000)
        return f"{self.clients[number % 200]}:{32_768 + number // 200}"

    def prompt(self) -> str:
        length = int(min(200_000, 300 / max(1e-3, self.random.random()) ** 1.2))
        text = (PROMPT * (length // len(PROMPT) + 1))[:length]
        if self.random.random() < 0.02:
            self.count(decoys=1)
            text += "\\n" + self.samples(counted=False)[-1]
        return text

    def torn(self) -> list[str]:
        """A sample into which another line was written."""
        self.count(torn=1)
        sample = self.samples(counted=False)[-1]
        cut = self.random.randrange(self.torn_from, len(sample) - 12)
        return [sample[:cut] + self.access(), sample[cut:]]

    torn_from = 40

    @abstractmethod
    def beginning(self) -> list[str]: ...

    @abstractmethod
    def access(self) -> str: ...

    @abstractmethod
    def samples(self, *, counted: bool = True) -> list[str]: ...

    @abstractmethod
    def rare(self) -> list[str]: ...

    def write(self, path: Path, size: int, lives: int = 8) -> None:
        written = 0
        chance = self.random.random
        with path.open("wb") as file:
            while written < size:
                lines = self.beginning() if written >= size // lives * self.truth.get("runs", 0) else []
                while len(lines) < 4_000:
                    self.at += self.tick
                    what = chance()
                    if what < RARE:
                        lines += self.rare()
                    elif what < RARE + self.begun_by:
                        lines += self.samples()
                    else:
                        lines.append(self.access())
                data = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
                self.count(lines=len(lines), bytes=len(data))
                written += len(data)
                file.write(data)

    @property
    @abstractmethod
    def begun_by(self) -> float:
        """The chance that samples come next, so that their share of the lines is as wanted."""


class SglangLog(MadeLog):
    """Four data-parallel ranks; the wording changes with the release from run to run."""

    ranks = tuple(f" DP{rank} TP0" for rank in range(4))

    def __init__(self, seed: int, share: float) -> None:
        super().__init__(seed, share)
        self.lengths = [260] * len(self.ranks)
        self.wording = 0

    @property
    def begun_by(self) -> float:
        return self.share * 1.87  # with the lines of prefills

    def beginning(self) -> list[str]:
        choose = self.random.choice
        self.wording = self.truth.get("runs", 0) % 3
        self.steps, self.at = choose((2, 3, 4, 5)), self.at + 60
        self.count(runs=1)
        now = self.stamp()
        options = "".join(f", option_{number:03d}={choose(('None', 'False', '1.0'))}" for number in range(200))
        arguments = (
            "model_path='m', host='0.0.0.0', port=30000, tp_size=4, dp_size=4, random_seed=7, decode_log_interval=40, "
            "speculative_algorithm='EAGLE3', speculative_draft_model_path='d', speculative_eagle_topk=1, "
            f"speculative_num_steps={self.steps}, speculative_num_draft_tokens={self.steps + 1}{options}"
        )
        lines = [f"[{now}] server_args=ServerArgs({arguments})"]
        for rank in self.ranks:
            bar = "\r".join(
                f"Capturing batches (bs={size} avail_mem=25.1 GB): {100 - size * 100 // 161:3d}%|{'█' * 5}| {160 - size}/160"
                for size in range(160, 0, -4)
            )
            lines += [
                f"[{now}{rank}] Load weight begin. avail mem=78.58 GB",
                f"[{now}{rank}] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=43.10 GB, mem usage=35.48 GB.",
                bar,
                f"[{now}{rank}] max_total_num_tokens=402133, chunked_prefill_size=8192, context_len=131072",
            ]
        return [*lines, f"[{now}] The server is fired up and ready to roll!"]

    def access(self) -> str:
        return f"[{self.stamp()}] INFO:     {self.address()} - {ANSWERS[int(self.random.random() * len(ANSWERS))]}"

    def samples(self, *, counted: bool = True) -> list[str]:
        if counted and self.random.random() > 1 / 1.87:
            return [self.prefill()]
        return [self.decode(counted=counted)]

    def prefill(self) -> str:
        chance = self.random.random()
        new, cached = 1 + int(chance * 8_191), int(self.random.random() * 4_000)
        self.count(prefills=1, new_tokens=new, cached_tokens=cached)
        head = f"[{self.stamp()}{self.ranks[int(chance * 4)]}] Prefill batch"
        mark, usage, behind = (
            (".", "token usage", ", "),
            (",", "token usage", ", "),
            (",", "full token usage", f", cuda graph: False, input throughput (token/s): {chance * 20_000:.2f}"),
        )[self.wording]
        return (
            f"{head}{mark} #new-seq: {1 + int(chance * 12)}, #new-token: {new}, #cached-token: {cached}, "
            f"{usage}: 0.{int(chance * 90):02d}, #running-req: {int(chance * 48)}, #queue-req: {int(chance * 9)}{behind}"
        )

    def decode(self, *, counted: bool) -> str:
        chance = self.random.random
        rank = int(chance() * 4)
        running = 1 + int(chance() * 47)
        tokens = running * (200 + int(chance() * 3_000))
        usage = tokens * 100 // 402_133
        length = min((self.steps + 1) * 100, max(100, self.lengths[rank] + int(chance() * 21) - 10))
        self.lengths[rank] = length
        rate = length // (self.steps + 1)
        throughput = running * (2_000 + int(chance() * 5_000)) * length // 200
        queue = 0 if chance() < 0.7 else int(chance() * 200)
        head = f"[{self.stamp()}{self.ranks[rank]}] Decode batch"
        speed = f"gen throughput (token/s): {hundredths(throughput)}"
        graph = "True" if chance() < 0.97 else "False"
        if self.wording == 0:
            rate = 0  # not printed yet
            line = (
                f"{head}. #running-req: {running}, #token: {tokens}, token usage: {hundredths(usage)}, "
                f"accept len: {hundredths(length)}, {speed}, largest-len: 0, #queue-req: {queue}, "
            )
        else:
            words = ("#token", "token usage", ", ") if self.wording == 1 else ("#full token", "full token usage", "")
            line = (
                f"{head}, #running-req: {running}, {words[0]}: {tokens}, {words[1]}: {hundredths(usage)}, "
                f"accept len: {hundredths(length)}, accept rate: {hundredths(rate)}, cuda graph: {graph}, {speed}, "
                f"#queue-req: {queue}{words[2]}"
            )
        if counted:
            self.count(
                windows=1, running=running, tokens=tokens, usage=usage, length=length, rate=rate, throughput=throughput,
                waiting=queue,
            )  # fmt: skip
        return line

    def rare(self) -> list[str]:
        chance, now = self.random.random(), self.stamp()
        if chance < 0.45:
            text = self.prompt()
            return [
                f"[{now}] Receive: obj=GenerateReqInput(rid='{self.random.getrandbits(128):032x}', text='{text}', stream=True)"
            ]
        if chance < 0.9:
            return [
                f"[{now}] Finish: obj=GenerateReqInput(rid='{self.random.getrandbits(128):032x}'), out={{'meta_info': {{}}}}"
            ]
        if chance < 0.93:
            return [
                f"[{now}] Task exception in handler",
                "Traceback (most recent call last):",
                '  File "/opt/sglang/srt/managers/tokenizer_manager.py", line 512, in generate_request',
                f"ValueError: Input length ({self.random.randrange(131_072, 400_000)} tokens) exceeds the maximum allowed length. ✂",
            ]
        if chance < 0.96:
            return ["\udcff\udcfe\x00 half \udc80 a line", f"[{now}] an island of Windows \r"]
        return self.torn()


class VllmLog(MadeLog):
    """Two engines behind one server, whose log crosses New Year; the date has no year."""

    start = 1_767_220_000.0
    tick = 0.02
    time_format = "%m-%d %H:%M:%S"
    torn_from = 110
    depth = 3

    @property
    def begun_by(self) -> float:
        return self.share / (2 - self.share)  # two lines at a time

    def head(self, code: str) -> str:
        return f"(APIServer pid=4711) INFO {self.stamp()} [{code}] "

    def beginning(self) -> list[str]:
        self.count(runs=1)
        options = ", ".join(
            f"'option_{number:03d}': {self.random.choice(('None', 'True', '0.9'))}" for number in range(150)
        )
        asked = (
            "{'model': 'm', 'tensor_parallel_size': 4, 'data_parallel_size': 2, 'speculative_config': "
            f"{{'method': 'eagle3', 'model': 'd', 'num_speculative_tokens': {self.depth}}}, {options}}}"
        )
        return [
            f"{self.head('api_server.py:1892')}vLLM API server version 0.11.0",
            f"{self.head('utils.py:233')}non-default args: {asked}",
            "\r".join(
                f"Capturing CUDA graphs (decode, FULL): {part:3d}%|{'█' * (part // 10):<10}|"
                for part in range(0, 101, 2)
            ),
            f"{self.head('launcher.py:46')}Route: /metrics, Methods: GET",
        ]

    def access(self) -> str:
        return f"(APIServer pid=4711) INFO:     {self.address()} - {ANSWERS[int(self.random.random() * len(ANSWERS))]}"

    def samples(self, *, counted: bool = True) -> list[str]:
        chance = self.random.random
        engine, running, waiting = int(chance() * 2), 1 + int(chance() * 62), int(chance() * 9)
        drafts = 40 + int(chance() * 2_960)
        accepted_at, share = [], 0.6 + chance() * 0.35
        for _ in range(self.depth):
            accepted_at.append(int(share * drafts))
            share *= 0.45 + chance() * 0.4
        accepted, drafted = sum(accepted_at), drafts * self.depth
        usage = int(chance() * 900)
        stats = (
            f"{self.head('loggers.py:248')}Engine {engine:03d}: Avg prompt throughput: {chance() * 9_000:.1f} tokens/s, "
            f"Avg generation throughput: {(accepted + drafts) / 10:.1f} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
            f"GPU KV cache usage: {usage / 10:.1f}%, Prefix cache hit rate: {chance() * 80:.1f}%"
        )
        length = f"{1 + accepted / drafts:.2f}"
        rates = ", ".join(f"{count / drafts:.3f}" for count in accepted_at)
        acceptance = (
            f"{self.head('metrics.py:96')}SpecDecoding metrics: Mean acceptance length: {length}, "
            f"Accepted throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: {drafted / 10:.2f} tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, "
            f"Avg Draft acceptance rate: {accepted / drafted * 100:.1f}%"
        )
        if counted:
            self.count(
                windows=1, running=running, waiting=waiting, usage=usage, accepted=accepted, drafted=drafted, drafts=drafts,
                length=int(length.replace(".", "")),
            )  # fmt: skip
        return [stats, acceptance]

    def rare(self) -> list[str]:
        chance = self.random.random()
        request = f"request chatcmpl-{self.random.getrandbits(128):032x}"
        if chance < 0.5:
            text = self.prompt()
            return [
                f"{self.head('logger.py:43')}Received {request}: prompt: '{text}', params: SamplingParams(n=1), lora_request: None."
            ]
        if chance < 0.9:
            return [f"{self.head('async_llm.py:331')}Added {request}."]
        if chance < 0.93:
            return [
                "Traceback (most recent call last):",
                '  File "/opt/vllm/entrypoints/openai/serving.py", line 91, in create',
                "ValueError: This model's maximum context length is 131072 tokens. ✂",
            ]
        if chance < 0.96:
            return ["\udcff\udcfe\x00 half \udc80 a line", f"{self.head('serving.py:9')}an island of Windows \r"]
        return self.torn()


LOGS: dict[str, type[MadeLog]] = {"sglang": SglangLog, "vllm": VllmLog}


def hundredths(value: int) -> str:
    return f"{value // 100}.{value % 100:02d}"


def parsed_size(text: str) -> int:
    """``300M`` and the like, in bytes."""
    return int(float(text[:-1]) * UNITS[text[-1]]) if text[-1] in UNITS else int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=LOGS)
    parser.add_argument("path", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--size", type=parsed_size, default=parsed_size("100M"))
    parser.add_argument("--share", type=float, default=0.15, help="share of lines that are samples")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    log = LOGS[options.engine](options.seed, options.share)
    log.write(options.path, options.size)
    options.truth.write_text(json.dumps(log.truth, indent=1, sort_keys=True), encoding="utf-8")


if __name__ == "__main__":
    main()
