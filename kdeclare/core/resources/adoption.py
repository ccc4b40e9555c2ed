"""Adoption: taking ownership of a resource that exists and that this project has never applied.

If a resource matches its manifest, the first apply adopts it. If a resource differs from its manifest, it is
adopted and changed only if adoption is allowed, because the resource might belong to another team.
"""

from collections.abc import Collection, Iterable
from dataclasses import is_dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, denied, info
from kdeclare.core.resources.changes import Change, FieldChange, Reason
from kdeclare.core.resources.kind import DesiredResource

ADOPTION = "adoption"
"""The code of diagnostics about allowed and denied adoptions. A denied adoption blocks the change."""

_MAX_NAMED = 5


class SettingsLifecycle(BaseModel):
    """The lifecycle options for settings of an object that always exists, such as a broker."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    adopt: Annotated[
        bool,
        Field(
            description="Take ownership of settings that differ from the manifest and were never applied, "
            "and change them."
        ),
    ] = False


def allow_adoption(desired: DesiredResource) -> DesiredResource:
    """Return the resource with ``lifecycle: {adopt: true}``, regardless of its manifest."""
    body = desired.body
    if not is_dataclass(body) or isinstance(body, type) or not hasattr(body, "adopt") or body.adopt:
        return desired  # resources of some kinds are never owned
    return replace(desired, body=replace(body, adopt=True))


def report_adoption(
    desired: DesiredResource,
    fields: Iterable[FieldChange],
    *,
    settings: bool = False,
    recreated: bool = False,
) -> Diagnostic:
    """Return the diagnostic about adopting a resource that differs from its manifest.

    fields: the fields that differ. settings: whether the fields are settings of an object that always exists,
        such as a broker. recreated: whether the applied resource was deleted and a different resource now has
        the same name.
    """
    resource = str(desired.id)
    field_names = _format_field_names(fields)
    if settings:
        detail = f"{resource} has settings that this project never applied and that differ from the manifest"
    elif recreated:
        detail = (
            f"{resource} was deleted and created again outside kdeclare since it was last applied. "
            "The new resource differs from the manifest"
        )
    else:
        detail = f"{resource} exists, is not in the state of this project, and differs from the manifest"
    detail += f": {field_names}." if field_names else "."
    if getattr(desired.body, "adopt", False):
        allowed_detail = f"{detail} Adoption is allowed, so apply takes ownership and makes the change."
        return info(ADOPTION, "Adoption", allowed_detail, place=desired.source, resource=resource)
    return denied(
        ADOPTION,
        "Adoption not allowed",
        f"{detail} kdeclare does not change a resource that may belong to another team.",
        hint="To keep the live resource as it is, change the manifest to match (kdeclare import "
        "--include-declared writes such a manifest). To adopt the resource and change it, pass --adopt or "
        "set lifecycle.adopt: true.",
        place=desired.source,
        resource=resource,
    )


def adopt_settings(
    change: Change,
    desired: DesiredResource,
    adopted: Collection[str],
    drifted: Collection[str],
    otherwise: Reason,
) -> tuple[Change, Diagnostic]:
    """Set the reason for each changed setting. Return the change and a diagnostic about adopted settings.

    adopted: the paths of adopted settings. drifted: the paths of settings that drifted. otherwise: the reason
        for changing all other settings.
    """
    adoption = report_adoption(desired, (f for f in change.fields if f.path in adopted), settings=True)
    fields = tuple(
        f if f.path in adopted else replace(f, reason=Reason.DRIFTED if f.path in drifted else otherwise)
        for f in change.fields
    )
    blocked = change.blocked or (adoption.code if adoption.is_blocking else None)
    return replace(change, reason=Reason.ADOPT, fields=fields, blocked=blocked), adoption


def _format_field_names(fields: Iterable[FieldChange]) -> str:
    names = list(dict.fromkeys(field.path.removeprefix("configs.") for field in fields))
    more_count = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more_count} more" if more_count > 0 else "")
