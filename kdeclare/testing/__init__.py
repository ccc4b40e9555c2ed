"""For tests of providers: the engine without files, faults, and the contract of providers as a suite."""

import pytest

pytest.register_assert_rewrite("kdeclare.testing.provider_contract")  # so that a failure shows its values
