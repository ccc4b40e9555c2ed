"""What a rule's variables stand for in a request; only what rules speak of is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdeclare.core.policy_subjects import PolicyRequest
from kdeclare.policy.cel.vocabulary import NO_STATE, Vocabulary


@dataclass(frozen=True, slots=True)
class Wants:
    """What a rule reads: variables by name, a state's fields as ``after.size``.

    keys: of configs that it only looks up by names that stand in it, those names.
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Bindings:
    """The variables of one request after another, for rules that are asked about the same requests in turn:
    what one of them has read, the others need not read again."""

    def __init__(self) -> None:
        self._last: tuple[PolicyRequest | None, dict[str, object]] = (None, {})

    def of(self, request: PolicyRequest, wants: Wants) -> dict[str, object]:
        """What is wanted, by name; fields of a state that is null are left out.

        Raises what reading the request raises.
        """
        last, known = self._last
        if last is not request:
            known = {}
            self._last = (request, known)
        values: dict[str, object] = {}
        readers, converters = wants.vocabulary.readers, wants.vocabulary.converters
        for name in wants.names:
            if name in known:
                value = known[name]
            else:
                value = readers[name](request)
                if name in wants.keys and isinstance(value, Mapping) and type(value) is not dict:
                    # not all of it may be known, and the rule looks at no more than this
                    values[name] = {key: str(value[key]) for key in wants.keys[name] if key in value}
                    continue
                if name in converters and value is not NO_STATE and value is not None:
                    value = converters[name](value)
                known[name] = value
            if value is not NO_STATE:
                values[name] = value
        return values

    def forget(self) -> None:
        """Let go of the last request."""
        self._last = (None, {})
