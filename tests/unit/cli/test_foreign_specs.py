"""Only the model of a third-party kind defines its spec, whatever the names of its fields and models are."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources import kind as kinds
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecProblem, narrow
from kdeclare.core.resources.objects import ObjectKind, ObjectSpec
from kdeclare.core.resources.owned_record import NoRecord, OwnedRecord
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.secrets.secret_refs import Secret, SecretText, ValuePath
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import open_project
from tests import foreign
from tests.foreign import shed
from tests.unit.cli.command_line import CommandLine

__all__ = ["shed"]

pytestmark = pytest.mark.usefixtures("shed")

CLOSED = ConfigDict(extra="forbid", frozen=True)


class TlsSpec(BaseModel):
    """A class of this name describes Connect workers, too."""

    model_config = CLOSED
    caFile: Annotated[str | None, Field(description="Who signed the bridge.")] = None  # noqa: N815
    depth: int = 0


class PartitionSpec(BaseModel):
    """A class of this name moves replicas, too."""

    model_config = CLOSED
    topic: Annotated[str, Field(description="What it is about.")]


class RetrySpec(BaseModel):
    model_config = CLOSED
    retries: int = 0
    verify: bool = False


class LoginSpec(BaseModel):
    model_config = CLOSED
    user: str = ""
    password: SecretText | None = None
    tokens: Sequence[SecretText] = ()


class BridgeSpec(BaseModel):
    """All names occur in other kinds, too, with another meaning."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Annotated[str, Field(description="Of wood, or of stone.")] = "stone"
    metadata: Annotated[dict[str, bool], Field(description="What is known of it.")] = {}
    spec: int | None = None
    labels: dict[str, int] = {}
    configs: dict[str, int] = {}
    config: RetrySpec = RetrySpec()
    headers: list[int] = []
    tls: TlsSpec = TlsSpec()
    partitions: list[PartitionSpec] = []
    version: Annotated[str, RawText()] = ""
    arguments: Annotated[list[str], RawText()] = []
    properties: Annotated[dict[str, str | None], RawText(may_be_secret=True)] = {}
    secrets: dict[str, str] = {}
    codes: Annotated[dict[str, Literal["a", "b"]], RawText(may_be_secret=True)] = {}
    login: LoginSpec = LoginSpec()
    logins: list[LoginSpec] = []


@dataclass(frozen=True)
class BridgeBody:
    """The field with the secrets has another name than in the spec."""

    spec: BridgeSpec
    settings: Mapping[str, Secret | str | None]
    code: Secret | None = None


class BridgeKind:
    """Properties that end in 'key' are secret."""

    name = "Bridge"
    spec: type[BaseModel] = BridgeSpec
    record: type[OwnedRecord] = NoRecord

    def parse(self, name: str, spec: BaseModel) -> tuple[BridgeBody, tuple[SpecProblem, ...]]:
        stated = narrow(spec, BridgeSpec)
        settings = {
            key: Secret(str(value), getattr(value, "reference", None), doubtful=key == "maybe.key")
            if key.endswith("key")
            else value
            for key, value in {**stated.properties, **stated.secrets}.items()
        }
        joined = stated.properties.get("joined")
        return BridgeBody(stated, settings, Secret(joined[::-1], None) if joined else None), ()

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        return ()

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        return Difference(None)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        return ()

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        return None


class LocatingBridgeKind(BridgeKind):
    """The kind locates its secrets in the spec."""

    def locate_secret(self, at: ValuePath) -> kinds.SpecPath | None:
        return ("properties", *at[1:]) if at[0] == "settings" else None


class GateSpec(ObjectSpec):
    height: int = 1
    code: SecretText | None = None
    note: str | None = None
    login: LoginSpec | None = None


GATE = ObjectKind("Gate", GateSpec)


def install_kind(monkeypatch: pytest.MonkeyPatch, kind: kinds.Kind) -> None:
    provider = replace(foreign.PROVIDER, kinds=(*foreign.PROVIDER.kinds, kind), api_version="shed.example/v1")
    monkeypatch.setattr(foreign, "PROVIDER", provider)
    load_providers.cache_clear()


@pytest.fixture
def _bridge_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install_kind(monkeypatch, BridgeKind())
    yield
    load_providers.cache_clear()


def write_bridge(kdeclare: CommandLine, spec: str, after: str = "") -> None:
    path = kdeclare.folder / "manifests/b.yaml"
    path.parent.mkdir(exist_ok=True)
    # the kind is below the spec: reading must not depend on the order
    text = f"spec: {spec}\nmetadata: {{name: b}}\nkind: Bridge\napiVersion: shed.example/v1\n"
    path.write_text(text + after)


def read_bridge(kdeclare: CommandLine, spec: str, after: str = "") -> BridgeSpec:
    write_bridge(kdeclare, spec, after)
    loaded = load_project_manifests(open_project(None, None, {}), (), KINDS, {"VERSION": "1.10"})
    assert loaded.diagnostics == ()
    (found,) = loaded.desired
    return found.get_body(BridgeBody).spec


