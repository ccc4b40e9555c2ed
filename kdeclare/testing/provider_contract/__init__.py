"""The contract that every provider must meet, as a pytest suite.

Subclass `ProviderContract` in your test module, in a class whose name starts with ``Test``. Define the
provider, three sets of resources, and methods that create, connect to and read a system. Every test creates
its own systems, so use systems that start quickly: fakes, or real systems that run inside the test.

The docstring of each test is a promise of kdeclare to the users of the provider. If the test fails, kdeclare
cannot keep this promise.
"""

from kdeclare.testing.provider_contract.bench import Bench, Declared
from kdeclare.testing.provider_contract.fault_promises import FaultPromises
from kdeclare.testing.provider_contract.lifecycle_promises import LifecyclePromises
from kdeclare.testing.provider_contract.manifest_promises import ManifestPromises
from kdeclare.testing.provider_contract.run_promises import RunPromises
from kdeclare.testing.provider_contract.secret_promises import SecretPromises

__all__ = ["Bench", "Declared", "ProviderContract"]


class ProviderContract(ManifestPromises, RunPromises, LifecyclePromises, FaultPromises, SecretPromises):
    """The test suite for a provider. The docstring of this module explains how to use the suite.

    provider: the provider under test.
    before: the resources that are declared first. after: the resources that are declared second. From
        ``before`` to ``after``, each kind should have one resource that is created, one that is updated and
        one that is deleted. All secrets should change.
    elsewhere: some resources of ``after``, as another client might have changed them. Each declaration must
        differ from the declarations of the same resource in ``before`` and ``after``.
    secrets: the values of references to secrets, by reference: ``{"${env.TOKEN}": "any text"}``.
    actions: the actions of the changes from ``before`` to ``after``. Set this attribute only if the kinds do
        not support all actions. For example, objects that always exist, such as brokers, are neither created
        nor deleted. If deletions cannot be undone, add a second class without deletions to show that all
        other changes are rolled back.

    If the system acknowledges a write before it shows the write, also override `make_clock`. Work that
    continues after a request (a `Completion`) does not require a different clock.
    """
