"""Fields that kdeclare sets when it creates a resource and leaves alone afterwards.

A manifest lists these fields in ``lifecycle.ignoreChanges``. A kind with this option stores the paths in the
attribute ``ignored`` of its bodies, and implements `IgnoresChanges`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Annotated, Protocol, TypeAlias, runtime_checkable

from pydantic import BeforeValidator, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.adoption import SettingsLifecycle
from kdeclare.core.resources.kind import DesiredResource, SpecProblem
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.suggestions import format_alternatives, format_suggestion

IGNORED_CHANGES = "ignored-changes"
"""The code of the diagnostic that counts the differences that a plan ignores."""
UNKNOWN_IGNORED_FIELD = "unknown-ignored-field"


def _freeze_list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


IgnoredPaths: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_freeze_list),
    Field(
        description="Fields that kdeclare sets when it creates the resource and does not change afterwards, "
        "in the form that plans show, such as configs.retention.ms."
    ),
]
"""The type of ``lifecycle.ignoreChanges``.

The type is a tuple, which is hashable: if a default value is not hashable, pydantic makes a deep copy of it
for every manifest.
"""


class ConfigsLifecycle(SettingsLifecycle):
    """The lifecycle options of a kind whose manifests can list settings to ignore."""

    ignoreChanges: IgnoredPaths = ()  # noqa: N815


@runtime_checkable
class IgnoresChanges(Protocol):
    """A kind whose manifests can list fields that plans do not change after creation."""

    def ignore_fields(self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None) -> object:
        """Return the body without the ignored fields whose live values a plan must not change.

        If the resource does not exist, the body keeps all fields. The method is idempotent, and `Kind.diff`
        calls it. The diff does not change, adopt or release an ignored field.
        """


def leave_out_ignored(
    desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
) -> DesiredResource:
    """Return the resource without the ignored fields whose live values a plan must not change."""
    ignoring_kind = _find_ignoring_kind(KINDS[desired.id.kind]) if has_ignored_fields(desired) else None
    if ignoring_kind is None:
        return desired
    return replace(desired, body=ignoring_kind.ignore_fields(desired, live, owned))


def has_ignored_fields(desired: DesiredResource) -> bool:
    """Whether the manifest of the resource lists fields to ignore."""
    return bool(getattr(desired.body, "ignored", ()))


def keep_all_fields(desired: DesiredResource) -> DesiredResource:
    """Return the resource as if its manifest did not list any fields to ignore."""
    body = desired.body
    if not has_ignored_fields(desired) or not is_dataclass(body) or isinstance(body, type):
        return desired
    return replace(desired, body=replace(body, ignored=()))


def check_ignored_paths(
    resource: str,
    paths: Sequence[str],
    known_paths: Iterable[str],
    is_known: Callable[[str], bool] | None = None,
) -> tuple[SpecProblem, ...]:
    """Return an error for each path in ``lifecycle.ignoreChanges`` that is not a field of the resource.

    known_paths: the paths of the fields. is_known: recognizes further paths, such as keys with a prefix.
    """
    candidates = tuple(known_paths) if paths else ()
    return tuple(
        SpecProblem(
            ("lifecycle", "ignoreChanges", index),
            error(
                UNKNOWN_IGNORED_FIELD,
                "Unknown field in ignoreChanges",
                f"lifecycle.ignoreChanges of {resource} lists '{path}', which is not a field that kdeclare "
                "can change.",
                hint=format_suggestion(path, candidates)
                or f"Use {format_alternatives(dict.fromkeys(_shorten_path(c) for c in candidates))}.",
                resource=resource,
                subject=path,
            ),
        )
        for index, path in enumerate(paths)
        if path not in candidates and not (is_known is not None and is_known(path))
    )


def _shorten_path(path: str) -> str:
    """Return the path of a field. In the path of a mapping entry, replace the key with ``KEY``."""
    field, dot, _ = path.partition(".")
    return f"{field}.KEY" if dot else path


@cache
def _find_ignoring_kind(kind: object) -> IgnoresChanges | None:
    return kind if isinstance(kind, IgnoresChanges) else None
