"""The topics and users that the config of a connector names, and the schemas of the topics."""

import re
from collections.abc import Iterator, Mapping, Set

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.footprint import Access, FootprintEntry, Key, Prefix
from kdeclare.core.patterns import Pattern, PatternError, compile_pattern
from kdeclare.providers.connect.connector.settings import Setting

TOPIC = "Topic"
"""The kind of topics, which is also their type in footprints."""

_SUBJECT, _VERSION = "schema-registry.subject", "schema-registry.version"
"""The types that subjects and schema versions have in the footprints of the Schema Registry provider.

The Connect provider does not import that provider, so the types are repeated here. The objects have the
names ``REGISTRY/SUBJECT`` and ``REGISTRY/SUBJECT/FINGERPRINT``.
"""

_LIST_KEY = "topics"
_NAME_KEYS = ("topic", "kafka.topic", "errors.deadletterqueue.topic.name")
_REGEX_KEY = "topics.regex"
_PLACEHOLDER_START = "${"


def list_topics(config: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the topics in a config. Secrets and placeholders are left out."""
    texts = [config.get(key) for key in _NAME_KEYS]
    listed = config.get(_LIST_KEY)
    if isinstance(listed, str):
        texts += listed.split(",")
    names = (text.strip() for text in texts if isinstance(text, str))
    return frozenset(name for name in names if name and _PLACEHOLDER_START not in name)


def list_topic_entries(
    config: Mapping[str, object], access: Access = Access.REQUIRES
) -> Iterator[FootprintEntry]:
    """Yield the footprint entries of the topics in a config. access: the access to the named topics.

    A connector does not necessarily use every topic that matches ``topics.regex``. Therefore, matching topics
    only affect the order of operations.
    """
    for name in sorted(list_topics(config)):
        yield FootprintEntry(TOPIC, name, access)
    regex = config.get(_REGEX_KEY)
    if isinstance(regex, str) and regex and _PLACEHOLDER_START not in regex:
        yield FootprintEntry(TOPIC, _compile_regex(regex), Access.AFTER)


@dataclass(frozen=True, slots=True)
class TopicReferences:
    """The topics that a config refers to, by name or with ``topics.regex``.

    is_complete: whether the config certainly refers to no other topics. Placeholders can refer to any topic,
        and so can regular expressions that RE2 does not support.
    """

    topics: frozenset[str]
    is_complete: bool


def find_topic_references(config: Mapping[str, object], topics: Set[str]) -> TopicReferences:
    """Return which of the given topics a config refers to."""
    named = list_topics(config) & topics
    texts = (config.get(key) for key in (*_NAME_KEYS, _LIST_KEY, _REGEX_KEY))
    is_complete = not any(isinstance(text, str) and _PLACEHOLDER_START in text for text in texts)
    regex = config.get(_REGEX_KEY)
    if isinstance(regex, str) and regex and _PLACEHOLDER_START not in regex:
        pattern = _compile_regex(regex)
        if not isinstance(pattern, Pattern):
            return TopicReferences(named, is_complete=False)
        named |= {topic for topic in topics if pattern.matches(topic)}
    return TopicReferences(named, is_complete)


def list_schema_entries(config: Mapping[str, object]) -> Iterator[FootprintEntry]:
    """Yield the footprint entries of the schemas of the topics in a config.

    The subject of a schema is ``TOPIC-key`` or ``TOPIC-value``, as with the default TopicNameStrategy of
    serializers. The registry can be any registry of the environment. A connector does not necessarily use
    these schemas. Therefore, they only affect the order of operations.
    """
    topics = sorted(map(re.escape, list_topics(config)))
    if topics:
        subjects = f"[^/]*/({'|'.join(topics)})-(key|value)"
        yield FootprintEntry(_SUBJECT, compile_pattern(subjects), Access.AFTER)
        yield FootprintEntry(_VERSION, compile_pattern(f"{subjects}/.*"), Access.AFTER)


def _compile_regex(regex: str) -> Key:
    """Convert a regular expression in Java's syntax to a topic pattern.

    If RE2 does not support the expression, the pattern matches all topics.
    """
    try:
        return compile_pattern(regex)
    except PatternError:
        return Prefix("")


_OVERRIDE = re.compile(r"(producer|consumer|admin)\.override\.sasl\.jaas\.config")
_USER_NAME = re.compile(r"""\busername\s*=\s*(?:"([^"$]+)"|'([^'$]+)'|([^\s;"'$]+))""")


def list_override_users(config: Mapping[str, Setting]) -> frozenset[str]:
    """Return the users that a connector's clients authenticate as instead of the worker's user.

    By default, the clients authenticate as the user of the worker, which kdeclare does not know.
    """
    values = (
        setting if isinstance(setting, str) else setting.value
        for key, setting in config.items()
        if _OVERRIDE.fullmatch(key)
    )
    matches = (_USER_NAME.search(value) for value in values)
    return frozenset(
        next(group for group in match.groups() if group is not None) for match in matches if match is not None
    )
