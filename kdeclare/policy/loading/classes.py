"""From ``module:Class`` and settings to a policy; all that other people's code can do wrong is said."""

import importlib
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from yaml.error import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.resources.kind import Path, Problem
from kdeclare.core.resources.policy_subjects import ResourcePolicy
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.core.suggest import did_you_mean, one_of
from kdeclare.manifests.schema_errors import explain
from kdeclare.policy.deprecated import INTERFACES, AnyPolicy, adapted, interfaces_of
from kdeclare.policy.interface import TopicActionsPolicy
from kdeclare.policy.isolation import TooSlow, told, within_limit
from kdeclare.policy.loading.importable import elsewhere_too, modules_here

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

__all__ = ["INTERFACES", "AnyPolicy", "Unusable", "adapted", "configure", "make", "module_of"]

_CLASS: Path = ("class",)
_RULES = "kdeclare.policy.rules"


class Unusable(Exception):
    """A policy that cannot be used. The paths of its problems begin with ``class`` or ``config``."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__(" ".join(p.diagnostic.detail for p in problems))


def module_of(class_name: str) -> str:
    """The module in ``module:Class``."""
    return class_name.partition(":")[0]


def make(class_name: str, interfaces: tuple[type[AnyPolicy], ...] = INTERFACES) -> AnyPolicy:
    """A new instance of a class that implements one of the interfaces. Raises Unusable."""
    module, _, name = class_name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        hint = "The file policies/naming.py beside the project file is the module 'policies.naming'."
        raise _no_policy(f"'{class_name}' is not of the form module:Class.", hint)
    there = _imported(module)
    cls = _attempt(lambda: _class(there, name, interfaces), f"'{class_name}' cannot be looked at", _CLASS)
    new: Callable[[], AnyPolicy] = cls
    made = _attempt(new, f"'{class_name}' cannot be made without arguments", _CLASS)
    if not _implements(type(made), interfaces):
        raise _no_policy(f"'{class_name}' makes no policy, but an object of class {type(made).__name__}.")
    return made


def configure(policy: AnyPolicy, class_name: str, settings: Mapping[str, Any]) -> None:
    """Give a policy its settings. Raises Unusable."""

    def call() -> None:
        try:
            policy.configure(settings)
        except ValidationError as e:
            raise Unusable(*explained(e, policy, settings)) from None
        except Unusable as inner:  # of a policy that is one of the settings
            raise Unusable(*(replace(p, path=(CONFIG, *p.path)) for p in inner.problems)) from None

    _attempt(call, f"'{class_name}' does not take its settings", (CONFIG,))


def _imported(name: str) -> ModuleType:
    other = elsewhere_too(name)
    if other is not None:
        raise _ambiguous(name, other)

    def call() -> ModuleType:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as e:
            if e.name is None or not f"{name}.".startswith(f"{e.name}."):
                raise  # it is there, and something that it imports is not
            raise _no_module(e.name, name) from None

    return _attempt(call, f"'{name}' cannot be imported", _CLASS)


def _no_module(name: str, wanted: str) -> Unusable:
    parent, _, last = name.rpartition(".")
    near = did_you_mean(wanted, [*modules_here(), _RULES])
    detail = f"There is no module '{last}'" + (f" in '{parent}'." if parent else ".")
    looked = "It is looked for beside the project file and among the installed packages."
    return _not_found(detail, near or looked)


def _class(module: ModuleType, name: str, interfaces: tuple[type[AnyPolicy], ...]) -> type[AnyPolicy]:
    found = getattr(module, name, None)
    where = module.__name__
    if found is None:
        theirs = [n for n, item in vars(module).items() if _implements(item, interfaces)]
        there = f"It has {one_of(theirs)}." if theirs else ""
        raise _not_found(f"'{where}' has no class '{name}'.", did_you_mean(name, theirs) or there)
    if not _implements(found, interfaces):
        raise _no_policy(f"'{where}:{name}' is no subclass of {one_of(i.__name__ for i in interfaces)}.")
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise _no_policy(f"'{where}:{name}' is abstract: it does not define {lacking}.")
    has = interfaces_of(found)
    if ResourcePolicy in has and len(has) > 1:
        both = " and ".join(interface.__name__ for interface in has)
        raise _no_policy(f"'{where}:{name}' is {both}; topics and other kinds take a class each.")
    if TopicActionsPolicy in has and len(has) > 1:
        raise _two_interfaces(f"{where}:{name}", has)
    return found  # type: ignore[no-any-return]  # it was checked


def _implements(item: object, interfaces: tuple[type[AnyPolicy], ...]) -> bool:
    # not isinstance, which asks the item
    if not issubclass(type(item), type) or item in INTERFACES:
        return False
    return any(i in interfaces for i in interfaces_of(item))  # type: ignore[arg-type]  # it is a type


def _attempt(call: Callable[[], _T], what: str, path: Path) -> _T:
    def guarded() -> _T:
        try:
            return call()
        except (Unusable, KeyboardInterrupt):
            raise
        except BaseException as e:  # noqa: BLE001  other people's code runs here
            _log.info("%s", what, exc_info=True)
            raise _failed(what, told(e), path) from None

    try:
        return within_limit(guarded)
    except TooSlow as e:
        raise _failed(what, str(e), path) from None


def _failed(what: str, why: str, path: Path) -> Unusable:
    return Unusable(Problem(path, error("policy-failed", "Policy failed", f"{what}: {why}.")))


def _two_interfaces(class_name: str, has: tuple[type[AnyPolicy], ...]) -> Unusable:
    old = " and ".join(interface.__name__ for interface in has[1:])
    detail = f"'{class_name}' is a TopicActionsPolicy, and {old} as well, which KIP-201 deprecates."
    hint = "Inherit from TopicActionsPolicy alone: it is asked about all that the other is asked about."
    return Unusable(Problem(_CLASS, error("policy-conflict", "Old and new in one class", detail, hint)))


def _ambiguous(module: str, other: str) -> Unusable:
    top = module.partition(".")[0]
    detail = f"'{top}' {other}, and the folder of the project file has another one of that name."
    hint = "Rename the one beside the project file."
    return Unusable(
        Problem(_CLASS, error("ambiguous-policy-module", "Two modules of one name", detail, hint))
    )


def _no_policy(detail: str, hint: str = "") -> Unusable:
    return Unusable(Problem(_CLASS, error("not-a-policy", "Not a policy class", detail, hint)))


def _not_found(detail: str, hint: str) -> Unusable:
    return Unusable(Problem(_CLASS, error("policy-not-found", "No such policy class", detail, hint)))


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
