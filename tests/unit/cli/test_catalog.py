"""``kdeclare catalog``: what exists, who owns it, and what it is for."""

import json

import pytest
from jsonschema import Draft202012Validator

from kdeclare.report.catalog.catalog import build_catalog_schemas
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_schema

_FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: eu}
spec:
  clusters:
    - {name: eu-1, bootstrapServers: "lab:9092", manifests: [manifests], state: s1}
    - {name: eu-2, bootstrapServers: "lab:9092", manifests: [manifests], state: s2, selector: {team: billing}}
"""


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    folder = kdeclare.folder / "manifests"
    folder.mkdir(exist_ok=True)
    for name, metadata in (
        ("orders", "owner: checkout, description: 'Orders, keyed by id.'"),
        ("payments", "owner: billing, labels: {tier: gold}"),
        ("stray", "labels: {tier: none}"),
    ):
        (folder / f"{name}.yaml").write_text(
            f"apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: {name}, {metadata}}}\n"
            "spec: {partitions: 1}\n"
        )
    return kdeclare


def test_catalog_groups_resources_by_owner(shop: CommandLine) -> None:
    ran = shop("catalog")
    assert (ran.code, ran.out) == (
        0,
        "Catalog of shop/lab: 3 resources, 2 owners, 1 without an owner.\n\n"
        "billing\n  Topic/payments  (manifests/payments.yaml:3)\n\n"
        "checkout\n  Topic/orders  Orders, keyed by id.  (manifests/orders.yaml:3)\n\n"
        "No owner\n  Topic/stray  (manifests/stray.yaml:3)\n",
    )


def test_catalog_document_fits_schema(shop: CommandLine) -> None:
    for name, schema in build_catalog_schemas().items():
        check_schema(name, schema)
    document = json.loads(shop("catalog", "--format", "json").out)
    Draft202012Validator(build_catalog_schemas()["catalog"]).validate(document)
    assert [entry["owner"] for entry in document["entries"]] == ["billing", "checkout", None]
    assert document["entries"][0]["labels"] == {"tier": "gold"}


def test_catalog_of_fleet_names_clusters_of_resources_that_not_all_have(shop: CommandLine) -> None:
    (shop.folder / "fleet.yaml").write_text(_FLEET)
    ran = shop("catalog", "--fleet", "fleet.yaml")
    assert ran.code == 0, ran.err
    assert "Topic/payments  (manifests/payments.yaml:3)" in ran.out
    assert "Topic/orders  Orders, keyed by id.  on eu-1  (manifests/orders.yaml:3)" in ran.out
    out = shop("catalog", "--fleet", "fleet.yaml", "--format", "markdown").out
    assert "| Topic | <code>orders</code> | Orders, keyed by id. | eu-1 |" in out


def test_catalog_of_fleet_needs_no_credentials(shop: CommandLine) -> None:
    password = '{sasl.password: "${env.NOT_SET}"}'
    (shop.folder / "fleet.yaml").write_text(
        _FLEET.replace("selector: {team: billing}", f"clientConfig: {password}")
    )
    (shop.folder / "of-project.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {name: eu}\nspec:\n  clusters:\n"
        "    - {name: eu-1, project: kdeclare.yaml, env: prod}\n"
    )
    project = (shop.folder / "kdeclare.yaml").read_text()
    (shop.folder / "kdeclare.yaml").write_text(
        project.replace("environments:", f"environments:\n    prod: {{clientConfig: {password}}}", 1)
    )
    for file in ("fleet.yaml", "of-project.yaml"):
        ran = shop("catalog", "--fleet", file)
        assert (ran.code, "Topic/orders" in ran.out) == (0, True), ran.err


def test_page_links_to_manifests_from_its_folder(shop: CommandLine) -> None:
    (shop.folder / "site").mkdir()
    ran = shop("catalog", "--format", "html", "--out", "site/catalog.html")
    assert ran.code == 0, ran.err
    assert 'href="../manifests/orders.yaml"' in (shop.folder / "site" / "catalog.html").read_text()
    assert 'href="manifests/orders.yaml"' in shop("catalog", "--format", "html").out


def test_catalog_reports_mistakes_instead_of_leaving_resources_out(shop: CommandLine) -> None:
    (shop.folder / "manifests" / "bad.yaml").write_text("apiVersion: kdeclare/v1\nkind: Topic\n")
    ran = shop("catalog")
    assert (ran.code, ran.out) == (1, "")
    assert "manifests/bad.yaml:1" in ran.err


def test_catalog_refuses_options_that_a_fleet_ignores(shop: CommandLine) -> None:
    assert shop("catalog", "--fleet", "fleet.yaml", "--env", "lab").code == 64
    ran = shop("catalog", "--out", "missing/catalog.html")
    assert ran.code == 1
    assert "File cannot be written" in ran.err
