"""Helpers for tests of providers: an in-memory engine, fault injection, and the contract test suite."""

import pytest

pytest.register_assert_rewrite("kdeclare.testing.provider_contract")  # so that failed assertions show values
