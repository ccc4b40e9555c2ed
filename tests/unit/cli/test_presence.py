"""Manifests that are present only in some environments."""

import json
from pathlib import Path

import pytest

from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from tests.unit.cli.command_line import CommandLine

_PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: shop}
spec:
  manifests: [manifests]
  defaultEnvironment: dev
  environments:
    dev: {bootstrapServers: "lab:9092"}
    prod:
      bootstrapServers: lab:9092
      manifests: [manifests/prod, extra/*.yaml]
"""


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    (kdeclare.folder / "kdeclare.yaml").write_text(_PROJECT)
    return kdeclare


def write_topic(shop: CommandLine, path: str, metadata: str = "", spec: str = "{partitions: 1}") -> None:
    """Write a topic with the name of its file."""
    file = shop.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\n"
        f"metadata:\n  name: {Path(path).stem}\n{metadata}spec: {spec}\n"
    )


def list_planned(shop: CommandLine, env: str, *options: str) -> set[str]:
    ran = shop("plan", "--env", env, "--format", "json", *options)
    assert ran.code == 0, ran.out + ran.err
    return {change["id"].removeprefix("Topic/") for change in json.loads(ran.out)["changes"]}


def test_manifests_of_an_environment_are_loaded_only_there(shop: CommandLine) -> None:
    for path in ("manifests/a.yaml", "manifests/prod/b.yaml", "extra/c.yaml"):
        write_topic(shop, path)
    assert list_planned(shop, "dev") == {"a"}
    assert list_planned(shop, "prod") == {"a", "b", "c"}


def test_path_of_another_environment_is_not_loaded(shop: CommandLine) -> None:
    write_topic(shop, "manifests/prod/b.yaml")
    write_topic(shop, "extra/z.yaml")
    ran = shop("validate", "manifests/prod/b.yaml")
    assert "Path belongs to another environment" in ran.out
    assert "0 resources" in ran.out
    assert "1 resource" in shop("validate", "manifests/prod/b.yaml", "--env", "prod").out


def test_missing_manifests_of_an_environment_are_an_error_with_position(shop: CommandLine) -> None:
    write_topic(shop, "manifests/a.yaml")
    ran = shop("validate", "--env", "prod")
    assert ran.code == 1
    assert "kdeclare.yaml:11:19" in ran.out
    assert "kdeclare.yaml:11:35" in ran.out
    assert shop("validate").code == 0


@pytest.mark.parametrize(
    ("metadata", "dev", "prod"),
    [
        ("  only: [prod]\n", False, True),
        ("  only: [dev]\n", True, False),
        ("  only: [dev, prod]\n", True, True),
        ("  except: [dev]\n", False, True),
        ("  except: [dev, prod]\n", False, False),
        ("", True, True),
    ],
)
def test_only_and_except_limit_a_manifest_to_environments(
    shop: CommandLine, metadata: str, *, dev: bool, prod: bool
) -> None:
    write_topic(shop, "manifests/prod/x.yaml")
    write_topic(shop, "extra/z.yaml")
    write_topic(shop, "manifests/a.yaml", metadata)
    assert ("a" in list_planned(shop, "dev", "--allow-empty")) is dev
    assert ("a" in list_planned(shop, "prod")) is prod


def test_two_manifests_declare_one_resource_in_different_environments(shop: CommandLine) -> None:
    write_topic(shop, "manifests/one/a.yaml", "  only: [dev]\n", "{partitions: 1}")
    write_topic(shop, "manifests/two/a.yaml", "  except: [dev]\n", "{partitions: 5}")
    shown = shop("show-manifest", "Topic/a")
    assert (shown.code, "partitions: 1" in shown.out) == (0, True)
    write_topic(shop, "manifests/prod/x.yaml")
    write_topic(shop, "extra/z.yaml")
    assert "partitions: 5" in shop("show-manifest", "Topic/a", "--env", "prod").out


def test_excluded_manifest_needs_no_values_and_its_overlay_is_no_error(shop: CommandLine) -> None:
    write_topic(shop, "manifests/a.yaml", "  only: [prod]\n", "{partitions: '${var.missing}'}")
    write_topic(shop, "manifests/b.yaml")
    write_topic(shop, "over/a.yaml")
    project = _PROJECT.replace('"lab:9092"}', '"lab:9092", overlays: [over]}')
    (shop.folder / "kdeclare.yaml").write_text(project)
    ran = shop("validate")
    assert (ran.code, "warning" in ran.out) == (0, False), ran.out


@pytest.mark.parametrize(
    ("metadata", "position", "message"),
    [
        ("  only: [prd]\n", "a.yaml:5:10", "Did you mean 'prod'?"),
        ("  except: [dev, prd]\n", "a.yaml:5:17", "Did you mean 'prod'?"),
        ("  only: [prod]\n  except: [dev]\n", "a.yaml:4:3", "not both"),
        ("  only: []\n", "a.yaml:5:9", "'metadata.only'"),
        ("  only: prod\n", "a.yaml:5:9", "'metadata.only' takes a list"),
        ("  except: {}\n", "a.yaml:5:11", "'metadata.except' takes a list"),
        ("  onyl: [prod]\n", "a.yaml:5:3", "Did you mean 'only'?"),
    ],
)
def test_wrong_presence_is_reported_with_position(
    shop: CommandLine, metadata: str, position: str, message: str
) -> None:
    write_topic(shop, "manifests/a.yaml", metadata)
    for env in ("dev", "prod"):
        write_topic(shop, "manifests/prod/x.yaml")
        write_topic(shop, "extra/z.yaml")
        if "not both" in message and env == "dev":
            continue  # the document is excluded before it is validated
        ran = shop("validate", "--env", env)
        assert ran.code == 1
        assert position in ran.out
        assert message in ran.out


def test_defaults_and_policies_are_limited_to_environments(shop: CommandLine) -> None:
    write_topic(shop, "manifests/a.yaml")
    write_topic(shop, "manifests/prod/x.yaml")
    write_topic(shop, "extra/z.yaml")
    (shop.folder / "manifests/rules.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Defaults\nmetadata: {name: d, only: [prod]}\n"
        "spec: {kind: Topic, defaults: {configs: {retention.ms: 5}}}\n---\n"
        "apiVersion: kdeclare/v1\nkind: Policy\nmetadata: {name: p, only: [prod]}\n"
        "spec: {rule: 'false', actions: [CREATE], message: No.}\n"
    )
    assert "retention" not in shop("show-manifest", "Topic/a").out
    assert "retention.ms: 5" in shop("show-manifest", "Topic/a", "--env", "prod").out
    assert shop("plan").code == 0
    assert shop("plan", "--env", "prod").code == 3
    assert shop("plan", "manifests/a.yaml", "--env", "prod").code == 3


def test_resource_that_becomes_excluded_is_an_orphan_and_deletes_stay_guarded(shop: CommandLine) -> None:
    for name in ("a", "b"):
        write_topic(shop, f"manifests/{name}.yaml")
    assert shop("apply", "--yes").code == 0
    write_topic(shop, "manifests/a.yaml", "  except: [dev]\n")
    planned = json.loads(shop("plan", "--format", "json").out)
    assert planned["summary"]["orphaned"] == 1
    assert [(change["id"], change["action"]) for change in planned["changes"]] == [("Topic/a", "no-op")]
    assert shop("apply", "--yes").code == 0
    assert shop.topics == {"a", "b"}
    assert shop("plan", "manifests", "--allow-deletes", "--detailed-exitcode").code == 0, (
        "part of the project"
    )
    assert shop("apply", "--yes", "--allow-deletes", "--max-deletes", "0").code == 3
    assert shop.topics == {"a", "b"}
    assert shop("apply", "--yes", "--allow-deletes").code == 0
    assert shop.topics == {"b"}


def test_excluding_everything_is_an_error_while_resources_are_owned(shop: CommandLine) -> None:
    write_topic(shop, "manifests/a.yaml")
    assert shop("apply", "--yes").code == 0
    write_topic(shop, "manifests/a.yaml", "  only: [prod]\n")
    ran = shop("apply", "--yes", "--allow-deletes")
    assert ran.code == 1
    assert "--allow-empty" in ran.out
    assert shop.topics == {"a"}


def test_project_and_fleet_files_have_no_presence(shop: CommandLine) -> None:
    (shop.folder / "kdeclare.yaml").write_text(_PROJECT.replace("name: shop", "name: shop, only: [dev]"))
    ran = shop("validate")
    assert (ran.code, "There is no field 'only'" in ran.err) == (1, True)


_EXCLUDED = "manifests/a.yaml:5:3"


@pytest.fixture
def excluded(shop: CommandLine) -> CommandLine:
    """Two topics were applied; then the manifest of one of them was excluded from the environment."""
    for name in ("a", "b"):
        write_topic(shop, f"manifests/{name}.yaml")
    assert shop("apply", "--yes").code == 0
    write_topic(shop, "manifests/a.yaml", "  except: [dev]\n")
    return shop


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_plan_names_the_field_that_makes_a_resource_an_orphan(excluded: CommandLine, form: str) -> None:
    ran = excluded("plan", "--format", form)
    assert ran.code == 0
    assert f"excluded by metadata.except at {_EXCLUDED}" in ran.out.replace("`", "").replace("\\", "")


def test_orphan_has_the_position_of_the_field_that_excludes_it(excluded: CommandLine) -> None:
    plan = json.loads(excluded("plan", "--format", "json").out)
    (problem,) = [d for d in plan["diagnostics"] if d["code"] == "orphaned"]
    assert problem["detail"] == (
        "kdeclare manages Topic/a, but metadata.except excludes its manifest from the environment 'dev'. "
        "It is left unchanged."
    )
    assert problem["hint"].startswith("Change metadata.except, ")
    position = {"file": "manifests/a.yaml", "line": 5, "column": 3}
    assert problem["place"] == plan["changes"][0]["source"] == position
    deleted = json.loads(excluded("plan", "--format", "json", "--allow-deletes").out)["changes"]
    assert [(change["action"], change["source"]) for change in deleted] == [("delete", position)]


def test_orphan_without_manifest_mentions_no_environment(excluded: CommandLine) -> None:
    (excluded.folder / "manifests/a.yaml").unlink()
    ran = excluded("plan")
    assert "1 orphan" in ran.out
    assert "excluded" not in ran.out


def test_resource_with_a_manifest_for_each_environment_is_not_excluded(excluded: CommandLine) -> None:
    write_topic(excluded, "manifests/0/a.yaml", "  only: [dev]\n")
    write_topic(excluded, "manifests/z/a.yaml", "  only: [other]\n")
    project = _PROJECT.replace("    prod:", "    other: {}\n    prod:")
    (excluded.folder / "kdeclare.yaml").write_text(project)
    assert "excluded" not in excluded("plan").out


def test_target_in_another_environment_is_an_error_that_names_the_environment(excluded: CommandLine) -> None:
    owned = excluded("plan", "--target", "Topic/a")
    assert "metadata.except excludes its manifest from this environment" in " ".join(owned.out.split())
    write_topic(excluded, "manifests/c.yaml", "  only: [prod]\n")
    ran = excluded("plan", "--target", "Topic/c")
    assert ran.code == 1
    text = " ".join((ran.out + ran.err).split())
    assert "Manifest is not present in this environment" in text
    assert "manifests/c.yaml:5:3" in text
    assert "Pass --env prod, or change metadata.only." in text


def test_show_manifest_names_the_environments_of_an_excluded_manifest(excluded: CommandLine) -> None:
    ran = excluded("show-manifest", "Topic/a")
    assert ran.code == 1
    text = " ".join(ran.err.split())
    assert "metadata.except excludes the manifest of Topic/a from the environment 'dev'." in text
    assert _EXCLUDED in text
    assert "Pass --env prod, or change metadata.except." in text
    assert "No manifest of the project declares Topic/x." in excluded("show-manifest", "Topic/x").err


def test_show_manifest_names_the_field_of_a_generated_manifest(shop: CommandLine) -> None:
    (shop.folder / "manifests/all.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\nforEach: {a: [prod], b: [dev]}\n"
        "metadata:\n  name: ${each.key}\n  only: ${each.value}\nspec: {partitions: 1}\n"
    )
    assert shop("show-manifest", "Topic/b").code == 0
    ran = shop("show-manifest", "Topic/a")
    assert "metadata.only excludes the manifest of Topic/a" in " ".join(ran.err.split())
    assert "manifests/all.yaml:6:3" in ran.err


def test_project_without_present_manifests_names_the_cause(excluded: CommandLine) -> None:
    write_topic(excluded, "manifests/b.yaml", "  only: [prod]\n")
    ran = excluded("plan")
    assert ran.code == 1
    assert (
        "metadata.only or metadata.except excludes the manifests of 2 of them from the environment 'dev'."
    ) in " ".join((ran.out + ran.err).split())


def test_import_leaves_out_resources_of_other_environments(excluded: CommandLine) -> None:
    ran = excluded("import")
    assert (ran.code, ran.out) == (0, "")
    text = " ".join(ran.err.split())
    assert "1 resource (only declared for other environments, with metadata.only or metadata.except)" in text
    assert "name: a" in excluded("import", "--include-declared").out


def test_ad_hoc_command_does_not_write_a_second_manifest(excluded: CommandLine) -> None:
    alter = ("topic", "alter", "a", "--add-config", "retention.ms=5", "--yes")
    ran = excluded(*alter, "--write-manifest")
    assert ran.code == 1
    assert "Manifest is not present in this environment" in ran.err
    assert _EXCLUDED in ran.err
    assert "retention.ms" not in excluded.cluster.overrides(ConfigResource(ConfigScope.TOPIC, "a"))
    ran = excluded("topic", "alter", "a", "--partitions", "2", "--yes")
    assert ran.code == 0
    assert "metadata.except excludes its manifest from this environment." in " ".join(ran.err.split())
    write_topic(excluded, "manifests/c.yaml", "  only: [prod]\n")
    create = ("topic", "create", "c", "--partitions", "1", "--replication-factor", "1", "--yes")
    assert excluded(*create, "--write-manifest").code == 1
    assert "c" not in excluded.topics
    delete = ("topic", "delete", "a", "--yes", "--write-manifest")
    assert excluded(*delete).code == 0
    assert (excluded.folder / "manifests/a.yaml").exists()
