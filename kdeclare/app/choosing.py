"""Which topics a command means: exact names, and regular expressions for whole names.

Kafka's own tools take every name for a regular expression, so that ``a.b`` also means ``axb``. Here a text
that could be a topic's name is that name; only one with other characters is an expression.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdeclare.cluster.port import Cluster
from kdeclare.manifests.suggest import did_you_mean
from kdeclare.model.diagnostics import Diagnostic, KdeclareError, Place, error
from kdeclare.model.live import Topic

_COMMA = re.compile(r",(?![^{\[]*[}\]])")
_NAME = re.compile(r"[a-zA-Z0-9._-]*")


@dataclass(frozen=True, slots=True)
class There:
    """What the cluster has of what was named.

    topics: by name, all that is meant and there. others: all names there are, where some is missing.
    """

    topics: Mapping[str, Topic]
    others: tuple[str, ...] = ()

    def meant(self, text: str) -> tuple[str, ...]:
        """The topics that a name or an expression stands for; a name stands for itself, there or not."""
        if _NAME.fullmatch(text):
            return (text,)
        pattern = re.compile(text)
        return tuple(sorted(name for name in self.topics if pattern.fullmatch(name))) or (text,)


def chosen(cluster: Cluster, texts: Sequence[str]) -> There:
    """Look for what is named. Raises KdeclareError for what is no regular expression, and Fault."""
    patterns = [_pattern(text) for text in texts if not _NAME.fullmatch(text)]
    names = [text for text in texts if _NAME.fullmatch(text)]
    everything = cluster.topics() if patterns else {}
    named = {name: everything[name] for name in names if name in everything}
    if not patterns and names:
        named = dict(cluster.topics(names))
    matching = {name: topic for name, topic in everything.items() if any(p.fullmatch(name) for p in patterns)}
    topics = {**named, **matching}
    missing = any(name not in topics for name in names)
    return There(topics, tuple(everything or cluster.topics()) if missing else ())


def separated(text: str) -> list[str]:
    """Names with commas between; an expression keeps its commas outside of ``[…]`` and ``{…}`` only."""
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


def not_there(text: str, there: There, place: Place | None = None) -> Diagnostic:
    """What to say of a topic that does not exist, or of an expression that no topic matches."""
    if not _NAME.fullmatch(text):
        detail = f"No topic's name matches '{text}' as a whole."
        return error("unknown-topic", "No such topic", detail, place=place, resource=f"Topic/{text}")
    return error(
        "unknown-topic",
        "No such topic",
        f"The cluster has no topic '{text}'.",
        hint=did_you_mean(text, there.others) or "kdeclare topic list shows all of them.",
        place=place,
        resource=f"Topic/{text}",
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as wrong:
        raise KdeclareError(
            error(
                "bad-pattern",
                "Not a regular expression",
                f"'{text}' is neither a topic's name nor a regular expression: {wrong}.",
            )
        ) from None
