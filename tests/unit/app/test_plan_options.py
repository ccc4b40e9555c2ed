"""Plan options: how programs set them, and which ones providers can declare."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pytest

from kdeclare.api import ExitCode, KdeclareError, PlanOptions, PlanScope, choose_options
from kdeclare.core.provider import entry_points
from kdeclare.core.provider.entry_points import InstalledEntryPoint
from kdeclare.core.provider.plan_options import GROUP, PlanOption, collect_options, find_plan_options
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions, get_kafka_options


def test_choose_options_accepts_command_line_names() -> None:
    chosen = choose_options(rf_guard="client", await_reassignments=True, delete_by_name=True)
    assert chosen == PlanOptions(KafkaPlanOptions("client", await_reassignments=True, delete_by_name=True))
    assert get_kafka_options(PlanScope(options=chosen).options).rf_guard == "client"


def test_choose_options_without_arguments_returns_defaults() -> None:
    assert choose_options() == PlanOptions()
    assert get_kafka_options(PlanScope().options) == KafkaPlanOptions()
    assert PlanScope() == PlanScope(options=choose_options())


def test_choose_options_suggests_similar_name() -> None:
    with pytest.raises(KdeclareError) as raised:
        choose_options(await_reasignments=True)
    assert raised.value.exit_code is ExitCode.USAGE
    assert raised.value.diagnostics[0].hint == "Did you mean 'await_reassignments'?"


def test_choose_options_rejects_value_of_wrong_type() -> None:
    with pytest.raises(KdeclareError, match="rf_guard: Input should be 'broker' or 'client'"):
        choose_options(rf_guard="brokers")


def test_plan_scope_rejects_positional_arguments() -> None:
    with pytest.raises(TypeError):
        PlanScope(True)  # type: ignore[call-arg]


@dataclass(frozen=True)
class TwinOptions:
    rf_guard: Annotated[bool, PlanOption("The same name.")] = False
    note: Annotated[str, PlanOption("Something else.", metavar="TEXT")] = ""


@dataclass(frozen=True)
class MandatoryOptions:
    note: Annotated[str, PlanOption("It has no default.", metavar="TEXT")]


@pytest.fixture
def added_entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[InstalledEntryPoint]]:
    added: list[InstalledEntryPoint] = []
    installed = entry_points.find_all
    monkeypatch.setattr(entry_points, "find_all", lambda: (*installed(), *added))
    find_plan_options.cache_clear()
    yield added
    find_plan_options.cache_clear()


def test_choose_options_rejects_duplicate_option_name(added_entry_points: list[InstalledEntryPoint]) -> None:
    added_entry_points.append(InstalledEntryPoint(GROUP, "twin", f"{__name__}:TwinOptions"))
    offered = find_plan_options().usable
    assert (offered["rf_guard"].provider, offered["note"].provider) == ("kafka", "twin")
    with pytest.raises(KdeclareError, match=r"'--rf-guard' of .*:TwinOptions has the same name"):
        choose_options()


@pytest.mark.parametrize(
    "reference", [f"{__name__}:Missing", f"{__name__}:added_entry_points", f"{__name__}:MandatoryOptions"]
)
def test_choose_options_reports_unloadable_options(
    added_entry_points: list[InstalledEntryPoint], reference: str
) -> None:
    added_entry_points.append(InstalledEntryPoint(GROUP, "twin", reference))
    assert "delete_by_name" in find_plan_options().usable
    with pytest.raises(KdeclareError, match=f"The options of {reference} cannot be loaded"):
        choose_options()


def test_building_plan_options_imports_no_heavy_packages() -> None:
    code = "import sys; from kdeclare.cli.main import build_application; build_application('plan'); "
    loaded = "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", code + loaded], capture_output=True, text=True, check=True)
    assert "typer" in ran.stdout.split()
    assert not {"pydantic", "yaml", "kafka", "httpx"} & set(ran.stdout.split())


def test_collect_options_ignores_unannotated_fields() -> None:
    @dataclass(frozen=True)
    class HiddenOptions:
        number: int = 1

    assert collect_options("hidden", HiddenOptions) == ()
