"""Which topics a policy is about."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kdeclare.core.patterns import Pattern, is_pattern
from kdeclare.policy.interface import RequestMetadata
from kdeclare.providers.kafka.topic.spec import is_legal_name


@dataclass(frozen=True, slots=True)
class Selector:
    """Topics by name and by label; nothing stated is everything.

    topics: exact names, or regular expressions (RE2) between slashes that match whole names.
    labels: all of these must be there.

    Raises ValueError for what is no regular expression; `wrong_patterns` tells beforehand.
    """

    topics: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = frozenset(text for text in self.topics if not is_pattern(text))
        patterns = tuple(Pattern(text[1:-1]) for text in self.topics if is_pattern(text))
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_patterns", patterns)

    def covers(self, request: RequestMetadata) -> bool:
        """Whether the topic of a request is among them; looks at its labels only if some are stated."""
        if self.topics and not self._names_topic(request.topic):
            return False
        return not self.labels or self.labels.items() <= request.labels.items()

    def _names_topic(self, topic: str) -> bool:
        return topic in self._names or any(pattern.matches(topic) for pattern in self._patterns)


def wrong_patterns(topics: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Selector's topics that are neither regular expressions nor names: their indices and the reasons."""
    for index, text in enumerate(topics):
        if is_pattern(text):
            try:
                Pattern(text[1:-1])
            except ValueError as wrong:
                yield index, str(wrong)
        elif not is_legal_name(text):
            yield index, "no topic has this name; a regular expression stands between slashes"


EVERYTHING = Selector()
