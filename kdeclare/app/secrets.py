"""Where the values of secrets come from at apply."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdeclare.kinds.base import Desired
from kdeclare.kinds.secrets import Secret, matches
from kdeclare.kinds.wishes import UNKNOWN_CONFIG, Whole, as_secret
from kdeclare.manifests.project import Project
from kdeclare.manifests.substitution import resolve_reference
from kdeclare.model.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.model.jsontypes import Json
from kdeclare.model.scrubber import SCRUBBER


@dataclass(frozen=True)
class ProjectSecrets:
    """Resolves references again, relative to the project.

    known: hash to value, of the manifests loaded in this very process, literals among them.
    """

    project: Project
    environ: Mapping[str, str] = field(repr=False)
    known: Mapping[str, str] = field(default_factory=dict, repr=False)

    def reveal(self, secret: Mapping[str, Json]) -> str:
        """See `kinds.secrets.SecretSource`."""
        value = self.known.get(secret["secret"])
        if value is not None:
            return value
        reference = secret.get("reference")
        if reference is None:
            raise KdeclareError(
                error(
                    "literal-secret",
                    "A secret cannot be had again",
                    "The plan holds a secret that was written literally into a manifest.",
                    hint="Write ${env.NAME} or ${file.PATH}, or apply the manifests without a plan file.",
                )
            )
        project = self.project
        value = resolve_reference(reference, project.folder, self.environ, project.limits)
        SCRUBBER.register(value)
        if matches(secret["secret"], value):
            return value
        raise KdeclareError(
            error(
                "secret-changed",
                "A secret has changed",
                f"{reference} no longer stands for the value that was planned.",
                hint="Make a new plan.",
            )
        )


def known_secrets(desired: Iterable[Desired], unknown: Iterable[Diagnostic] = ()) -> dict[str, str]:
    """The secrets of loaded manifests, by hash.

    unknown: what was said of keys that the catalogue does not know, as the cluster may hold them secret.
    """
    doubtful = {(d.resource, d.subject) for d in unknown if d.code == UNKNOWN_CONFIG}
    found: dict[str, str] = {}
    for item in desired:
        for key, wish in getattr(item.body, "configs", {}).items():
            if isinstance(wish, Whole) and (str(item.id), key) in doubtful:
                wish = as_secret(str(item.id), key, wish)
            if isinstance(wish, Secret):
                found[wish.digest] = wish.value
    return found
