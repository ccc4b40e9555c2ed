"""``import --factor-defaults`` moves values to Defaults, and the project declares the same resources."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import event, given
from hypothesis import strategies as st

from kdeclare.app.authoring import import_defaults
from kdeclare.app.authoring.common_values import (
    CommonValues,
    choose_common_values,
    read_field_texts,
    remove_common_values,
    render_defaults,
)
from kdeclare.app.authoring.import_defaults import DefaultsImport, has_same_declarations, move_common_values
from kdeclare.app.authoring.import_live import ImportResult, import_cluster, write_manifests
from kdeclare.app.plan import load_manifests, make_plan
from kdeclare.app.workspace import Workspace, WorkspaceOptions, open_workspace
from kdeclare.core.parts import Connections
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.beds import all_created

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: shop}
spec:
  manifests: [manifests]
  environments:
    lab: {bootstrapServers: 'lab:9092', overlays: [overlays]}
    prod: {bootstrapServers: 'prod:9092', manifests: [prod]}
  defaultEnvironment: lab
"""
Documents = Sequence[Mapping[str, Any]]


def make_cluster(
    topics: Mapping[str, Mapping[str, Any]], quotas: Mapping[str, Mapping[str, float]] | None = None
) -> MemoryCluster:
    """topics: the configs of each topic, and its counts with the keys ``partitions`` and ``replicas``."""
    cluster = MemoryCluster({1: "rack-a", 2: "rack-b", 3: "rack-c"})
    for name, live in topics.items():
        configs = {key: value for key, value in live.items() if key not in ("partitions", "replicas")}
        new = NewTopic(name, live.get("partitions", 3), live.get("replicas", 2), None, configs)
        assert all_created(cluster.create_topics([new]))
    for user, limits in (quotas or {}).items():
        entity = QuotaEntity.of({EntityType.USER: user, EntityType.CLIENT_ID: "app"})
        assert cluster.alter_quotas({entity: limits}) == {entity: None}
    return cluster


