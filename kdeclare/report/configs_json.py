"""What scripts read of ``config describe``, and of the configs of a topic."""

from collections.abc import Mapping
from typing import Any

from kdeclare.core.diagnostics import in_order
from kdeclare.engine.planning.plan_document import diagnostic_document
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry
from kdeclare.report.config_views import ConfigsView

FORMAT_VERSION = "1.0"
_ENTITY_TYPES: Mapping[ConfigScope, str] = {ConfigScope.TOPIC: "topics", ConfigScope.BROKER: "brokers"}


def configs_document(view: ConfigsView) -> dict[str, Any]:
    """Configs of resources (docs/schemas/config-describe.schema.json)."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": view.cluster,
        "resources": [
            {
                "entity_type": _ENTITY_TYPES[item.resource.scope],
                "entity_name": item.resource.name or None,
                "configs": config_documents(item.entries),
            }
            for item in view.resources
        ],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def config_documents(entries: Mapping[str, ConfigEntry]) -> list[dict[str, Any]]:
    """Keys by name; a sensitive value is null, as nobody is told it."""
    return [
        {
            "key": key,
            "value": None if entry.sensitive else entry.value,
            "source": entry.source.value,
            "sensitive": entry.sensitive,
            "read_only": entry.read_only,
            "beneath": entry.beneath,
        }
        for key, entry in sorted(entries.items())
    ]
