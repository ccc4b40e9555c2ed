"""The contract that every provider keeps, as a pytest suite.

Subclass `ProviderContract` in your test module, in a class whose name starts with ``Test``. Declare the
provider, how to make an empty system for it, and three sets of resources. Every test makes its own systems,
so they should be quick to make: fakes, or real systems that run inside the test.

A failing test means that kdeclare could not keep a promise to users of the provider. The docstring of the
test is the promise.
"""

from kdeclare.testing.provider_contract.bench import Bench, Declared
from kdeclare.testing.provider_contract.fault_promises import FaultPromises
from kdeclare.testing.provider_contract.manifest_promises import ManifestPromises
from kdeclare.testing.provider_contract.run_promises import RunPromises
from kdeclare.testing.provider_contract.secret_promises import SecretPromises

__all__ = ["Bench", "Declared", "ProviderContract"]


class ProviderContract(ManifestPromises, RunPromises, FaultPromises, SecretPromises):
    """The suite. The module explains how to use it.

    provider: the provider under test.
    before, after: what is declared first, and second. Between the two, every kind should have a resource
        that is created, one that is updated, and one that is deleted; any secrets should change.
    elsewhere: some resources of ``after`` in a third form, as another client changes them in the meantime.
        Each differs from ``before`` and from ``after``.
    secrets: the values of references to secrets, by reference: ``{"${env.TOKEN}": "any text"}``.
    actions: exactly the actions that changes between ``before`` and ``after`` have. Set it only if the kinds
        have fewer: objects that always exist, such as brokers, are neither created nor deleted. If deletions
        cannot be undone, a second class without deletions can show that everything else is rolled back.

    A provider whose system shows finished writes with a delay overrides `make_clock` too. Work that continues
    after a request (a `Completion`) does not need that.
    """
