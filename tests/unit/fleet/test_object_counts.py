"""Codecs determine what the summaries of fleets count."""

from collections.abc import Iterator

import pytest

from kdeclare.core.provider.installed_providers import find_providers, load_providers, use_providers
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.object_system import (
    ObjectCollector,
    ObjectSystem,
    SystemObjectKind,
    SystemObjects,
)
from kdeclare.core.resources.objects import ObjectSpec
from kdeclare.fleet.object_counts import CountedSort, list_counted_sorts
from tests.loaded_providers import replace_load_providers
from tests.unit.fleet.test_foreign_provider import KITCHEN

TOPICS = CountedSort("Topic", "topic", "topics", '"internal":true')
CONNECTORS = CountedSort("Connector", "connector", "connectors")
SCHEMAS = CountedSort("Schema", "schema", "schemas")


@pytest.fixture
def kitchen_provider() -> Iterator[None]:
    use_providers((*find_providers(), KITCHEN))
    yield
    use_providers(None)


def test_counted_sorts_of_built_in_providers_have_codecs() -> None:
    assert list_counted_sorts() == (TOPICS, CONNECTORS, SCHEMAS)


@pytest.mark.usefixtures("kitchen_provider")
def test_codec_names_counted_and_internal_objects() -> None:
    assert list_counted_sorts() == (
        TOPICS,
        CountedSort("Jars", "jar", "jars", '"made":"house"'),
        CountedSort("Kettle", "kettle", "kettles", '"made":"house"'),
        CONNECTORS,
        SCHEMAS,
    )


def test_codec_without_names_uses_kind_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = ObjectSystem("doors", type("Doors", (), {}), SystemObjects)
    kinds = [SystemObjectKind(system, name, ObjectSpec) for name in ("FrontDoor", "KeyPolicy", "Alley")]
    provider = Provider("doors", tuple(kinds), (), collectors=(ObjectCollector(system, kinds),))
    providers = (*load_providers(), provider)
    replace_load_providers(monkeypatch, lambda: providers)
    assert list_counted_sorts() == (
        TOPICS,
        CONNECTORS,
        SCHEMAS,
        CountedSort("Alley", "alley", "alleys"),
        CountedSort("FrontDoor", "front door", "front doors"),
        CountedSort("KeyPolicy", "key policy", "key policies"),
    )
