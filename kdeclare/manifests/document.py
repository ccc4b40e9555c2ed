"""Files that hold one document and are no manifests: of projects and of fleets."""

import re
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from yaml.nodes import MappingNode, Node

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, error, in_order
from kdeclare.manifests.model_fields import may_be_shown
from kdeclare.manifests.nodes import compose, find, path_to
from kdeclare.manifests.reading import KAFKA, VALUE, Reader
from kdeclare.manifests.schema_errors import explain
from kdeclare.manifests.shapes import not_a_manifest
from kdeclare.manifests.substitution import Variable

M = TypeVar("M", bound=BaseModel)
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


def document(path: Path, kind: str, named_by: str) -> Node:
    """The one document of a file that is no manifest. Raises KdeclareError.

    named_by: the hint for a file that cannot be read.
    """
    file = str(path)
    try:
        data = path.read_bytes()
    except OSError as e:
        raise KdeclareError(
            error(
                "unreadable-file",
                f"{kind} file cannot be read",
                f"'{file}' cannot be read: {(e.strerror or 'it cannot be opened').lower()}.",
                hint=named_by,
            )
        ) from None
    problems: list[Diagnostic] = []
    documents = list(compose(file, data, problems))
    if not problems and len(documents) != 1:
        second = find(documents[1], ()) if documents else Place(file, 1, 1)
        said = f"It holds {len(documents)} documents." if documents else "It is empty."
        hint = f"A {kind.lower()} file holds one document, of kind {kind}."
        code, summary = f"bad-{kind.lower()}", f"Not a {kind.lower()} file"
        problems.append(error(code, summary, said, hint=hint, place=second))
    if not problems and not isinstance(documents[0], MappingNode):
        problems.append(not_a_manifest(documents[0]))
    if problems:
        raise KdeclareError(*problems)
    return documents[0]


def validated(model: type[M], root: Node, reader: Reader) -> M:
    """A document as its model has it. Raises KdeclareError with all that is wrong."""
    reader.shows = lambda node: (path := path_to(root, node)) is not None and may_be_shown(model, path)
    data = reader.read(root)
    problems = list(reader.problems)
    try:
        manifest = model.model_validate(data, strict=True)
    except ValidationError as e:
        problems += explain(e, model, data, root)
        raise KdeclareError(*in_order(problems)) from None
    if problems:
        raise KdeclareError(*in_order(problems))
    return manifest


def variables_of(node: Node | None, reader: Reader) -> dict[str, Variable]:
    """Read twice, as a number's text as written cannot be had from the number."""
    if node is None:
        return {}
    values, texts = reader.read(node, VALUE), reader.read(node, KAFKA)
    return {str(name): Variable(value, texts[name]) for name, value in values.items()}


def location(folder: Path, state: str) -> str:
    """Where a state is that a file in ``folder`` names: a folder or a URI."""
    return state if _URI.match(state) else str(folder / state)
