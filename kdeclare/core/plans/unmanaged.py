"""Live objects that a project neither declares nor owns."""

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UnmanagedObject:
    """A live object that the project neither declares nor owns, or a group of such objects.

    kind: the kind that could declare the object. name: the name of the object, or of the group.
    count: the number of objects; more than 1 only for a group, such as the ACL bindings of one principal.
    """

    kind: str
    name: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class UnmanagedListing:
    """The unmanaged objects of all systems, sorted by kind and name.

    unread: a sentence for each object or system that could not be read. The list is then incomplete.
    """

    objects: tuple[UnmanagedObject, ...]
    unread: tuple[str, ...] = ()
