"""Providers are found by entry points, loaded on demand, and rejected if they do not fit."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, create_model

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Outcome
from kdeclare.core.provider import entry_points, installed_providers, registry
from kdeclare.core.provider.entry_points import InstalledEntryPoint
from kdeclare.core.provider.installed_providers import (
    GROUP,
    InstalledProvider,
    find_providers,
    load_providers,
    use_providers,
)
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.object_system import (
    ObjectCollector,
    ObjectSystem,
    SystemObjectKind,
    SystemObjects,
)
from kdeclare.core.resources.objects import ObjectSpec, ObjectWrite
from kdeclare.core.secrets.secret_refs import SecretText
from kdeclare.providers.connect.definition import PROVIDER as CONNECT_DEFINITION
from kdeclare.providers.connect.provider import PROVIDER as CONNECT
from kdeclare.providers.kafka.provider import PROVIDER as KAFKA
from kdeclare.providers.schema_registry.provider import PROVIDER as SCHEMA_REGISTRY
from kdeclare.report.provider_list import build_providers_schemas
from kdeclare.version import VERSION
from tests.unit.cli.command_line import CommandLine
from tests.unit.fleet.kitchen import PROVIDER as KITCHEN
from tests.unit.report.golden_files import check_schema

FITS = Provider("theirs", (), ())
LATER = Provider("theirs", (), (), contract=2)
SAME_KIND = Provider("theirs", (KAFKA.kinds[0],), ())
SAME_OPERATION = Provider("theirs", (), (CONNECT_DEFINITION.operation_types[0],))
ROUND_A, ROUND_B = Provider("a", (), (), ("b",)), Provider("b", (), (), ("a",))
NO_PROVIDER = "text"
NO_VERSION = Provider("theirs", (), (), api_version="theirs")
SAME_GROUP = FITS
SAME_KIND_ELSEWHERE = Provider("theirs", (KAFKA.kinds[0],), (), api_version="theirs.example/v1")
OWN_GROUP = Provider("theirs", (), (), api_version="theirs.example/v1")
OWN_GROUP_TOO = Provider("others", (), (), api_version="theirs.example/v2")
OTHER_NAME = Provider("ours", (), ())


class ShelfSpec(ObjectSpec):
    """The spec of books, which refer to shelves."""

    room: str = "hall"


class Books(SystemObjects):
    """The live state of the library."""


class Library:
    """A connection that is never opened here."""

    def read(self) -> Books:
        return Books({})

    def write(self, writes: Sequence[ObjectWrite], *, validate_only: bool) -> Sequence[Outcome]:
        return [None for _ in writes]


SYSTEM = ObjectSystem("library", Library, Books)
SHELF = SystemObjectKind(SYSTEM, "Shelf", ShelfSpec)
MISSPELT = SystemObjectKind(SYSTEM, "Shelf", ShelfSpec, references={"rooom": "Shelf"})
HOMELESS = SystemObjectKind(SYSTEM, "Shelf", ShelfSpec, references={"room": "Shelff"})


def make_provider(
    kind: SystemObjectKind, *, lists_types: bool = True, lists_collector: bool = True
) -> Provider:
    types = kind.operation_types if lists_types else kind.operation_types[1:]
    collectors = (ObjectCollector(SYSTEM, (kind,)),) if lists_collector else ()
    return Provider("theirs", (kind,), types, api_version="theirs.example/v1", collectors=collectors)


class Badge(BaseModel):
    code: SecretText


class GuardedSpec(ObjectSpec):
    """Secrets are not searched for inside the fields of objects."""

    code: SecretText | None = None
    badges: list[Badge] | None = None


WELL_LISTED = make_provider(SHELF)
NESTED_SECRET = make_provider(SystemObjectKind(SYSTEM, "Guarded", GuardedSpec))
LIST_OF_SECRETS = create_model("S", __base__=ObjectSpec, a=list[SecretText])
NESTED_TEXTS = make_provider(SystemObjectKind(SYSTEM, "Guarded", LIST_OF_SECRETS))
UNLISTED_TYPE = make_provider(SHELF, lists_types=False)
UNREAD = make_provider(SHELF, lists_collector=False)
NO_SUCH_FIELD = make_provider(MISSPELT)
NO_SUCH_KIND = make_provider(HOMELESS)

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Add entry points to kdeclare's own: their names, and the attributes of this module they refer to."""
    clear_caches()
    installed = entry_points.find_all

    def add_entry_points(**attributes: str) -> None:
        points = [
            InstalledEntryPoint(GROUP, name, value if ":" in value else f"{__name__}:{value}")
            for name, value in attributes.items()
        ]
        monkeypatch.setattr(entry_points, "find_all", lambda: (*installed(), *points))

    yield add_entry_points
    clear_caches()


@pytest.fixture(autouse=True)
def _forget_chosen_providers() -> None:
    """Commands of fleets in earlier tests choose providers for the whole process."""
    use_providers(None)


