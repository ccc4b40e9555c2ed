"""Helpers for tests of providers: an engine without files, injected faults, and the contract test suite."""

import pytest

pytest.register_assert_rewrite("kdeclare.testing.provider_contract")  # so that failed assertions show values
