"""Reading configs of topics and brokers, and the cluster-wide defaults."""

import pytest

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.manifests.project import Project
from kdeclare.providers.kafka.commands.describe_configs import ResourceQuery, describe_configs
from kdeclare.providers.kafka.commands.views import ConfigsView
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import make_connector

TOPIC, BROKER = ConfigScope.TOPIC, ConfigScope.BROKER
ALL_BROKERS = ConfigResource(BROKER, "")


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    made.create_topics([NewTopic(name, 1, 1, None, {}) for name in ("orders", "payments")])
    made.set_overrides(ConfigResource(TOPIC, "orders"), {"retention.ms": "1000"})
    made.set_overrides(ALL_BROKERS, {"log.cleaner.threads": "2"})
    made.set_overrides(ConfigResource(BROKER, "1"), {"log.cleaner.threads": "4"})
    return made


def describe(cluster: MemoryCluster, which: ResourceQuery, *, everything: bool = False) -> ConfigsView:
    workspace = Workspace(Project(), MemoryStore(), "lab:9092", make_connector(cluster))
    return describe_configs(workspace, which, everything=everything)


def get_values_by_resource(view: ConfigsView) -> dict[str, dict[str, str | None]]:
    return {item.resource.name: {k: e.value for k, e in item.entries.items()} for item in view.resources}


def test_describe_configs_without_names_returns_all_of_type(cluster: MemoryCluster) -> None:
    assert get_values_by_resource(describe(cluster, ResourceQuery(TOPIC))) == {
        "orders": {"retention.ms": "1000"},
        "payments": {},
    }
    assert get_values_by_resource(describe(cluster, ResourceQuery(BROKER))) == {
        "": {"log.cleaner.threads": "2"},
        "1": {"log.cleaner.threads": "4"},
        "2": {},
        "3": {},
    }


def test_describe_configs_selects_names_and_default(cluster: MemoryCluster) -> None:
    assert list(get_values_by_resource(describe(cluster, ResourceQuery(TOPIC, ("pay.*",))))) == ["payments"]
    assert list(get_values_by_resource(describe(cluster, ResourceQuery(BROKER, ("2",), default=True)))) == [
        "",
        "2",
    ]
    assert list(get_values_by_resource(describe(cluster, ResourceQuery(BROKER, default=True)))) == [""]


def test_describe_configs_everything_includes_defaults_with_source(cluster: MemoryCluster) -> None:
    topic = describe(cluster, ResourceQuery(TOPIC, ("orders",)), everything=True).resources[0].entries
    assert topic.keys() >= load_catalog(TOPIC).keys.keys()
    assert list(topic) == sorted(topic)
    assert topic["retention.ms"].source is ConfigSource.TOPIC
    assert topic["cleanup.policy"].source is ConfigSource.DEFAULT
    broker = describe(cluster, ResourceQuery(BROKER, ("1",)), everything=True).resources[0].entries
    assert (broker["log.cleaner.threads"].value, broker["log.cleaner.threads"].beneath) == ("4", "2")
    assert broker["node.id"].source is ConfigSource.STATIC


def test_describe_configs_rejects_unknown_names(cluster: MemoryCluster) -> None:
    with pytest.raises(KdeclareError, match="There is no topic 'order'"):
        describe(cluster, ResourceQuery(TOPIC, ("order", "payments")))
    with pytest.raises(KdeclareError, match="Broker 7 is not registered in the cluster"):
        describe(cluster, ResourceQuery(BROKER, ("1", "7")))


def test_describe_configs_warns_about_fenced_broker(cluster: MemoryCluster) -> None:
    cluster.fence(2)
    view = describe(cluster, ResourceQuery(BROKER))
    assert list(get_values_by_resource(view)) == ["", "1", "3"]
    assert [(d.code, d.subject, d.is_error) for d in view.diagnostics] == [("broker-not-serving", "2", False)]
    with pytest.raises(KdeclareError, match="Broker 2 is registered but not available") as refused:
        describe(cluster, ResourceQuery(BROKER, ("2", "1")))
    assert refused.value.diagnostics[0].is_error
