"""From ``module:Class`` and settings to a policy; all that other people's code can do wrong is said."""

import importlib
import inspect
import logging
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeVar

from pydantic import ValidationError

from kdeclare.kinds.base import Path, Problem
from kdeclare.manifests.suggest import did_you_mean, one_of
from kdeclare.model.diagnostics import error
from kdeclare.policy.deprecated import (
    AlterConfigAdapter,
    AlterConfigPolicy,
    CreateTopicAdapter,
    CreateTopicPolicy,
)
from kdeclare.policy.interface import TopicActionsPolicy
from kdeclare.policy.raised import told
from kdeclare.policy.settings_errors import CONFIG, explained

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

AnyPolicy = TopicActionsPolicy | CreateTopicPolicy | AlterConfigPolicy
"""What can be configured as a policy."""

INTERFACES: tuple[type[AnyPolicy], ...] = (TopicActionsPolicy, CreateTopicPolicy, AlterConfigPolicy)

_CLASS: Path = ("class",)


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
    cls: Callable[[], AnyPolicy] = _class(_imported(module), name, interfaces)
    return _attempt(cls, f"'{class_name}' cannot be made without arguments", _CLASS)


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


def adapted(policy: AnyPolicy) -> TopicActionsPolicy:
    """The policy itself, or a deprecated one behind its adapter."""
    if isinstance(policy, CreateTopicPolicy):
        return CreateTopicAdapter(policy)
    return AlterConfigAdapter(policy) if isinstance(policy, AlterConfigPolicy) else policy


def _imported(name: str) -> ModuleType:
    def call() -> ModuleType:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as e:
            if e.name is None or not f"{name}.".startswith(f"{e.name}."):
                raise  # it is there, and something that it imports is not
            raise _no_module(e.name) from None

    return _attempt(call, f"'{name}' cannot be imported", _CLASS)


def _no_module(name: str) -> Unusable:
    parent, _, last = name.rpartition(".")
    inside = getattr(sys.modules[parent], "__path__", ()) if parent else None
    near = did_you_mean(last, {module.name for module in pkgutil.iter_modules(inside)})
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
    return found  # type: ignore[no-any-return]  # it was checked


def _implements(item: object, interfaces: tuple[type[AnyPolicy], ...]) -> bool:
    return isinstance(item, type) and issubclass(item, interfaces) and item not in INTERFACES


def _attempt(call: Callable[[], _T], what: str, path: Path) -> _T:
    try:
        return call()
    except Unusable:
        raise
    except (Exception, SystemExit) as e:  # noqa: BLE001  other people's code runs here
        _log.info("%s", what, exc_info=True)
        raise Unusable(
            Problem(path, error("policy-failed", "Policy failed", f"{what}: {told(e)}."))
        ) from None


def _no_policy(detail: str, hint: str = "") -> Unusable:
    return Unusable(Problem(_CLASS, error("not-a-policy", "Not a policy class", detail, hint)))


def _not_found(detail: str, hint: str) -> Unusable:
    return Unusable(Problem(_CLASS, error("policy-not-found", "No such policy class", detail, hint)))
