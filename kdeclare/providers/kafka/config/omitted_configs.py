"""Warn about config keys whose values the cluster does not return."""

from collections.abc import Sequence

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.units import format_names


def warn_omitted_keys(desired: DesiredResource, changed: Sequence[str], kept: Sequence[str]) -> Diagnostic:
    """Return the warning about declared keys whose values the cluster does not return.

    changed: the keys that the plan sets. kept: the keys that the plan leaves as they were last applied.
    """
    texts = [f"The brokers do not return the values of some declared configs of {desired.id}."]
    if changed:
        texts.append(
            f"The plan shows {format_names(changed)} as unset, although the cluster may have a value, which "
            "can even be the declared value."
        )
    if kept:
        texts.append(f"kdeclare assumes that {format_names(kept)} did not change since the last apply.")
    return warning(
        "config-not-visible",
        "Configs not visible",
        " ".join(texts),
        place=desired.source,
        resource=str(desired.id),
    )
