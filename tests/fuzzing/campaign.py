"""Run one fuzzer with Atheris in this process. `tests.fuzzing.__main__` starts a process for it.

Atheris ends the process when the time is over, so everything is written while it runs.
"""

import gc
import hashlib
import random
import sys
from pathlib import Path
from typing import Any

import atheris

from tests.fuzzing.target import MAX_INPUT_BYTES, Target, check_input, limit_memory

_C_TIMEOUT_S = 60
"""libFuzzer ends the process after this time in one call of C code, which no handler can interrupt."""


def run_campaign(name: str, folder: Path, seconds: int) -> None:
    """Fuzz a target until the time is over. Does not return.

    folder: gets ``corpus`` (inputs that reached new code) and ``findings``.
    """
    with atheris.instrument_imports(include=["kdeclare"], enable_loader_override=False):
        from tests.fuzzing.targets import load_target

        target = load_target(name)
        for seed in target.make_seeds():
            check_input(target, seed)  # imports what is imported late
    corpus, findings = folder / "corpus", folder / "findings"
    for path in (corpus, findings):
        path.mkdir(parents=True, exist_ok=True)
    for seed in target.make_seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    limit_memory()
    known: set[str] = set()

    def test_one_input(data: bytes) -> None:
        finding = check_input(target, data)
        if finding is None or finding.place in known:
            return
        known.add(finding.place)
        stem = hashlib.sha256(finding.place.encode()).hexdigest()[:12]
        (findings / f"{stem}.input").write_bytes(finding.data)
        (findings / f"{stem}.txt").write_text(
            f"{finding.place}\n\n{finding.details}", "utf-8", "backslashreplace"
        )
        print(f"FINDING {finding.place}", file=sys.stderr, flush=True)

    gc.collect()
    atheris.Setup(
        [
            "fuzz",
            str(corpus),
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={_C_TIMEOUT_S}",
            f"-max_total_time={seconds}",
            f"-artifact_prefix={findings}/",
            "-rss_limit_mb=0",
            "-print_final_stats=1",
            "-len_control=0",
        ],
        test_one_input,
        custom_mutator=_make_mutator(target),
    )
    atheris.Fuzz()


def _make_mutator(target: Target) -> Any:
    """Return a function that changes three of ten inputs as bytes, and others as the target does."""

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        if random.Random(seed).random() < 0.3:
            return bytes(atheris.Mutate(data, max_size))
        changed = target.mutate(bytes(data), seed)
        return changed if len(changed) <= max_size else bytes(data)

    return mutate


if __name__ == "__main__":
    run_campaign(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
