"""Where the values of secrets come from at apply."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.parts import Connections
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress
from kdeclare.core.resources.kind import Desired
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_hashes import (
    KEY_MISSING,
    KEY_VARIABLE,
    OLD_KEY_VARIABLE,
    OTHER_KEY,
    SecretHasher,
    can_compare,
    matches,
    refuse_missing_key,
)
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.engine.observation import identify_system, observe
from kdeclare.engine.planning.sealing import has_secrets, known_values, seal, stored_hashes
from kdeclare.manifests.project import Project
from kdeclare.manifests.syntax.substitution import resolve_reference


@dataclass(frozen=True, slots=True)
class ProjectSecrets:
    """Resolves references again, relative to the project.

    known: hash to value, of the manifests loaded in this very process, literals among them.
    """

    project: Project
    environ: Mapping[str, str] = field(repr=False)
    known: Mapping[str, str] = field(default_factory=dict, repr=False)

    def reveal(self, secret: SecretRef) -> str:
        """See `SecretSource`."""
        value = self.known.get(secret.secret)
        if value is not None:
            return value
        reference = secret.reference
        if reference is None:
            raise KdeclareError(
                error(
                    "literal-secret",
                    "A secret cannot be had again",
                    "The plan holds a secret that was written literally into a manifest.",
                    hint="Write ${env.NAME} or ${file.PATH}, or apply the manifests without a plan file.",
                )
            )
        if not can_compare(secret.secret):
            raise KdeclareError(self._without_key(str(reference)))
        project = self.project
        value = resolve_reference(reference, project.folder, self.environ, project.limits)
        SCRUBBER.register(value)
        if matches(secret.secret, value):
            return value
        raise KdeclareError(
            error(
                "secret-changed",
                "A secret has changed",
                f"{reference} no longer stands for the value that was planned.",
                hint="Make a new plan.",
            )
        )

    def _without_key(self, reference: str) -> Diagnostic:
        if self.environ.get(KEY_VARIABLE):
            return error(
                OTHER_KEY,
                "A secret cannot be compared",
                f"The hash of {reference} was made with another key than the one in {KEY_VARIABLE}.",
                hint=f"Set {OLD_KEY_VARIABLE} to that key, or make a new plan.",
            )
        return error(
            KEY_MISSING,
            "The key for hashes of secrets is missing",
            f"The hash of {reference} was made with a key, and {KEY_VARIABLE} is not set.",
            hint=f"Set {KEY_VARIABLE}.",
        )


def seal_secrets(
    workspace: Workspace,
    desired: Sequence[Desired],
    state: State | None,
    connections: Connections,
    progress: Progress,
) -> tuple[tuple[Desired, ...], ProjectSecrets]:
    """What is desired with the hashes of its secrets, and where their values come from.

    Raises KdeclareError where a key is missing, and Fault where a system cannot be asked who it is.
    """
    owned = state.resources if state is not None else {}
    refuse_missing_key(stored_hashes(owned))
    if not has_secrets(desired):
        return tuple(desired), ProjectSecrets(workspace.project, workspace.environ)
    cluster_id = identify_system(observe(connections, ())) if state is None else state.cluster_id
    sealed = seal(desired, owned, hasher_of(workspace, state, cluster_id), progress)
    return sealed, ProjectSecrets(workspace.project, workspace.environ, known_values(sealed))


def hasher_of(workspace: Workspace, state: State | None, cluster_id: str) -> SecretHasher:
    """For new hashes: salted with the state's lineage, before the first one with where it is going to be."""
    if state is not None:
        return SecretHasher(state.lineage, workspace.secret_key_id)
    project = workspace.project
    return SecretHasher(f"{cluster_id}/{project.name}/{project.environment.name}", workspace.secret_key_id)
