"""Checks of the import-linter contracts in ``pyproject.toml`` that they cannot do themselves."""

import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
CORE = "The core needs pydantic and the standard library"
REQUIRED = [text for text in requires("kdeclare") or () if "extra ==" not in text]
NEEDED = {canonicalize_name(Requirement(text).name) for text in REQUIRED}


@pytest.mark.parametrize("library", sorted(NEEDED - {"pydantic"}))
def test_core_contract_forbids_every_library_except_pydantic(library: str) -> None:
    """A new dependency of the project must be added to the contract of the core."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    (core,) = (contract for contract in contracts if contract["name"] == CORE)
    installed = packages_distributions().items()
    modules = {module for module, owners in installed if library in {canonicalize_name(o) for o in owners}}
    assert modules & set(core["forbidden_modules"]), modules
