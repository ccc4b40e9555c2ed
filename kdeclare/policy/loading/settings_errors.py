"""Pydantic's errors about a policy's settings, in the words that manifests have for such errors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from yaml.error import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.kind import Path, Problem
from kdeclare.core.references import Referenced
from kdeclare.manifests.schema_errors import explain

CONFIG = "config"
_NO_TAG = ""


def explained(e: ValidationError, policy: object, settings: Mapping[str, Any]) -> list[Problem]:
    """All errors; their paths begin with ``config``, the field of the settings.

    policy: whose ``settings_model``, if it has one, says what could have been meant.
    """
    model = getattr(policy, "settings_model", None)
    known = model if isinstance(model, type) and issubclass(model, BaseModel) else dict[str, Any]
    data = {CONFIG: dict(settings)}
    paths: list[Path] = []
    found = explain(
        _below_config(e), create_model("Entry", config=(known, ...)), data, _tree(data, (), paths)
    )
    if not found:
        return [Problem((CONFIG,), error("bad-value", "Value not allowed", str(e)))]
    return [_by_path(diagnostic, paths) for diagnostic in found]


def _by_path(diagnostic: Diagnostic, paths: list[Path]) -> Problem:
    place = diagnostic.place
    return Problem(paths[place.line - 1] if place else (CONFIG,), replace(diagnostic, place=None))


def _below_config(e: ValidationError) -> ValidationError:
    return ValidationError.from_exception_data(
        e.title, [_moved(item) for item in e.errors(include_url=False)]
    )


def _moved(item: ErrorDetails) -> InitErrorDetails:
    loc = (CONFIG, *item["loc"])
    try:
        known = InitErrorDetails(type=item["type"], loc=loc, input=item["input"], ctx=item.get("ctx", {}))
        ValidationError.from_exception_data("", [known])
    except (KeyError, TypeError, ValueError):  # a type of their own
        own = PydanticCustomError("own", "{said}", {"said": item["msg"]})
        return InitErrorDetails(type=own, loc=loc, input=item["input"])
    return known


def _tree(data: Any, path: Path, paths: list[Path]) -> Node:
    """Plain data as nodes. The line of a node is where its path stands in ``paths``, so that what is
    explained by nodes can be told by paths."""
    paths.append(path)
    mark = Mark("", 0, len(paths) - 1, 0, None, 0)
    if isinstance(data, Mapping):
        pairs = [(_scalar(key, mark), _tree(value, (*path, key), paths)) for key, value in data.items()]
        keyed = [(ScalarNode(_NO_TAG, key.value, value.start_mark), value) for key, value in pairs]
        return MappingNode(_NO_TAG, keyed, mark)
    if isinstance(data, list):
        return SequenceNode(_NO_TAG, [_tree(item, (*path, n), paths) for n, item in enumerate(data)], mark)
    return _scalar(data, mark)


def _scalar(data: Any, mark: Mark) -> ScalarNode:
    return ScalarNode(_NO_TAG, data.reference if isinstance(data, Referenced) else str(data), mark)