@pytest.mark.usefixtures("_bridge_provider")
class TestReadingSpecs:
    @pytest.mark.parametrize(
        ("spec", "field", "value"),
        [
            ("{config: {retries: 3, verify: true}}", "config", RetrySpec(retries=3, verify=True)),
            ("{metadata: {pii: true}}", "metadata", {"pii": True}),
            ("{labels: {weight: 3}}", "labels", {"weight": 3}),
            ("{configs: {width: 3}}", "configs", {"width": 3}),
            ("{headers: [1, 2]}", "headers", [1, 2]),
            ("{version: 1.10}", "version", "1.10"),
            ('{version: "${env.VERSION}"}', "version", "1.10"),
            ("{arguments: [1.10, yes-sir, true]}", "arguments", ["1.10", "yes-sir", "true"]),
            (
                "{properties: {a: 1.10, b: true, c: null}}",
                "properties",
                {"a": "1.10", "b": "true", "c": None},
            ),
        ],
    )
    def test_spec_values_keep_types_of_model(
        self, kdeclare: CommandLine, spec: str, field: str, value: Any
    ) -> None:
        assert getattr(read_bridge(kdeclare, spec), field) == value

    def test_defaults_and_overlays_are_read_like_specs(self, kdeclare: CommandLine) -> None:
        defaults = (
            "---\n"
            "spec: {defaults: {config: {retries: 3}, properties: {a: 1.10}}, kind: Bridge}\n"
            "apiVersion: kdeclare/v1\nkind: Defaults\nmetadata: {name: d}\n"
        )
        (kdeclare.folder / "over.yaml").write_text(
            "spec: {config: {verify: true}, properties: {b: 2.20}}\nkind: Bridge\nmetadata: {name: b}\n"
        )
        lab = {"bootstrapServers": "lab:9092", "overlays": ["over.yaml"]}
        kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
        spec = read_bridge(kdeclare, "{}", defaults)
        assert spec.config == RetrySpec(retries=3, verify=True)
        assert spec.properties == {"a": "1.10", "b": "2.20"}

    def test_defaults_with_same_text_do_not_conflict(self, kdeclare: CommandLine) -> None:
        write_bridge(kdeclare, "{}")

        def has_conflict(one: str, other: str) -> bool:
            text = "apiVersion: kdeclare/v1\nkind: Defaults\nmetadata: {{name: {}}}\nspec: {}\n"
            for name, given in (("one", one), ("two", other)):
                path = kdeclare.folder / f"manifests/{name}.yaml"
                path.write_text(text.format(name, f"{{kind: Bridge, defaults: {given}}}"))
            said = kdeclare("validate")
            contradicts = "Conflicting defaults" in said.out
            assert said.code == contradicts, said.out
            return contradicts

        assert not has_conflict("{properties: {a: 5}}", '{properties: {a: "5"}}')
        assert not has_conflict("{arguments: [5]}", '{arguments: ["5"]}')
        assert not has_conflict("{version: 5}", '{version: "5"}')
        assert has_conflict("{properties: {a: 5}}", "{properties: {a: 6}}")

    def test_messages_omit_possibly_secret_text(self, kdeclare: CommandLine) -> None:
        write_bridge(kdeclare, "{properties: {a: 0471}, arguments: [0471], version: 0472}")
        said = kdeclare("validate").out
        assert "This value is octal" in said
        assert "'0472' is octal" in said
        for spec in ("{properties: {a: 0471}}", "{codes: {a: 471}}", "{arguments: [a], codes: {a: 471}}"):
            write_bridge(kdeclare, spec)
            refused = kdeclare("validate")
            assert refused.code == 1
            assert "471" not in refused.out

    def test_show_manifest_output_has_same_meaning(self, kdeclare: CommandLine) -> None:
        spec = '{config: {retries: 3}, kind: "5", version: 1.10, properties: {a: 1.10, b: "x"}}'
        declared = read_bridge(kdeclare, spec)
        shown = kdeclare("show-manifest", "Bridge/b")
        assert shown.code == 0
        (kdeclare.folder / "manifests/b.yaml").write_text(shown.out)
        (again,) = load_project_manifests(open_project(None, None, {}), (), KINDS, {}).desired
        assert again.get_body(BridgeBody).spec == declared
        assert "is_text" not in kdeclare("show-manifest", "Bridge/b", "--format", "json").out


def show_manifest(kdeclare: CommandLine, resource: str = "Bridge/b") -> str:
    shown = [kdeclare("show-manifest", resource, "--format", form) for form in ("text", "json")]
    assert [one.code for one in shown] == [0, 0], shown[0].err
    return "".join(one.out for one in shown)