@contextmanager
def open_project_folder(
    cluster: MemoryCluster,
    manifests: Documents = (),
    overlays: Documents = (),
    prod: Documents = (),
) -> Iterator[tuple[Workspace, Path]]:
    """Create a project in a new folder, which is not the working directory."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kdeclare.yaml").write_text(PROJECT)
        for part, documents in (("manifests", manifests), ("overlays", overlays), ("prod", prod)):
            (folder / part).mkdir()
            if documents:
                (folder / part / "all.yaml").write_text(yaml.safe_dump_all(documents))
        connections = Connections(KafkaConnection(cluster))
        yield open_workspace(WorkspaceOptions(folder / "kdeclare.yaml"), {}, connections), folder


def document(kind: str, name: str, /, **spec: Any) -> Mapping[str, Any]:
    return {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def load(workspace: Workspace, folder: Path, imported: Sequence[ImportResult]) -> tuple[Any, Any]:
    """Return the bodies and errors of the whole project together with the imported manifests."""
    files = {os.fspath(folder / "manifests" / item.file): item.text.encode() for item in imported}
    write_manifests(imported, folder / "manifests")
    try:
        manifests = load_manifests(workspace)
    finally:
        for file in files:
            os.unlink(file)  # noqa: PTH108
    bodies = {item.id: (item.body, dict(item.labels)) for item in manifests.desired}
    return bodies, Counter((d.code, d.resource) for d in manifests.diagnostics if d.is_error)


def move(
    topics: Mapping[str, Mapping[str, Any]], manifests: Documents = (), **others: Documents
) -> DefaultsImport:
    """Import topics into a project with these manifests, and check that it declares the same as before."""
    with open_project_folder(make_cluster(topics), manifests, **others) as (workspace, folder):
        imported = import_cluster(workspace, include_declared=False)
        moved = move_common_values(workspace, imported, folder / "manifests")
        assert load(workspace, folder, moved.results) == load(workspace, folder, imported)
        assert moved.unchanged_kinds == ()
        return moved


def read_defaults(moved: DefaultsImport, name: str = "topics") -> Any:
    (text,) = (str(item.text) for item in moved.results if str(item.id) == f"Defaults/{name}")
    return yaml.safe_load(text)["spec"]


WEEK = {"retention.ms": "604800000"}


def test_resource_that_lacks_a_common_field_keeps_all_of_its_values() -> None:
    moved = move({f"t{n}": WEEK for n in range(4)} | {"other": {}})
    assert read_defaults(moved) == {
        "kind": "Topic",
        "selector": {"names": ["t0", "t1", "t2", "t3"]},
        "defaults": {"partitions": 3, "replicationFactor": 2, "configs": {"retention.ms": 604800000}},
    }
    texts = {item.id.name: item.text for item in moved.results}
    assert texts["t0"].endswith("spec: {}\n")
    assert "partitions: 3\n  replicationFactor: 2\n" in texts["other"]


def test_different_value_stays_in_the_manifest() -> None:
    moved = move({f"t{n}": WEEK for n in range(4)} | {"other": {"retention.ms": "5"}})
    assert read_defaults(moved)["selector"]["names"] == ["other", "t0", "t1", "t2", "t3"]
    texts = {item.id.name: item.text for item in moved.results}
    assert texts["other"].endswith("spec:\n  configs:\n    retention.ms: 5\n")


@pytest.mark.parametrize(("same", "different"), [(2, 0), (3, 3)], ids=["only two", "not more than half"])
def test_value_that_is_not_common_stays_in_the_manifests(same: int, different: int) -> None:
    topics = {f"t{n}": {"partitions": 6, "replicas": 3} for n in range(same)}
    topics |= {f"d{n}": {"partitions": n + 1, "replicas": 1} for n in range(different)}
    assert move(topics).created == ()


def test_fields_are_chosen_so_that_most_values_are_moved() -> None:
    # three topics with four fields have fewer values in common than five topics with two fields
    topics: dict[str, Any] = {f"t{n}": {} for n in range(2)}
    topics |= {f"u{n}": {"retention.ms": "5", "segment.ms": "7000"} for n in range(3)}
    defaults = read_defaults(move(topics))
    assert len(defaults["selector"]["names"]) == 3
    assert defaults["defaults"]["configs"] == {"retention.ms": 5, "segment.ms": 7000}
    topics = {f"t{n}": {} for n in range(2)} | {f"u{n}": {"retention.ms": "5"} for n in range(3)}
    defaults = read_defaults(move(topics))
    assert len(defaults["selector"]["names"]) == 5
    assert "configs" not in defaults["defaults"]


def test_declared_resources_keep_their_fields() -> None:
    declared = document("Topic", "declared", partitions=1)
    moved = move({f"t{n}": WEEK for n in range(3)} | {"declared": {}}, [declared])
    assert read_defaults(moved)["selector"]["names"] == ["t0", "t1", "t2"]


def test_fields_of_existing_defaults_stay_in_the_manifests() -> None:
    topics = {f"t{n}": WEEK | {"segment.ms": "7000"} for n in range(3)}
    day = {"configs": {"retention.ms": "1d"}}
    existing = document("Defaults", "topics", kind="Topic", defaults=day)
    moved = move(topics, [existing])
    assert [str(item.id) for item in moved.created] == ["Defaults/topics-2"]
    assert read_defaults(moved, "topics-2")["defaults"]["configs"] == {"segment.ms": 7000}
    in_prod = move(topics, prod=[existing])
    assert read_defaults(in_prod, "topics-2")["defaults"]["configs"] == {"segment.ms": 7000}


@pytest.mark.parametrize(
    ("selector", "is_kept"),
    [
        ({"names": ["elsewhere", "/x.*/"]}, False),
        ({"names": ["/t.*/"]}, True),
        ({"names": ["/(/"]}, True),
        ({"names": ["${var.name}"]}, True),
        ({"labels": {"team": "a"}}, True),
    ],
)
def test_existing_defaults_matter_if_they_may_apply(selector: Mapping[str, Any], is_kept: bool) -> None:
    defaults = {"configs": {"retention.ms": "1d"}}
    existing = document("Defaults", "week", kind="Topic", selector=selector, defaults=defaults)
    moved = move({f"t{n}": WEEK for n in range(3)}, [existing])
    assert ("configs" not in read_defaults(moved)["defaults"]) == is_kept


def test_existing_default_that_excludes_a_field_keeps_this_field_in_the_manifests() -> None:
    existing = document("Defaults", "placed", kind="Topic", defaults={"assignments": {0: [1, 2]}})
    moved = move({f"t{n}": WEEK for n in range(3)}, [existing])
    assert read_defaults(moved)["defaults"] == {"configs": {"retention.ms": 604800000}}


def test_manifests_stay_as_they_are_if_the_project_would_declare_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def remove_too_much(manifest: str, common: CommonValues) -> str:
        return remove_common_values(manifest, common).replace("segment.ms: 1", "segment.ms: 2")

    topics = {f"t{n}": {"segment.ms": f"{n}000"} for n in range(1, 4)}
    with open_project_folder(make_cluster(topics)) as (workspace, _):
        imported = import_cluster(workspace)
        assert move_common_values(workspace, imported).created
        monkeypatch.setattr(import_defaults, "remove_common_values", remove_too_much)
        moved = move_common_values(workspace, imported)
    assert (moved.results, moved.created, moved.unchanged_kinds) == (imported, (), ("Topic",))


def test_entities_and_permissions_stay_in_the_manifests() -> None:
    cluster = make_cluster({}, {f"user{n}": {"producer_byte_rate": 5.0} for n in range(3)})
    rights = [parse_binding(f"ALLOW User:user{n} READ topic:orders from *") for n in range(3)]
    assert set(cluster.create_acls(rights).values()) == {None}
    with open_project_folder(cluster) as (workspace, folder):
        imported = import_cluster(workspace)
        moved = move_common_values(workspace, imported)
        assert load(workspace, folder, moved.results) == load(workspace, folder, imported)
    assert [str(item.id) for item in moved.created] == ["Defaults/clientquotas"]
    assert read_defaults(moved, "clientquotas")["defaults"] == {"limits": {"producer_byte_rate": 5}}


def test_defaults_are_written_to_a_file_that_does_not_exist() -> None:
    topics = {f"t{n}": WEEK for n in range(3)}
    with open_project_folder(make_cluster(topics)) as (workspace, folder):
        out = folder / "elsewhere"
        first = move_common_values(workspace, import_cluster(workspace), out)
        write_manifests([item for item in first.results if item.id.kind == "Defaults"], out)
        second = move_common_values(workspace, import_cluster(workspace), out)
    assert [str(item.id) for item in second.created] == ["Defaults/topics-2"]


def test_import_without_a_project_moves_common_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    connections = Connections(KafkaConnection(make_cluster({f"t{n}": WEEK for n in range(3)})))
    workspace = open_workspace(WorkspaceOptions(bootstrap_server="lab:9092"), {}, connections)
    moved = move_common_values(workspace, import_cluster(workspace))
    assert [(item.value_count, item.resource_count) for item in moved.created] == [(3, 3)]


def test_changed_value_is_noticed() -> None:
    first, second = (render_manifest("Topic", "t", [f"partitions: {n}"]) for n in (1, 2))
    secret = render_manifest("Topic", "t", ["partitions: 1", "configs: {a: '${env.UNSET}'}"])
    with open_project_folder(make_cluster({})) as (workspace, _):
        assert has_same_declarations(workspace, [first], [first])
        assert has_same_declarations(workspace, [secret], [secret])
        assert not has_same_declarations(workspace, [first], [second])
        assert not has_same_declarations(workspace, [first], [secret])
        assert not has_same_declarations(workspace, [first], [])


def test_comments_references_and_long_values_stay_in_the_manifest() -> None:
    lines = (
        "text: 'naïve €'",
        "list: [a, b]",
        "entries: [{a: 1}]",
        "block: |-",
        "  several",
        "  lines",
        "config:",
        "  # password is hidden",
        "  url: ${env.URL}",
        "  size: 5",
    )
    manifest = render_manifest("Connector", "c", lines, ["€"])
    fields = read_field_texts(manifest)
    assert fields == {
        ("text",): "'naïve €'",
        ("list",): "[a, b]",
        ("entries",): None,
        ("block",): None,
        ("config", "url"): None,
        ("config", "size"): "5",
    }
    common = choose_common_values({"a": fields, "b": fields, "c": fields})
    assert common is not None
    assert yaml.safe_load(render_defaults("d", "Connector", common))["spec"] == {
        "kind": "Connector",
        "selector": {"names": ["a", "b", "c"]},
        "defaults": {"text": "naïve €", "list": ["a", "b"], "config": {"size": 5}},
    }
    rest = [*lines[2:6], *lines[6:9]]
    assert remove_common_values(manifest, common) == render_manifest("Connector", "c", rest, ["€"])


def test_mapping_that_becomes_empty_stays_if_the_manifest_has_comments() -> None:
    common = CommonValues({("configs", "a"): "1", ("configs", "b"): "2"}, ("t",))
    configs = ["configs:", "  a: 1", "  b: 2"]
    plain = render_manifest("Topic", "t", ["partitions: 1", *configs])
    assert remove_common_values(plain, common) == render_manifest("Topic", "t", ["partitions: 1"])
    commented = remove_common_values(render_manifest("Topic", "t", [*configs, "  # c is hidden"]), common)
    assert yaml.safe_load(commented)["spec"] == {"configs": {}}
    assert "# c is hidden" in commented


COUNTS = {"partitions": st.sampled_from([1, 3, 3]), "replicas": st.sampled_from([2, 2, 3])}
CONFIGS = {
    "retention.ms": st.sampled_from(["604800000", "604800000", "5"]),
    "cleanup.policy": st.sampled_from(["compact", "compact,delete", "delete"]),
    "segment.ms": st.just("7000"),
}
NAMES = tuple(f"t{n}" for n in range(9))
TOPICS = st.dictionaries(st.sampled_from(NAMES), st.fixed_dictionaries(COUNTS, optional=CONFIGS), min_size=3)
QUOTAS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.fixed_dictionaries({"producer_byte_rate": st.sampled_from([5.0, 5.0, 6.0])}),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "partitions": st.just(3),
        "assignments": st.just({0: [1, 2]}),
        "configs": st.fixed_dictionaries(
            {}, optional=CONFIGS | {"retention.ms": st.sampled_from([None, "5"])}
        ),
    },
)
SELECTORS = st.sampled_from([{}, {"names": ["/t[0-4]/", "t7"]}, {"names": ["t1"]}, {"labels": {"team": "a"}}])
DEFAULTS = st.builds(
    lambda name, selector, priority, defaults: document(
        "Defaults", name, kind="Topic", selector=selector, priority=priority, defaults=defaults
    ),
    st.sampled_from(["topics", "week"]),
    SELECTORS,
    st.sampled_from([0, 0, 1, -1]),
    SPECS,
)
DECLARED = st.builds(
    lambda name, spec: document("Topic", name, **spec), st.sampled_from([*NAMES, "new"]), SPECS
)


@given(
    topics=TOPICS,
    existing=st.lists(st.one_of(DEFAULTS, DECLARED), max_size=3),
    overlays=st.lists(DECLARED, max_size=1),
)
def test_project_declares_the_same_resources_as_after_a_plain_import(
    topics: Mapping[str, Mapping[str, Any]], existing: Documents, overlays: Documents
) -> None:
    moved = move(topics, existing, overlays=overlays)  # compares the project with and without Defaults
    event(f"{len(moved.created)} created")


@given(topics=TOPICS, quotas=QUOTAS)
def test_next_plan_has_no_changes(
    topics: Mapping[str, Mapping[str, Any]], quotas: Mapping[str, Mapping[str, float]]
) -> None:
    with open_project_folder(make_cluster(topics, quotas)) as (workspace, folder):
        imported = import_cluster(workspace)
        moved = move_common_values(workspace, imported, folder / "manifests")
        assert load(workspace, folder, moved.results) == load(workspace, folder, imported)
        write_manifests(moved.results, folder / "manifests")
        plan = make_plan(workspace).plan
        assert not plan.has_changes
        assert not plan.has_errors
        assert import_cluster(workspace, include_declared=False) == ()
