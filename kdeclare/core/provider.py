"""What a provider is: a package that knows one external system."""

from dataclasses import dataclass

from kdeclare.core.kind import Kind
from kdeclare.core.operation_type import Verb

CONTRACT = 1
"""The version of the provider contract. It is experimental: a later kdeclare may ask for another one."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What one package adds to kdeclare.

    kinds, operation_types: in the order in which they are listed.
    builds_on: names of providers whose resources this one's refer to; they are listed first.
    contract: the version of the contract that it was written for.
    """

    name: str
    kinds: tuple[Kind, ...]
    operation_types: tuple[Verb, ...]
    builds_on: tuple[str, ...] = ()
    contract: int = CONTRACT
