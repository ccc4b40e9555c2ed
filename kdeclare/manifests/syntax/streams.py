"""Check a stream of manifests on standard input."""

from collections.abc import Iterator

from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.manifests.syntax.files import STREAM
from kdeclare.manifests.syntax.nodes import compose


def check_stream(stream: bytes) -> Iterator[Diagnostic]:
    """Yield an error if a stream has no documents.

    Without this error, kdeclare would make a plan as if nothing had changed.
    """
    problems: list[Diagnostic] = []
    if any(not is_empty_document(root) for root in compose(STREAM, stream, problems)) or problems:
        return
    yield error(
        "empty-stream",
        "No manifests on standard input",
        "Standard input ended without a manifest. The program that writes the manifests may have failed.",
        hint="Check the output of that program. In a bash script, 'set -eo pipefail' stops the script "
        "when any command in a pipeline fails.",
        place=SourcePosition(STREAM, 1, 1),
    )


def is_empty_document(root: Node) -> bool:
    """Return whether a document of a file is empty."""
    return isinstance(root, ScalarNode) and not root.value and not root.style and root.tag is None
