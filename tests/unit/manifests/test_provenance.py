"""The fields and origins that are shown for a resource match the resource that is planned."""

import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_text import quote_scalar
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import Project, open_project
from kdeclare.manifests.provenance import EffectiveManifest, build_reader, collect_field_origins, read_sources
from kdeclare.manifests.reading_modes import build_document_modes, build_spec_modes
from kdeclare.report.manifest.effective_manifest import render_manifest_text
from tests.unit.manifests.small_kinds import KINDS, Spec

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**12),
    st.text(st.sampled_from("a1 .:#{}[]|`\"'\\${}é\n-~\x85\xa0\u200b\u202e\u2028\ufeff"), max_size=12),
)
MODES = build_document_modes(build_spec_modes(Spec))
CONFIGS = st.dictionaries(st.sampled_from(["a", "b.c", "d", "e-f"]), VALUES, max_size=4)
LABELS = st.dictionaries(
    st.sampled_from(["team", "1", "yes"]), st.text("xy1", min_size=1, max_size=3), max_size=2
)


def format_as_kafka_text(configs: dict[str, object]) -> dict[str, str | None]:
    """Return the values as the texts that Kafka receives."""
    return {
        key: None if value is None else value if isinstance(value, str) else json.dumps(value)
        for key, value in configs.items()
    }


def show_fields(
    project: Project, resource: ResourceId, environ: Mapping[str, str] = MappingProxyType({})
) -> str:
    source = read_sources(project, environ, KINDS).by_id[resource]
    found = collect_field_origins(
        source.layers, build_reader(project, environ), MODES, {}, lambda path: False
    )
    place = SourcePosition("t.yaml", 1, 1)
    return render_manifest_text(EffectiveManifest("p", "e", resource, place, found))


def make_topic(labels: object, spec: object) -> dict[str, object]:
    metadata = {"name": "t", "labels": labels}
    return {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": metadata, "spec": spec}


@given(own=CONFIGS, over=CONFIGS, high=CONFIGS, low=CONFIGS, labels=LABELS)
def test_shown_fields_equal_planned_fields(
    tmp_path_factory: pytest.TempPathFactory,
    own: dict[str, object],
    over: dict[str, object],
    high: dict[str, object],
    low: dict[str, object],
    labels: dict[str, str],
) -> None:
    """This includes precedence for each key: overlay, manifest, then defaults by priority."""
    folder = tmp_path_factory.mktemp("p")
    (folder / "manifests").mkdir()

    def write(name: str, document: object) -> None:
        (folder / name).write_text(json.dumps(document).replace("${", "$${"))

    write("over.json.yaml", make_topic({}, {"configs": over}))
    write("manifests/t.yaml", make_topic(labels, {"partitions": 1, "configs": own}))
    for name, priority, configs in (("high", 1, high), ("low", 0, low)):
        spec = {"kind": "Topic", "priority": priority, "defaults": {"partitions": 9, "configs": configs}}
        document = {"apiVersion": "kdeclare/v1", "kind": "Defaults", "metadata": {"name": name}, "spec": spec}
        write(f"manifests/{name}.yaml", document)
    spec = {"environments": {"e": {"overlays": ["over.json.yaml"]}}}
    write("kdeclare.yaml", make_topic({}, spec) | {"kind": "Project", "metadata": {"name": "p"}})
    project = open_project(folder / "kdeclare.yaml", None, {})
    (planned,) = load_project_manifests(project, (), KINDS, {}).desired
    assert planned.body == {"partitions": 1, "configs": format_as_kafka_text(low | high | own | over)}
    text = show_fields(project, planned.id)
    assert all(line.isprintable() for line in text.split("\n")), "nothing that plays tricks on a terminal"
    (folder / "again.yaml").write_text(text)
    (again,) = load_project_manifests(Project(), [folder / "again.yaml"], KINDS, {}).desired
    assert again.body == planned.body
    assert again.labels == planned.labels == labels


@given(
    value=st.lists(
        st.sampled_from(["${env.OUT}", "${var.v}", "$${lit}", "$$${lit}", "${a:b:c}", "a${env.OUT}$${", "x"]),
        min_size=1,
        max_size=3,
    )
)
def test_shown_list_with_references_equals_planned_list(
    tmp_path_factory: pytest.TempPathFactory, value: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("p")
    (folder / "manifests").mkdir()
    document = make_topic({}, {"partitions": 1, "configs": {"a": value}})
    (folder / "manifests/t.yaml").write_text(json.dumps(document))
    spec = {"environments": {"e": {"variables": {"v": "$${env.OUT}"}}}}
    (folder / "kdeclare.yaml").write_text(
        json.dumps(make_topic({}, spec) | {"kind": "Project", "metadata": {"name": "p"}})
    )
    environ = {"OUT": "out"}
    project = open_project(folder / "kdeclare.yaml", None, environ)
    (planned,) = load_project_manifests(project, (), KINDS, environ).desired
    (folder / "again.yaml").write_text(show_fields(project, planned.id, environ))
    (again,) = load_project_manifests(Project(), [folder / "again.yaml"], KINDS, environ).desired
    assert again.body == planned.body


@given(st.text(max_size=8))
def test_quote_scalar_is_printable_and_keeps_value(text: str) -> None:
    assert quote_scalar(text).isprintable()
    assert yaml.safe_load(quote_scalar(text)) == text


PIECES = st.lists(
    st.sampled_from(["hunter5", "${env.OUT}", "${var.plain}", "${var.whole}", "${var.mixed}", "$${", " "]),
    min_size=1,
    max_size=4,
)


@given(pieces=PIECES)
def test_shown_secret_is_only_a_reference(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    """Text around a reference and the values of project variables are hidden as well."""
    folder = tmp_path_factory.mktemp("p")
    (folder / "manifests").mkdir()
    text = "".join(pieces)
    (folder / "manifests/t.yaml").write_text(
        json.dumps(make_topic({}, {"partitions": 1, "configs": {"pw": text}}))
    )
    variables = {"plain": "hunter6", "whole": "${env.OUT}", "mixed": "hunter7${env.OUT}"}
    spec = {"environments": {"e": {"variables": variables}}}
    (folder / "kdeclare.yaml").write_text(
        json.dumps(make_topic({}, spec) | {"kind": "Project", "metadata": {"name": "p"}})
    )
    environ = {"OUT": "hunter8"}
    project = open_project(folder / "kdeclare.yaml", None, environ)
    source = read_sources(project, environ, KINDS).by_id[ResourceId("Topic", "t")]
    secret = ("spec", "configs", "pw")
    found = collect_field_origins(
        source.layers, build_reader(project, environ), MODES, {}, lambda path: path == secret
    )
    [item] = [item for item in found if item.path == secret]
    single = text in ("${env.OUT}", "${var.whole}")
    assert (item.value, item.secret, item.by_reference) == (
        "${env.OUT}" if single else None,
        not single,
        single,
    )
    assert "hunter" not in render_manifest_text(
        EffectiveManifest("p", "e", ResourceId("Topic", "t"), SourcePosition("t.yaml", 1, 1), found)
    )
