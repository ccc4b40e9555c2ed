"""Objects, which are resources with fields that are created and deleted as a whole.

Authors of providers import their base classes from this package. If all state of a system is read in one
request, `ObjectSystem` provides the collector and the kinds, too.
"""

from kdeclare.core.resources.objects.kind import ObjectKind
from kdeclare.core.resources.objects.manifest_text import warn_literal_secret
from kdeclare.core.resources.objects.operation import get_fields
from kdeclare.core.resources.objects.values import (
    Fields,
    ObjectArgs,
    ObjectBody,
    ObjectRecord,
    ObjectSpec,
    ObjectWrite,
)

__all__ = [
    "Fields",
    "ObjectArgs",
    "ObjectBody",
    "ObjectKind",
    "ObjectRecord",
    "ObjectSpec",
    "ObjectWrite",
    "get_fields",
    "warn_literal_secret",
]
