"""Named endpoints: plans and states are bound to their ids, and one that does not respond blocks little."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, RootModel

from kdeclare.core.live.endpoints import EndpointStatus
from kdeclare.core.live.faults import Outcome
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType
from kdeclare.core.provider.installed_providers import InstalledProvider, find_providers, use_providers
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.endpoint_choice import report_unreachable_endpoint, withhold_resource
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.object_system import (
    ObjectCollector,
    ObjectSystem,
    SystemObjectKind,
    SystemObjects,
)
from kdeclare.core.resources.objects import Fields, ObjectSpec, ObjectWrite
from kdeclare.core.resources.owned_record import OwnedRecord
from tests.unit.cli.command_line import CommandLine


@dataclass
class Site:
    """A system of gates. It can be down."""

    id: str
    gates: dict[str, Fields] = field(default_factory=dict)
    is_down: bool = False


SITES: dict[str, Site] = {}
"""The systems behind the URLs of endpoints."""


class SiteSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    url: str


class SitesSettings(RootModel[dict[str, SiteSettings]]):
    """The named sites of an environment."""

    model_config = ConfigDict(frozen=True)
    root: dict[str, SiteSettings] = {}


@dataclass(frozen=True)
class Gates(SystemObjects):
    sites: Mapping[str, EndpointStatus] = field(default_factory=dict)


@dataclass(frozen=True)
class SiteConnection:
    """A connection to all named sites. A gate belongs to the site before the dot in its name."""

    urls: tuple[tuple[str, str], ...]

    def open(self, timeout_s: float) -> "SiteConnection":
        return self

    def read(self) -> Gates:
        sites = {name: SITES[url] for name, url in self.urls}
        objects = {
            ResourceId("Gate", f"{name}.{gate}"): fields
            for name, site in sites.items()
            if not site.is_down
            for gate, fields in site.gates.items()
        }
        statuses = {
            f"sites/{name}": EndpointStatus(problem="it is closed")
            if site.is_down
            else EndpointStatus(site.id)
            for name, site in sites.items()
        }
        return Gates(objects, sites=statuses)

    def write(self, writes: Sequence[ObjectWrite], *, validate_only: bool) -> Sequence[Outcome]:
        for write in writes if not validate_only else ():
            name, _, gate = write.id.name.partition(".")
            gates = SITES[dict(self.urls)[name]].gates
            if write.fields is None:
                del gates[gate]
            else:
                gates[gate] = {**gates.get(gate, {}), **write.fields}
        return [None for _ in writes]


class GateSpec(ObjectSpec):
    """The spec of a gate. A gate can lead to another gate."""

    width: int = 1
    leadsTo: str | None = None  # noqa: N815


class GateCollector(ObjectCollector):
    """Lists the sites as endpoints."""

    def list_endpoints(self, live: LiveState) -> Mapping[str, EndpointStatus]:
        gates = live.find(Gates)
        return gates.sites if gates is not None else {}


class GateHooks(PlanHooks):
    """Withholds the gates of sites that are down."""

    def __init__(self, inputs: PlanInputs) -> None:
        self._sites = live.sites if (live := inputs.live.find(Gates)) else {}

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        endpoint = f"sites/{resource.name.partition('.')[0]}"
        if resource.kind != "Gate" or not self._sites[endpoint].problem:
            return None
        problem = report_unreachable_endpoint(endpoint, self._sites[endpoint].problem, str(resource))
        return withhold_resource(problem, desired, owned)


SYSTEM = ObjectSystem("gates", SiteConnection, Gates)
GATE = SystemObjectKind(SYSTEM, "Gate", GateSpec, references={"leadsTo": "Gate"})


def locate_sites(settings: SitesSettings, context: ConnectionContext) -> SiteConnection:
    return SiteConnection(tuple((name, site.url) for name, site in settings.root.items()))


CONNECTION = ConnectionType(SiteConnection, SitesSettings, locate_sites, environment_field="sites")
PROVIDER = Provider(
    "sites",
    (GATE,),
    GATE.operation_types,
    api_version="sites.example/v1",
    connection=CONNECTION,
    collectors=(GateCollector(SYSTEM, (GATE,)),),
    start_plan=GateHooks,
)


@pytest.fixture
def kdeclare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    """A project with two sites. The gate us.side leads to the gate eu.main, and us.back leads nowhere."""
    use_providers((*find_providers(), InstalledProvider("sites", "", "", f"{__name__}:PROVIDER")))
    SITES.clear()
    SITES.update({"eu:1": Site("EU-1"), "us:1": Site("US-1")})
    line = CommandLine(tmp_path, capsys, monkeypatch)
    write_project(line)
    line.write("manifests/main.yaml", "Gate", "eu.main", width=2)
    line.write("manifests/side.yaml", "Gate", "us.side", leadsTo="eu.main")
    line.write("manifests/back.yaml", "Gate", "us.back")
    yield line
    use_providers(None)


def write_project(line: CommandLine, eu: str = "eu:1") -> None:
    sites = {"eu": {"url": eu}, "us": {"url": "us:1"}}
    environment = {"bootstrapServers": "lab:9092", "sites": sites}
    line.write("kdeclare.yaml", "Project", "shop", environments={"lab": environment})


def read_codes(out: str) -> dict[str, str]:
    return {d["resource"]: d["code"] for d in json.loads(out)["diagnostics"]}


def test_plan_and_state_record_ids_of_endpoints(kdeclare: CommandLine) -> None:
    planned = kdeclare("plan", "--format", "json", "--out", "saved.plan")
    assert planned.code == 0, planned.err
    assert json.loads(planned.out)["endpoints"] == {"sites/eu": "EU-1", "sites/us": "US-1"}
    applied = kdeclare("apply", "saved.plan", "--yes")
    assert applied.code == 0, applied.err
    state = json.loads(next((kdeclare.folder / "state").rglob("state.json")).read_text())
    assert state["endpoints"] == {"sites/eu": "EU-1", "sites/us": "US-1"}
    assert kdeclare("plan").out.startswith("No changes.")


def test_state_of_another_endpoint_is_refused(kdeclare: CommandLine) -> None:
    assert kdeclare("apply", "--yes").code == 0
    SITES["eu:1"].id = "EU-2"
    refused = kdeclare("plan")
    assert refused.code == 1
    assert "The plan or state was made for sites/eu with the id EU-1, but sites/eu now has the id EU-2." in (
        refused.err
    )
    assert kdeclare("rollback", "--yes").code == 1
    assert SITES["us:1"].gates.keys() == {"side", "back"}, "nothing was rolled back"


def test_saved_plan_of_another_endpoint_is_refused(kdeclare: CommandLine) -> None:
    assert kdeclare("plan", "--out", "saved.plan").code == 0
    SITES["eu:2"] = Site("EU-2")
    write_project(kdeclare, "eu:2")
    refused = kdeclare("apply", "saved.plan", "--yes")
    assert refused.code == 1
    assert "other-endpoint" in kdeclare("apply", "saved.plan", "--yes", "--format", "json").out
    assert not SITES["eu:2"].gates


def test_unreachable_endpoint_blocks_its_resources_and_their_dependents(kdeclare: CommandLine) -> None:
    SITES["eu:1"].is_down = True
    planned = kdeclare("plan", "--format", "json")
    assert planned.code == 1
    assert read_codes(planned.out) == {"Gate/eu.main": "endpoint-unreachable"}
    changes = {c["id"]: c.get("blocked") for c in json.loads(planned.out)["changes"]}
    assert changes == {"Gate/us.back": None, "Gate/us.side": "endpoint-unreachable"}
    assert json.loads(planned.out)["endpoints"] == {"sites/us": "US-1"}


def test_rest_of_plan_is_applied_without_unreachable_endpoint(kdeclare: CommandLine) -> None:
    SITES["eu:1"].is_down = True
    applied = kdeclare("apply", "--yes")
    assert applied.code == 5, "a partial result"
    assert "sites/eu did not respond: it is closed." in applied.err + applied.out
    assert SITES["us:1"].gates.keys() == {"back"}
    SITES["eu:1"].is_down = False
    assert kdeclare("apply", "--yes").code == 0
    assert SITES["us:1"].gates.keys() == {"back", "side"}


def test_plan_file_with_unreachable_endpoint_can_be_applied(kdeclare: CommandLine) -> None:
    SITES["eu:1"].is_down = True
    assert kdeclare("plan", "--out", "saved.plan").code == 1
    assert kdeclare("apply", "saved.plan", "--yes").code == 5
    assert SITES["us:1"].gates.keys() == {"back"}


def test_orphan_of_unreachable_endpoint_stays_owned(kdeclare: CommandLine) -> None:
    assert kdeclare("apply", "--yes").code == 0
    SITES["eu:1"].is_down = True
    (kdeclare.folder / "manifests/main.yaml").unlink()
    (kdeclare.folder / "manifests/side.yaml").unlink()
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 5
    assert SITES["us:1"].gates.keys() == {"back"}
    SITES["eu:1"].is_down = False
    assert SITES["eu:1"].gates.keys() == {"main"}
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
    assert not SITES["eu:1"].gates


def test_unknown_field_of_endpoint_has_a_position(kdeclare: CommandLine) -> None:
    text = (kdeclare.folder / "kdeclare.yaml").read_text()
    (kdeclare.folder / "kdeclare.yaml").write_text(text.replace("url: us:1", "ulr: us:1"))
    refused = kdeclare("validate")
    assert refused.code == 1
    assert "kdeclare.yaml:" in refused.err
    assert "Did you mean 'url'?" in refused.err


def test_secret_of_endpoint_is_not_repeated_in_messages(kdeclare: CommandLine) -> None:
    connect = {"eu": {"urls": ["https://worker:8083"], "bearerToken": "tell-nobody"}}
    environment = {"bootstrapServers": "lab:9092", "sites": {}, "connect": connect}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": environment})
    refused = kdeclare("validate")
    assert refused.code == 1
    assert "the value of bearerToken must contain a reference" in refused.err
    file = kdeclare.folder / "kdeclare.yaml"
    file.write_text(file.read_text().replace("tell-nobody", "0123"))
    ambiguous = kdeclare("validate")
    assert ambiguous.code == 1
    assert "0123" not in ambiguous.err
    assert "tell-nobody" not in refused.err


def test_state_keeps_id_of_endpoint_that_later_has_none(kdeclare: CommandLine) -> None:
    assert kdeclare("apply", "--yes").code == 0
    SITES["eu:1"].id = ""
    kdeclare.write("manifests/main.yaml", "Gate", "eu.main", width=3)
    assert kdeclare("apply", "--yes").code == 0
    state = json.loads(next((kdeclare.folder / "state").rglob("state.json")).read_text())
    assert state["endpoints"] == {"sites/eu": "EU-1", "sites/us": "US-1"}
    SITES["eu:1"].id = "EU-2"
    assert kdeclare("plan").code == 1, "the state is still bound to the first system"
