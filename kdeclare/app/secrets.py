"""Resolve the values of secrets for apply, and hash the secrets of manifests."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_hashes import (
    KEY_MISSING,
    KEY_VARIABLE,
    OLD_KEY_VARIABLE,
    OTHER_KEY,
    SecretHasher,
    can_compare,
    is_hash_of,
    require_key,
)
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.engine.observation import identify_system, observe
from kdeclare.engine.planning.secret_digests import (
    collect_secret_values,
    has_secrets,
    hash_secrets,
    list_stored_hashes,
)
from kdeclare.manifests.project import Project
from kdeclare.manifests.syntax.substitution import resolve_reference


@dataclass(frozen=True, slots=True)
class ProjectSecrets:
    """A `SecretSource` that resolves the references of secrets relative to the project folder.

    known: the secrets in the manifests loaded by this process, by hash, including literal secrets.
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
                    "Literal secret is not available",
                    "The value of a secret was a literal in a manifest, so the plan does not contain it.",
                    hint="Replace the literal with ${env.NAME} or ${file.PATH} and make a new plan, or apply "
                    "the manifests without a plan file.",
                )
            )
        if not can_compare(secret.secret):
            raise KdeclareError(self._build_key_error(str(reference)))
        project = self.project
        value = resolve_reference(reference, project.folder, self.environ, project.limits)
        SCRUBBER.register(value)
        if is_hash_of(secret.secret, value):
            return value
        raise KdeclareError(
            error(
                "secret-changed",
                "Secret has changed",
                f"The value of {reference} has changed since the plan was made.",
                hint="Make a new plan.",
            )
        )

    def _build_key_error(self, reference: str) -> Diagnostic:
        if self.environ.get(KEY_VARIABLE):
            return error(
                OTHER_KEY,
                "Secret cannot be compared",
                f"The hash of {reference} was computed with a different key than the one in {KEY_VARIABLE}.",
                hint=f"Set {OLD_KEY_VARIABLE} to the earlier key, or make a new plan.",
            )
        return error(
            KEY_MISSING,
            "Key for secret hashes is missing",
            f"The hash of {reference} was computed with a key, but {KEY_VARIABLE} is not set.",
            hint=f"Set {KEY_VARIABLE} to that key.",
        )


def seal_secrets(
    workspace: Workspace,
    desired: Sequence[DesiredResource],
    state: State | None,
    connections: Connections,
    progress: Progress,
) -> tuple[tuple[DesiredResource, ...], ProjectSecrets]:
    """Return the desired resources with hashed secrets, and a `SecretSource` for the values of the secrets.

    Raises KdeclareError if the state contains hashes made with a key, and no key is set. Raises Fault if the
    id of a system cannot be read.
    """
    owned_records = state.resources if state is not None else {}
    require_key(list_stored_hashes(owned_records))
    if not has_secrets(desired):
        return tuple(desired), ProjectSecrets(workspace.project, workspace.environ)
    cluster_id = identify_system(observe(connections, ())) if state is None else state.cluster_id
    sealed_resources = hash_secrets(
        desired, owned_records, make_secret_hasher(workspace, state, cluster_id), progress
    )
    return sealed_resources, ProjectSecrets(
        workspace.project, workspace.environ, collect_secret_values(sealed_resources)
    )


def make_secret_hasher(workspace: Workspace, state: State | None, cluster_id: str) -> SecretHasher:
    """Return the hasher for secrets.

    Its salt is the lineage of the state. If there is no state yet, the salt consists of the cluster id and
    the names of the project and environment.
    """
    if state is not None:
        return SecretHasher(state.lineage, workspace.secret_key_id)
    project = workspace.project
    return SecretHasher(f"{cluster_id}/{project.name}/{project.environment.name}", workspace.secret_key_id)
