"""What one resource is made of: its manifest, overlays over it, and defaults beneath."""

from dataclasses import dataclass, field
from functools import cached_property, reduce

from yaml.nodes import Node

from kdeclare.core.ids import ResourceId
from kdeclare.manifests.defaults import Defaults, labels_of
from kdeclare.manifests.filling import fill
from kdeclare.manifests.overlays import merge, without_identity
from kdeclare.manifests.reading import Reader


@dataclass(frozen=True, slots=True)
class Inherited:
    """What one Defaults manifest gives to a resource: a document with a spec and nothing else."""

    name: str
    root: Node = field(repr=False, compare=False, hash=False)


@dataclass(frozen=True)
class Layers:
    """Documents as they were composed.

    base: the manifest. overlays: what is merged over it, in that order. defaults: what is filled in where
    those say nothing, what counts most first.
    """

    base: Node = field(repr=False, compare=False)
    overlays: tuple[Node, ...] = field(default=(), repr=False, compare=False)
    defaults: tuple[Inherited, ...] = ()

    @cached_property
    def merged(self) -> Node:
        """What its own documents say for the environment; every node has the place that it came from."""
        return reduce(merge, map(without_identity, self.overlays), self.base)

    @cached_property
    def effective(self) -> Node:
        """What holds in the environment, defaults among it."""
        return reduce(fill, (given.root for given in self.defaults), self.merged)


def inherited(
    resource: ResourceId, merged: Node, defaults: Defaults, reader: Reader
) -> tuple[Inherited, ...]:
    """What a resource whose own documents say ``merged`` gets from defaults."""
    given = defaults.covering(resource, labels_of(merged, reader))
    offers = zip(given, defaults.offers(given, merged), strict=True)
    return tuple(Inherited(one.name, root) for one, root in offers)