def clear_caches() -> None:
    """Forget the providers, also those that an earlier fleet command chose for this process."""
    use_providers(None)
    find_providers.cache_clear()
    load_providers.cache_clear()


def catch_refusal(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(KdeclareError) as problem:
        act()
    (found,) = problem.value.diagnostics
    return found.code, found.detail


def test_builtin_providers_use_same_entry_points() -> None:
    assert [(item.name, item.distribution, item.version) for item in find_providers()] == [
        ("connect", "kdeclare", VERSION),
        ("kafka", "kdeclare", VERSION),
        ("schema_registry", "kdeclare", VERSION),
    ]


def test_providers_are_loaded_after_their_dependencies() -> None:
    assert load_providers() == (KAFKA, CONNECT, SCHEMA_REGISTRY)
    assert list(registry.KINDS) == [
        "Topic",
        "BrokerConfig",
        "Reassignment",
        "ClientQuota",
        "GroupConfig",
        "ClientMetrics",
        "ScramUser",
        "Acl",
        "ConnectWorkerConfig",
        "Connector",
        "Schema",
    ]


def test_registries_follow_installed_providers() -> None:
    known: tuple[Mapping[str, object], ...] = (registry.KINDS, registry.OPERATION_TYPES, registry.CODECS)
    own = [set(names) for names in known]
    kitchen = InstalledProvider("kitchen", "", "", "tests.unit.fleet.kitchen:PROVIDER")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed_providers, "find_providers", lambda: (kitchen,))
        load_providers.cache_clear()
        kinds = {kind.name for kind in KITCHEN.kinds}
        codecs = {sort for made in KITCHEN.collectors if made.codec for sort in made.codec.sorts}
        assert [set(names) for names in known] == [kinds, set(), codecs]
    load_providers.cache_clear()
    assert [set(names) for names in known] == own


def test_installed_provider_is_loaded(install: Install) -> None:
    install(theirs="FITS")
    assert FITS in load_providers()


def test_provider_with_all_parts_listed_is_loaded(install: Install) -> None:
    install(theirs="WELL_LISTED")
    assert WELL_LISTED in load_providers()


@pytest.mark.parametrize(
    ("attribute", "code", "detail"),
    [
        (
            "LATER",
            "provider-contract",
            "implements version 2 of the provider contract, but this version of kdeclare requires version 1",
        ),
        ("NO_PROVIDER", "provider-broken", "NO_PROVIDER is a str"),
        ("MISSING", "provider-broken", "AttributeError"),
        ("OTHER_NAME", "provider-broken", "its name 'ours' differs from its entry point"),
        (
            "NO_VERSION",
            "provider-broken",
            "its api_version 'theirs' does not have the form GROUP/VERSION, such as flags.example/v1",
        ),
        ("no_such_module_at_all:X", "provider-broken", "ModuleNotFoundError"),
        (
            "UNLISTED_TYPE",
            "provider-broken",
            "does not list its operation types shelf.create",
        ),
        ("NESTED_SECRET", "provider-broken", "field 'badges' of GuardedSpec contains a nested secret"),
        ("NESTED_TEXTS", "provider-broken", "field 'a' of S contains a nested secret"),
        (
            "UNREAD",
            "provider-broken",
            "no collector in the provider's collectors reads this kind",
        ),
        (
            "NO_SUCH_FIELD",
            "provider-broken",
            "'rooom', which is not a field of ShelfSpec (did you mean",
        ),
        ("NO_SUCH_KIND", "provider-broken", "an unknown kind, 'Shelff' (did you mean 'Shelf'?)"),
        ("SAME_KIND", "provider-collision", "The kind 'Topic' is defined by both"),
        ("SAME_OPERATION", "provider-collision", "The operation type 'connect.worker-config.patch'"),
    ],
)
def test_unsuitable_provider_is_refused_by_name(
    install: Install, attribute: str, code: str, detail: str
) -> None:
    install(theirs=attribute)
    found = catch_refusal(load_providers)
    assert found[0] == code
    assert detail in found[1]


def distribute(monkeypatch: pytest.MonkeyPatch, folder: Path, **attributes: str) -> None:
    """Install these attributes of this module, each in its own distribution."""
    for name, attribute in attributes.items():
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {__name__}:{attribute}\n")
    monkeypatch.syspath_prepend(str(folder))
    clear_caches()


@pytest.mark.parametrize(
    ("attributes", "detail"),
    [
        ({"theirs": "SAME_GROUP"}, "The API group 'kdeclare' is defined by both {kdeclare} and {theirs}."),
        (
            {"theirs": "OWN_GROUP", "others": "OWN_GROUP_TOO"},
            "The API group 'theirs.example' is defined by both {others} and {theirs}.",
        ),
        ({"theirs": "SAME_KIND_ELSEWHERE"}, "The kind 'Topic' is defined by both {kdeclare} and {theirs}."),
    ],
)
def test_colliding_groups_and_kinds_are_refused_by_distribution(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    install: Install,
    attributes: dict[str, str],
    detail: str,
) -> None:
    distribute(monkeypatch, tmp_path, **attributes)
    named = {name: f"the package {name}" for name in ("kdeclare", *attributes)}
    assert catch_refusal(load_providers) == ("provider-collision", detail.format(**named))


