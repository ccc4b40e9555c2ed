"""Small JSON files beside the tables, each with its format version."""

import json
from dataclasses import dataclass

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import Json
from kdeclare.fleet.rows import FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class Document:
    """What one sort of file is called, and what to say where something else stands in its place.

    code: of both errors. name: of the thing that it is about. broken, renew: summary and hint where it is
    none. writer: the command that writes it. other: the hint for another format version.
    """

    code: str
    name: str
    broken: str
    writer: str
    renew: str
    other: str

    def read(self, text: str, where: str) -> Json:
        """What a text holds. Raises KdeclareError for another format version, and for what is none."""
        try:
            data = json.loads(text)
            version = data["format_version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self.unreadable(where) from None
        if version == FORMAT_VERSION:
            return data
        detail = f"{where} has format version {version}, and this kdeclare reads {FORMAT_VERSION}."
        raise KdeclareError(error(self.code, f"{self.name} of another format", detail, hint=self.other))

    def unreadable(self, where: str) -> KdeclareError:
        """What to raise for a file that is not what it should be."""
        return KdeclareError(
            error(self.code, self.broken, f"{where} is not what {self.writer} writes.", hint=self.renew)
        )
