"""The targets, by the module that defines them."""

import importlib

from tests.fuzzing.target import Target

_NAMES_BY_MODULE = {
    "plans": ("plan-file",),
    "states": ("journal", "state", "shared-state"),
    "manifests": ("manifest", "project-file", "fleet-file", "accepted-drift"),
    "kafka": ("client-properties", "reassignment", "offsets-file", "broker-answer", "record-batches"),
    "http": ("worker-answer", "registry-answer"),
    "signatures": ("trusted-keys", "sshsig"),
}

TARGET_NAMES = tuple(name for names in _NAMES_BY_MODULE.values() for name in names)


def load_target(name: str) -> Target:
    """Return a target. Only its own module is imported, because the fuzzer instruments all imports."""
    module = next(module for module, names in _NAMES_BY_MODULE.items() if name in names)
    targets: tuple[Target, ...] = importlib.import_module(f"tests.fuzzing.targets.{module}").TARGETS
    return next(target for target in targets if target.name == name)