@pytest.mark.usefixtures("_bridge_provider")
class TestHidingSecrets:
    @pytest.mark.parametrize(
        "spec",
        [
            "{properties: {api.key: hunter2, host: here}}",
            "{secrets: {api.key: hunter2}, properties: {host: here}}",
            "{properties: {maybe.key: hunter2, host: here}}",
            "{properties: {host: here}, login: {password: hunter2}}",
            "{properties: {host: here}, login: {tokens: [hunter2]}}",
            "{properties: {host: here}, logins: [{password: hunter2}]}",
            "{properties: {host: here}, logins: [{tokens: [hunter2]}]}",
            "{properties: {api.key: hunter2, hunter2: x, host: here}}",
            # one secret consists of the text of several scalars
            "{properties: {api.key: hunter2, host: here}, arguments: [--with, hunter2]}",
            '{properties: {api.key: "a:hunter2", host: here}, version: "x a:hunter2"}',
        ],
    )
    def test_show_manifest_hides_secrets(self, kdeclare: CommandLine, spec: str) -> None:
        write_bridge(kdeclare, spec)
        text = show_manifest(kdeclare)
        assert "hunter2" not in text
        assert "here" in text

    def test_show_manifest_hides_spec_if_secret_cannot_be_located(self, kdeclare: CommandLine) -> None:
        write_bridge(kdeclare, "{properties: {joined: hunter2, host: here}, config: {retries: 3}}")
        text = show_manifest(kdeclare)
        assert "hunter2" not in text
        assert "here" not in text

    def test_show_manifest_shows_references(
        self, kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BRIDGE", "hunter2")
        write_bridge(kdeclare, '{properties: {api.key: "${env.BRIDGE}", joined: "${env.BRIDGE}"}}')
        text = show_manifest(kdeclare)
        assert "hunter2" not in text
        assert "${env.BRIDGE}" in text


def test_kind_locates_its_secrets(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kind(monkeypatch, LocatingBridgeKind())
    write_bridge(kdeclare, "{properties: {api.key: here}, kind: here}")
    shown = kdeclare("show-manifest", "Bridge/b").out
    assert "api.key: (sensitive)" in shown
    assert "kind: here" in shown


def test_wrong_secret_location_still_hides_secret(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kind(monkeypatch, LocatingBridgeKind())
    write_bridge(kdeclare, "{secrets: {api.key: hunter2}}")
    assert "hunter2" not in show_manifest(kdeclare)


def test_object_secret_hides_nothing_else(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GATE, "read", lambda live: {})
    monkeypatch.setattr(GATE, "select", lambda *_: ())
    monkeypatch.setattr(ObjectKind, "find_mistakes", lambda *_: iter(()), raising=False)
    install_kind(monkeypatch, GATE)
    spec = {"code": "hunter2", "note": "here hunter2 is", "login": {"password": "hunter3", "user": "me"}}
    kdeclare.write("manifests/g.yaml", "Gate", "g", **spec)
    text = show_manifest(kdeclare, "Gate/g")
    assert "code: (sensitive)" in text
    assert "password: (sensitive)" in text
    assert "user: me" in text
    assert "note: (sensitive)" not in text


@pytest.mark.usefixtures("_bridge_provider")
def test_schema_uses_descriptions_of_foreign_models(kdeclare: CommandLine) -> None:
    found = json.loads(kdeclare("schema").out)["$defs"]
    bridge = found["BridgeSpec"]["properties"]
    assert bridge["kind"]["description"] == "Of wood, or of stone."
    assert bridge["metadata"]["description"] == "What is known of it."
    assert "description" not in bridge["spec"]
    own = [model for name, model in found.items() if "TlsSpec" in name and "depth" in model["properties"]]
    assert [model["properties"]["caFile"]["description"] for model in own] == ["Who signed the bridge."]
    own = [
        model
        for name, model in found.items()
        if "PartitionSpec" in name and "replicas" not in model["properties"]
    ]
    assert [model["properties"]["topic"]["description"] for model in own] == ["What it is about."]
    assert found["Bridge"]["properties"]["kind"]["description"] == (
        "The kind of the resource or rule that the document declares."
    )
    alone = json.loads(kdeclare("schema", "--kind", "Bridge").out)["$defs"]
    assert alone["TlsSpec"]["properties"]["caFile"]["description"] == "Who signed the bridge."
    assert "description" not in alone["TlsSpec"]["properties"]["depth"]
    # a number is accepted in place of its text
    assert bridge["version"]["type"] == ["string", "number", "boolean"]


@pytest.mark.usefixtures("_bridge_provider")
def test_schema_keeps_descriptions_of_builtin_models(kdeclare: CommandLine) -> None:
    found = json.loads(kdeclare("schema").out)["$defs"]
    workers = [
        model for name, model in found.items() if "TlsSpec" in name and "keyFile" in model["properties"]
    ]
    assert [model["properties"]["caFile"]["description"] for model in workers] == [
        "The CA certificates that verify the workers' certificates."
    ]
