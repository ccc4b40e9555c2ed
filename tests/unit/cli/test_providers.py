"""Providers are found by entry points, loaded when they are needed, and refused where they do not fit."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core import installed_providers, registry
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.installed_providers import GROUP, find_providers, load_providers
from kdeclare.core.provider import Provider
from kdeclare.providers.connect.provider import PROVIDER as CONNECT
from kdeclare.providers.kafka.provider import PROVIDER as KAFKA
from kdeclare.report.provider_list import providers_schemas
from kdeclare.version import VERSION
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_schema

FITS = Provider("theirs", (), ())
LATER = Provider("theirs", (), (), contract=2)
SAME_KIND = Provider("theirs", (KAFKA.kinds[0],), ())
SAME_OPERATION = Provider("theirs", (), (CONNECT.operation_types[0],))
ROUND_A, ROUND_B = Provider("a", (), (), ("b",)), Provider("b", (), (), ("a",))
NO_PROVIDER = "text"

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Have these entry points beside kdeclare's own: names, and what of this module they lead to."""
    forget()
    own = list(entry_points(group=GROUP))

    def have(**attributes: str) -> None:
        points = [
            EntryPoint(name, value if ":" in value else f"{__name__}:{value}", GROUP)
            for name, value in attributes.items()
        ]
        monkeypatch.setattr(installed_providers, "entry_points", lambda group: [*own, *points])

    yield have
    forget()


def forget() -> None:
    for cached in (find_providers, load_providers, registry.KINDS._load, registry.OPERATION_TYPES._load):  # type: ignore[attr-defined]
        cached.cache_clear()


def refusal(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(KdeclareError) as problem:
        act()
    (found,) = problem.value.diagnostics
    return found.code, found.detail


def test_own_providers_are_found_by_the_same_entry_points() -> None:
    assert [(item.name, item.distribution, item.version) for item in find_providers()] == [
        ("connect", "kdeclare", VERSION),
        ("kafka", "kdeclare", VERSION),
    ]


def test_what_others_build_on_comes_first() -> None:
    assert load_providers() == (KAFKA, CONNECT)
    kinds = ["Topic", "BrokerConfig", "Reassignment", "ClientQuota", "ConnectWorkerConfig"]
    assert list(registry.KINDS) == kinds


def test_installed_provider_is_loaded(install: Install) -> None:
    install(theirs="FITS")
    assert FITS in load_providers()


@pytest.mark.parametrize(
    ("attribute", "code", "detail"),
    [
        ("LATER", "provider-contract", "version 2 of the provider contract; this kdeclare has version 1"),
        ("NO_PROVIDER", "provider-broken", "NO_PROVIDER is a str"),
        ("MISSING", "provider-broken", "AttributeError"),
        ("no_such_module_at_all:X", "provider-broken", "ModuleNotFoundError"),
        ("SAME_KIND", "provider-collision", "The kind 'Topic' comes from both"),
        ("SAME_OPERATION", "provider-collision", "The operation type 'connect.worker-config.patch'"),
    ],
)
def test_provider_that_does_not_fit_is_refused_by_name(
    install: Install, attribute: str, code: str, detail: str
) -> None:
    install(theirs=attribute)
    found = refusal(load_providers)
    assert found[0] == code
    assert detail in found[1]


def test_providers_that_build_on_each_other_are_refused(install: Install) -> None:
    install(a="ROUND_A", b="ROUND_B")
    assert refusal(load_providers)[0] == "provider-cycle"


def test_nothing_is_imported_before_a_kind_is_asked_for() -> None:
    code = (
        "import sys; from kdeclare.core.registry import KINDS;"
        "from kdeclare.core.installed_providers import find_providers;"
        "find_providers(); assert 'kdeclare.providers.kafka.provider' not in sys.modules;"
        "assert 'Topic' in KINDS; assert 'kdeclare.providers.kafka.provider' in sys.modules;"
        "assert 'kafka' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_command_lists_providers_with_their_kinds(kdeclare: CommandLine) -> None:
    ran = kdeclare("providers")
    assert ran.code == 0
    assert "Topic, BrokerConfig, Reassignment" in ran.out
    assert f"kafka     {VERSION}" in ran.out
    document = json.loads(kdeclare("providers", "--format", "json").out)
    Draft202012Validator(providers_schemas()["providers"]).validate(document)
    assert [item["name"] for item in document["providers"]] == ["connect", "kafka"]


def test_command_names_a_provider_that_cannot_be_loaded(kdeclare: CommandLine, install: Install) -> None:
    install(theirs="no_such_module_at_all:X")
    ran = kdeclare("providers")
    assert ran.code == 1
    assert "error: The provider 'theirs'" in ran.out
    assert "No module named 'no_such_module_at_all'" in ran.out
    assert "Topic, BrokerConfig, Reassignment" in ran.out
    plan = kdeclare("validate")
    assert plan.code == 1
    assert "The provider 'theirs'" in plan.err + plan.out
    assert "Traceback" not in plan.err


def test_schema_in_the_docs_is_the_one_in_use() -> None:
    for name, schema in providers_schemas().items():
        check_schema(name, schema)


def test_working_folder_has_nothing_to_do_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(registry.KINDS)
