"""Count live objects by type, such as topics, for summaries of a fleet."""

from collections.abc import Mapping

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import CountsObjects, LiveCodec
from kdeclare.core.policies.policy_subjects import format_kind
from kdeclare.core.provider.registry import load_codecs


@dataclass(frozen=True, slots=True)
class CountedSort:
    """A type of live objects that summaries count.

    one, many: the singular and plural noun for the objects, as displayed to users.
    internal_marker: see `CountsObjects`.
    """

    sort: str
    one: str
    many: str
    internal_marker: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectCount:
    """The number of objects of one type in a cluster.

    one, many: the singular and plural noun for the objects.
    count: the number of all objects, including internal objects.
    internal: the number of internal objects, which belong to the system itself.
    """

    one: str
    many: str
    count: int
    internal: int = 0

    @property
    def own(self) -> int:
        """The number of objects that are not internal."""
        return self.count - self.internal


def list_counted_sorts() -> tuple[CountedSort, ...]:
    """Return the object types of all installed providers. For each provider, the types are sorted by name."""
    return tuple(
        CountedSort(sort, *nouns, codec.internal_marker if isinstance(codec, CountsObjects) else None)
        for codec in load_codecs()
        for sort, nouns in sorted(_get_nouns(codec).items())
    )


def _get_nouns(codec: LiveCodec) -> Mapping[str, tuple[str, str]]:
    if isinstance(codec, CountsObjects):
        return codec.nouns
    return {sort: (format_kind(sort), _pluralize(format_kind(sort))) for sort in codec.sorts}


def _pluralize(noun: str) -> str:
    ends_in_consonant_y = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{noun[:-1]}ies" if ends_in_consonant_y else f"{noun}s"
