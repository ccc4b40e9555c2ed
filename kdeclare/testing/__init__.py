"""Helpers for tests of providers: the engine without files, faults, and the provider contract as a suite."""

import pytest

pytest.register_assert_rewrite("kdeclare.testing.provider_contract")  # so that failures show the values
