"""What a kind wants a manifest to say, so that generic code can edit the file and leave its layout alone."""

from dataclasses import dataclass
from typing import Protocol

from kdeclare.core.changes import FieldChange
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Path, Problem


@dataclass(frozen=True, slots=True)
class ValueEdit:
    """A field that is to have a value: a text, a whole number, null, or a list of them in that order.

    path: within the spec. Nothing is edited where the manifest says so already.
    """

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """A setting of which a manifest can say a value, elements that a list has or has not, or "no override".

    path: within the spec. fields: what changes of it, in that order; lists have no order. A setting that is
    deleted leaves the manifest, unless something beneath it would show then.
    """

    path: Path
    fields: tuple[FieldChange, ...]


FieldEdit = ValueEdit | SettingEdit


@dataclass(frozen=True, slots=True)
class ManifestEdits:
    """edits: in the order in which they are made. problems: what people are told; an error refuses them."""

    edits: tuple[FieldEdit, ...] = ()
    problems: tuple[Problem, ...] = ()


class DeclaredFields(Protocol):
    """What the manifest and the overlays of one resource declare."""

    def declares(self, path: Path) -> bool:
        """Whether they say something at a path within the spec; null says nothing."""
