"""Resource ids."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ResourceId:
    """The id of a resource within one cluster: ``Kind/name``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "ResourceId":
        """Parse ``Kind/name``. Raises ValueError if the kind or the name is missing."""
        kind, slash, name = text.partition("/")
        if not (kind and slash and name):
            raise ValueError(f"'{text}' is not of the form KIND/NAME")
        return cls(kind, name)
