"""Kinds of objects: resources that have fields, and that are created and deleted as a whole.

Authors of providers import from this package. For a system whose whole state is read in one request, they can
use `ObjectSystem`, which also provides the collector.
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
