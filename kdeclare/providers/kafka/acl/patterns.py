"""Determine whether one binding matches every resource that another binding matches."""

from collections.abc import Iterable

from kdeclare.providers.kafka.acl.binding import ANY_NAME, LITERAL, PREFIXED, Binding


class PatternIndex:
    """An index of binding patterns that quickly finds a pattern that covers another pattern."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._patterns = {(b.resource_type, b.name, b.pattern) for b in bindings}

    def covers(self, binding: Binding) -> bool:
        """Return whether a pattern of the index matches every resource that the binding matches."""
        resource_type, name, pattern = binding[:3]
        if (resource_type, ANY_NAME, LITERAL) in self._patterns or binding[:3] in self._patterns:
            return True
        if (name, pattern) == (ANY_NAME, LITERAL):
            return False
        return any((resource_type, name[:n], PREFIXED) in self._patterns for n in range(1, len(name) + 1))
