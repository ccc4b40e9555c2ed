"""Checks of the structure, and of the contracts in ``pyproject.toml`` that import-linter cannot do itself."""

import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.structure import find_cycles, find_large_folders, find_modules

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
CORE = "The core needs pydantic and the standard library"
REQUIRED = [text for text in requires("kdeclare") or () if "extra ==" not in text]
NEEDED = {canonicalize_name(Requirement(text).name) for text in REQUIRED}


@pytest.mark.slow
@pytest.mark.parametrize("library", sorted(NEEDED - {"pydantic"}))
def test_core_contract_forbids_every_library_except_pydantic(library: str) -> None:
    """A new dependency of the project must be added to the contract of the core."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    (core,) = (contract for contract in contracts if contract["name"] == CORE)
    installed = packages_distributions().items()
    modules = {module for module, owners in installed if library in {canonicalize_name(o) for o in owners}}
    assert modules & set(core["forbidden_modules"]), modules


@pytest.mark.slow
def test_no_folder_has_too_many_modules_and_no_imports_form_a_cycle() -> None:
    modules = find_modules(PROJECT.parent)
    assert find_large_folders(modules) == {}
    assert find_cycles(modules) == []
