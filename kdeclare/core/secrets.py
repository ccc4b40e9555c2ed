"""Sensitive values, and what plans and states keep of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kdeclare.core.jsontypes import Json

SHOWN = "(sensitive)"
"""What stands for a sensitive value wherever people or files would see it."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A sensitive value in memory; of one that was decoded from JSON, ``value`` is empty.

    reference: the scalar as written, None for a literal.
    digest: its hash; empty until it is sealed (`engine.planning.sealing`), since a salt needs the state.
    stored: the state's own hash of it, where that was made of the same value; otherwise empty.
    doubtful: whether only the cluster can tell if it is sensitive at all.
    """

    value: str = field(repr=False)
    reference: str | None
    digest: str = ""
    stored: str = ""
    doubtful: bool = False

    @property
    def stated(self) -> Json:
        """What is sent to where it is compared, sealed or not: its hash as the state has it, if it does."""
        return {"secret": self.stored or self.digest, "reference": self.reference}

    def as_json(self) -> Json:
        """What plan and state keep: the reference and the salted hash. It must be sealed."""
        assert self.digest, "a secret that was not sealed"
        return {"secret": self.digest, "reference": self.reference}


class SecretSource(Protocol):
    """Gives the value of a secret again, at apply."""

    def reveal(self, secret: Mapping[str, Json]) -> str:
        """The value. Raises KdeclareError when it cannot be had or its hash is not the planned one."""


def is_secret(value: Json) -> bool:
    """Whether a value of an operation's args or of an owned record stands for a secret."""
    return isinstance(value, Mapping) and "secret" in value
