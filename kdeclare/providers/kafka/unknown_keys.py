"""Config keys that the catalogue does not know: the live cluster's own word wins over it."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.ids import ResourceId
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.config.wishes import UNKNOWN_CONFIG
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.port import Cluster, ConfigQuery


def weighed(
    cluster: Cluster, live: KafkaState, diagnostics: tuple[Diagnostic, ...], *, preflight: bool
) -> tuple[Diagnostic, ...]:
    """The diagnostics without the unknown keys that this cluster knows.

    Without a single topic to ask about, a topic's key is left to the preflight, as a warning.
    """
    doubtful: dict[ConfigScope, set[str]] = {}
    for item in diagnostics:
        if item.code == UNKNOWN_CONFIG and item.subject:
            doubtful.setdefault(_scope(item), set()).add(item.subject)
    known = {scope: _known(cluster, live, scope, keys) for scope, keys in doubtful.items()}
    result = []
    for item in diagnostics:
        if item.code != UNKNOWN_CONFIG or not item.subject:
            result.append(item)
        elif known[_scope(item)] is None and preflight:
            result.append(replace(item, severity=Severity.WARNING))
        elif item.subject not in (known[_scope(item)] or ()):
            result.append(item)
    return tuple(result)


def _scope(item: Diagnostic) -> ConfigScope:
    return find_config_scope(ResourceId.parse(item.resource or "").kind) or ConfigScope.TOPIC


def _known(cluster: Cluster, live: KafkaState, scope: ConfigScope, keys: set[str]) -> set[str] | None:
    """Those of ``keys`` that the cluster describes; None where there is nothing to ask about.

    One topic knows all topic keys; a broker knows a plug-in's only where it is in use.
    """
    names = sorted(live.topics)[:1]
    if scope is ConfigScope.BROKER:
        names = [str(broker.id) for broker in live.cluster.brokers if not broker.fenced]
    if not names:
        return None
    described: Mapping[ConfigResource, Mapping[str, object]] = cluster.configs(
        [ConfigQuery(ConfigResource(scope, name), frozenset(keys)) for name in names]
    )
    return keys & {key for entries in described.values() for key in entries}