def test_provider_with_own_api_group_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, install: Install
) -> None:
    distribute(monkeypatch, tmp_path, theirs="OWN_GROUP")
    assert OWN_GROUP in load_providers()
    assert registry.list_api_versions() == ("kdeclare/v1", "theirs.example/v1")


def test_cyclic_providers_are_refused(install: Install) -> None:
    install(a="ROUND_A", b="ROUND_B")
    assert catch_refusal(load_providers)[0] == "provider-cycle"


def test_providers_are_imported_on_first_use_of_kinds() -> None:
    code = (
        "import sys; from kdeclare.core.provider.registry import KINDS;"
        "from kdeclare.core.provider.installed_providers import find_providers;"
        "find_providers(); assert 'kdeclare.providers.kafka.provider' not in sys.modules;"
        "assert 'Topic' in KINDS; assert 'kdeclare.providers.kafka.provider' in sys.modules;"
        "assert 'kafka' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_providers_command_lists_kinds(kdeclare: CommandLine) -> None:
    ran = kdeclare("providers")
    assert ran.code == 0
    assert "Topic, BrokerConfig, Reassignment" in ran.out
    assert f"kafka            {VERSION}" in ran.out
    document = json.loads(kdeclare("providers", "--format", "json").out)
    Draft202012Validator(build_providers_schemas()["providers"]).validate(document)
    assert [item["name"] for item in document["providers"]] == ["connect", "kafka", "schema_registry"]


def test_providers_command_shows_api_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, install: Install, kdeclare: CommandLine
) -> None:
    distribute(monkeypatch, tmp_path, theirs="OWN_GROUP")
    header, *rows = kdeclare("providers").out.splitlines()
    assert header.split() == ["PROVIDER", "VERSION", "APIVERSION", "KINDS", "FROM"]
    assert [row.split()[2] for row in rows] == ["kdeclare/v1"] * 3 + ["theirs.example/v1"]
    document = json.loads(kdeclare("providers", "--format", "json").out)
    versions = {item["name"]: item["api_version"] for item in document["providers"]}
    own = dict.fromkeys(("connect", "kafka", "schema_registry"), "kdeclare/v1")
    assert versions == own | {"theirs": "theirs.example/v1"}


def test_providers_command_names_colliding_providers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, install: Install, kdeclare: CommandLine
) -> None:
    distribute(monkeypatch, tmp_path, theirs="OWN_GROUP", others="OWN_GROUP_TOO")
    ran = kdeclare("providers")
    assert ran.code == 1
    detail = "The API group 'theirs.example' is defined by both the package others and the "
    detail += "package theirs."
    assert f"error: {detail}" in " ".join(ran.out.split())
    document = json.loads(kdeclare("providers", "--format", "json").out)
    Draft202012Validator(build_providers_schemas()["providers"]).validate(document)
    problems = {item["name"]: item["problem"] for item in document["providers"]}
    assert problems["kafka"] is problems["connect"] is None
    assert detail in problems["theirs"]
    assert detail in problems["others"]


def test_providers_command_names_unloadable_provider(kdeclare: CommandLine, install: Install) -> None:
    install(theirs="no_such_module_at_all:X")
    ran = kdeclare("providers")
    assert ran.code == 1
    assert "error: The provider 'theirs'" in ran.out
    assert "No module named 'no_such_module_at_all'" in ran.out
    document = json.loads(kdeclare("providers", "--format", "json").out)
    Draft202012Validator(build_providers_schemas()["providers"]).validate(document)
    assert [item["api_version"] for item in document["providers"]] == ["kdeclare/v1"] * 3 + [None]
    assert "Topic, BrokerConfig, Reassignment" in ran.out
    plan = kdeclare("validate")
    assert plan.code == 1
    assert "The provider 'theirs'" in plan.err + plan.out
    assert "Traceback" not in plan.err


def test_providers_schema_matches_docs() -> None:
    for name, schema in build_providers_schemas().items():
        check_schema(name, schema)


def test_registry_ignores_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(registry.KINDS)


@pytest.mark.slow
def test_kind_of_schemas_imports_no_schema_parser() -> None:
    """The parsers take 10 ms to import, and only comparisons of schemas need them."""
    code = (
        "import sys; from kdeclare.core.provider.registry import KINDS; KINDS['Schema'];"
        "print([m for m in sys.modules if m.startswith('kdeclare.providers.schema_registry.schemas.')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parts = (f"kdeclare.providers.schema_registry.schemas.{name}" for name in ("differences", "problems"))
    assert ran.stdout == f"{list(parts)}\n"
