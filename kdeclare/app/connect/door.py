"""The way to Connect workers, for a project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kdeclare.manifests.reference_limits import Limits
from kdeclare.manifests.substitution import resolve_reference
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.worker_state import WorkerGroup


@dataclass(frozen=True, slots=True)
class ProjectDoor:
    """A `Door`: opens groups whose files and references are relative to ``folder``.

    Each group is opened once, and its files are read then: one door serves one command. Two doors are
    equal that lead to the same: environ is that of the process, and how long somebody was ready to wait
    (timeout_s) makes no other door.
    """

    folder: Path
    environ: Mapping[str, str] = field(compare=False, repr=False)
    timeout_s: float = field(compare=False)
    limits: Limits = field(default=(), compare=False)
    _open: dict[WorkerGroup, ConnectWorkers] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __call__(self, group: WorkerGroup) -> ConnectWorkers:
        """The workers. Raises KdeclareError."""
        from kdeclare.providers.connect.client.opening import opened  # httpx: most commands meet no worker

        found = self._open.get(group)
        if found is None:
            made = opened(group, self.folder, self._resolved, self.timeout_s)
            found = self._open.setdefault(group, made)
        return found

    def _resolved(self, reference: str) -> str:
        return resolve_reference(reference, self.folder, self.environ, self.limits)
