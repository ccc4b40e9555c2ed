"""The software bill of materials: what it lists, and that it follows the schema of CycloneDX."""

import json
import re
from datetime import UTC, datetime
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

from scripts.dependencies import sbom as sbom_module
from scripts.dependencies.sbom import build_sbom, format_sbom, list_pins, normalize_name

ROOT = Path(__file__).parents[2]
HASH = "0" * 64


def parse(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.fixture(scope="module")
def text() -> str:
    hashes = {name: {"sha256": HASH} for name in list_pins()}
    return format_sbom(build_sbom(hashes, datetime(2026, 11, 28, tzinfo=UTC)))


def test_sbom_follows_the_schema(text: str) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"specVersion"', '"specversion"')) is not None


def test_sbom_lists_every_runtime_dependency(text: str) -> None:
    """Follow the requirements of installed packages without the code of the SBOM."""
    document = parse(text)
    scopes = {normalize_name(one["name"]): one["scope"] for one in document["components"]}
    pending, expected = [("kdeclare", "")], set[tuple[str, str]]()
    while pending:
        name, extra = pending.pop()
        for requirement in map(Requirement, requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                found = [(requirement.name, one) for one in ("", *requirement.extras)]
                pending += [one for one in found if one not in expected]
                expected.update(found)
    names = {normalize_name(name) for name, _ in expected}
    assert len(names) > 25
    assert {name for name, scope in scopes.items() if scope == "required"} == names
    optional = {
        "cel-expr-python",
        "obstore",
        "py4j",
        "pyarrow",
        "pyspark",
        *_OF_COMPRESSION,
        *_OF_MSK_IAM,
        *_OF_SPARK_CONNECT,
    }
    assert {name for name, scope in scopes.items() if scope == "optional"} == optional
    for name in ("mypy", "pytest", "sphinx"):
        assert name not in scopes


_OF_COMPRESSION = frozenset({"cramjam", "lz4", "python-snappy", "zstandard"})
_OF_MSK_IAM = frozenset(
    """
    aws-msk-iam-sasl-signer-python boto3 botocore click jmespath python-dateutil s3transfer six urllib3
    """.split()  # noqa: SIM905
)
_OF_SPARK_CONNECT = frozenset(
    """
    googleapis-common-protos grpcio grpcio-status numpy pandas protobuf python-dateutil pytz six tzdata
    zstandard
    """.split()  # noqa: SIM905
)


def test_components_have_exact_pinned_versions_hashes_and_licenses(text: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    pins = {normalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    for component in parse(text)["components"]:
        name = normalize_name(component["name"])
        assert component["version"] == pins[name] == distribution(name).version
        assert component["purl"] == f"pkg:pypi/{name}@{pins[name]}"
        assert component["hashes"] == [{"alg": "SHA-256", "content": HASH}]
        assert component["licenses"], name


def test_sbom_describes_kdeclare_and_what_needs_what(text: str) -> None:
    document = parse(text)
    root = document["metadata"]["component"]
    version = distribution("kdeclare").version
    assert (root["type"], root["name"], root["version"]) == ("application", "kdeclare", version)
    needs = {one["ref"]: set(one.get("dependsOn", ())) for one in document["dependencies"]}
    assert needs.keys() == {root["bom-ref"], *(one["bom-ref"] for one in document["components"])}
    (py4j,) = (one["bom-ref"] for one in document["components"] if one["name"] == "py4j")
    (pyspark,) = (one["bom-ref"] for one in document["components"] if one["name"] == "pyspark")
    assert py4j in needs[pyspark]
    assert pyspark in needs[root["bom-ref"]]


@pytest.mark.slow
def test_sbom_without_package_registry_has_no_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    file = tmp_path / "build" / "sbom.json"
    assert sbom_module.main([str(file)]) == 0
    assert "warning: the SBOM has no hashes: ERROR: No matching distribution" in capsys.readouterr().err
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None
    assert not re.search("hashes|https?://(?!cyclonedx)", file.read_text())
