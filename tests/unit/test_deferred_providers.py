"""Deferred providers: their definitions are imported only by commands that use them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.parts import Connections, LiveState, PlanOptions, SystemSettings
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs
from kdeclare.core.plans.state import State
from kdeclare.core.provider import installed_providers, provider_queries
from kdeclare.core.provider.deferred_provider import DeferredProvider
from kdeclare.core.provider.installed_providers import load_providers, resolve_provider
from kdeclare.core.provider.provider import Provider
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.live import ConnectorSelection, ConnectorState
from kdeclare.providers.connect.definition import PROVIDER as CONNECT
from kdeclare.providers.connect.provider import PROVIDER as CONNECT_OUTLINE
from kdeclare.providers.kafka.kind_groups import KIND_GROUPS
from kdeclare.testing.world import declare

CONNECT_MODULES = ["kdeclare.providers.connect.definition", "kdeclare.providers.connect.client.port"]
LATE_MODULES = (
    *CONNECT_MODULES,
    "kdeclare.providers.schema_registry.definition",
    "kdeclare.providers.schema_registry.client.port",
    *(f"{group.package}.definition" for group in KIND_GROUPS),
    "kdeclare.policy.cel.rule",
)
IMPACT_MODULES = (
    "kdeclare.providers.kafka.impact.topic_logs",
    "kdeclare.providers.kafka.usage.topic_purpose",
)
"""What only commands import whose changes have an impact."""

RUN_COMMANDS = f"""
import sys
from kdeclare.cli.main import main
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.testing import MemoryCluster

cluster = MemoryCluster({{1: "a"}})
connection.connect_cluster = lambda *_: cluster
for command in (["validate"], ["apply", "--yes"], ["plan"]):
    assert main(command) == 0, command
assert not [name for name in {IMPACT_MODULES} if name in sys.modules]
for command in (["rollback", "--yes"], ["history"]):
    assert main(command) == 0, command
print([name for name in {LATE_MODULES} if name in sys.modules], file=sys.stderr)
"""

TOPIC = """
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: orders}
spec: {partitions: 1, replicationFactor: 1}
"""


def run_commands(folder: Path, environment: str) -> str:
    """Run commands in a new process, and return which of `LATE_MODULES` they imported."""
    (folder / "manifests").mkdir()
    (folder / "manifests" / "orders.yaml").write_text(TOPIC)
    project = "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\nspec:\n  environments:\n"
    (folder / "kdeclare.yaml").write_text(f"{project}    lab: {{{environment}}}\n")
    ran = subprocess.run([sys.executable, "-c", RUN_COMMANDS], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.splitlines()[-1]


@pytest.mark.slow
def test_commands_for_topics_import_only_what_topics_need(tmp_path: Path) -> None:
    assert run_commands(tmp_path, "bootstrapServers: 'lab:9092'") == "[]"


@pytest.mark.slow
def test_configured_systems_are_imported_because_their_objects_can_refer_to_topics(tmp_path: Path) -> None:
    settings = "bootstrapServers: 'lab:9092', connect: {eu: {urls: ['http://127.0.0.1:1']}}"
    assert run_commands(tmp_path, settings) == str(CONNECT_MODULES)


def test_definitions_are_as_outlined() -> None:
    definitions = [resolve_provider(provider) for provider in load_providers()]
    assert [definition.name for definition in definitions] == ["kafka", "connect", "schema_registry"]
    assert CONNECT in definitions


class Hooks(PlanHooks):
    """Hooks that can be recognized."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Take the inputs, as all hooks do."""


def make_inputs(
    *, state: State | None = None, live: object = None, connections: Connections, declared: str = ""
) -> PlanInputs:
    spec: dict[str, Any] = {"connect": "eu", "class": "A"}
    resources = (declare(declared, "orders", spec, {}),) if declared else ()
    parts = () if live is None else (live,)
    return PlanInputs(resources, state, LiveState(*parts), connections, PlanOptions())


OFFERED = Connections(
    openers={ConnectClients: lambda: ConnectClients(lambda _: None)},  # type: ignore[arg-type,return-value]
    settings={ConnectClients: SystemSettings.DEFAULT},
)
OWNER = State("", 1, "", resources={"Connector/orders": None})  # type: ignore[dict-item]


@pytest.fixture
def _hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the Connect provider, with hooks that can be recognized."""
    definition = replace(CONNECT, start_plan=Hooks)
    monkeypatch.setattr(provider_queries, "load_providers", lambda: (CONNECT_OUTLINE,))
    monkeypatch.setattr(provider_queries, "resolve_provider", lambda provider: definition)


@pytest.mark.usefixtures("_hooked")
@pytest.mark.parametrize(
    ("inputs", "takes_part"),
    [
        ({"connections": OFFERED}, False),
        ({"connections": OFFERED, "declared": "Connector"}, True),
        ({"connections": OFFERED, "state": OWNER}, True),
        ({"connections": OFFERED, "live": ConnectorState()}, True),
        ({"connections": Connections(openers={ConnectClients: lambda: None})}, True),
        ({"connections": Connections(ConnectClients(lambda _: None))}, True),  # type: ignore[arg-type,return-value]
        ({"connections": Connections("another system")}, False),
    ],
    ids=["unused", "declared", "owned", "read", "configured", "connected", "not connected"],
)
def test_deferred_provider_takes_part_in_plans_that_concern_it(
    inputs: dict[str, Any], takes_part: bool
) -> None:
    hooks = provider_queries.start_plan(make_inputs(**inputs))
    assert [type(hook) for hook in hooks] == [Hooks] * takes_part


def test_collectors_of_deferred_provider_are_found_by_selection_and_by_live_state() -> None:
    def is_of_connect(collector: object) -> bool:
        return any(collector is own for own in CONNECT.collectors)

    selection = ConnectorSelection(frozenset())
    assert not any(map(is_of_connect, provider_queries.find_collectors(OFFERED)))
    assert any(map(is_of_connect, provider_queries.find_collectors(OFFERED, [selection])))
    assert not any(map(is_of_connect, provider_queries.find_collectors_of(LiveState())))
    assert any(map(is_of_connect, provider_queries.find_collectors_of(LiveState(ConnectorState()))))


def outline(definition: Provider, **other: Any) -> DeferredProvider:
    """An outline of the definition, with other values for some parts."""
    parts: dict[str, Any] = {
        "package": "theirs",
        "kinds": (),
        "operation_types": (),
        "import_definition": lambda: definition,
        **other,
    }
    return DeferredProvider("theirs", **parts)


def fail_to_import() -> Provider:
    raise ImportError("no module named 'shelves'")


@pytest.mark.parametrize(
    ("provider", "detail"),
    [
        (
            outline(Provider("theirs", (), ()), kinds=("Shelf",)),
            "states kinds=('Shelf',), but its definition",
        ),
        (outline(Provider("ours", (), ())), "states name='theirs', but its definition has 'ours'"),
        (outline(Provider("theirs", (), (), builds_on=("kafka",))), "states builds_on=()"),
        (outline(Provider("theirs", (), (), guards={"a": "b"})), "a definition with guards"),
        (outline(CONNECT, import_definition=fail_to_import), "ImportError: no module named 'shelves'"),
    ],
    ids=["kinds", "name", "builds_on", "guards", "import"],
)
def test_definition_that_differs_from_outline_is_refused(provider: DeferredProvider, detail: str) -> None:
    with pytest.raises(KdeclareError) as raised:
        installed_providers.resolve_provider(provider)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "provider-broken"
    assert detail in diagnostic.detail
