"""Import, construct and configure policy classes, and report errors in their code."""

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
from kdeclare.core.policies.policy_request import ResourcePolicy
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.schema_errors import build_diagnostics
from kdeclare.policy.deprecated import INTERFACES, AnyPolicy, adapt_policy, find_interfaces
from kdeclare.policy.interface import TopicActionsPolicy
from kdeclare.policy.isolation import TimeLimitExceeded, call_within_limit, format_exception
from kdeclare.policy.loading.module_finder import explain_ambiguity, find_modules

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

__all__ = [
    "INTERFACES",
    "AnyPolicy",
    "UnusablePolicy",
    "adapt_policy",
    "configure_policy",
    "get_module_name",
    "make_policy",
]

_CLASS_PATH: SpecPath = ("class",)
_RULES_MODULE = "kdeclare.policy.rules"


class UnusablePolicy(Exception):
    """Raised if a policy class cannot be loaded.

    problems: the problems with the class. Their paths begin with ``class`` or ``config``.
    """

    def __init__(self, *problems: SpecProblem) -> None:
        self.problems = problems
        super().__init__(" ".join(p.diagnostic.detail for p in problems))


def get_module_name(class_name: str) -> str:
    return class_name.partition(":")[0]


def make_policy(class_name: str, interfaces: tuple[type[AnyPolicy], ...] = INTERFACES) -> AnyPolicy:
    """Create an instance of a policy class. Raises UnusablePolicy.

    class_name: the name of the class, in the form ``module:Class``.
    interfaces: the class must implement at least one of these interfaces.
    """
    module, _, name = class_name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        hint = "Write 'policies.naming:Class' for a class in policies/naming.py next to the project file."
        raise _build_not_a_policy_error(f"'{class_name}' does not have the form module:Class.", hint)
    loaded_module = _import_module(module)
    cls = _attempt(
        lambda: _get_class(loaded_module, name, interfaces),
        f"'{class_name}' cannot be inspected",
        _CLASS_PATH,
    )
    constructor: Callable[[], AnyPolicy] = cls
    policy = _attempt(constructor, f"'{class_name}' cannot be constructed without arguments", _CLASS_PATH)
    if not _is_implementation(type(policy), interfaces):
        raise _build_not_a_policy_error(
            f"'{class_name}' creates an object of class {type(policy).__name__}, which is not a policy."
        )
    return policy


def configure_policy(policy: AnyPolicy, class_name: str, settings: Mapping[str, Any]) -> None:
    """Configure a policy with its settings in the project file. Raises UnusablePolicy."""

    def configure_instance() -> None:
        try:
            policy.configure(settings)
        except ValidationError as e:
            raise UnusablePolicy(*build_problems(e, policy, settings)) from None
        except UnusablePolicy as inner:  # raised by a nested policy in the settings
            raise UnusablePolicy(*(replace(p, path=(CONFIG, *p.path)) for p in inner.problems)) from None

    _attempt(configure_instance, f"'{class_name}' does not accept its settings", (CONFIG,))


def _import_module(name: str) -> ModuleType:
    conflict = explain_ambiguity(name)
    if conflict is not None:
        raise _build_ambiguous_module_error(name, conflict)

    def import_named() -> ModuleType:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as e:
            if e.name is None or not f"{name}.".startswith(f"{e.name}."):
                raise  # the module exists, but a module that it imports does not exist
            raise _build_missing_module_error(e.name, name) from None

    return _attempt(import_named, f"'{name}' cannot be imported", _CLASS_PATH)


def _build_missing_module_error(name: str, module_name: str) -> UnusablePolicy:
    parent, _, last_part = name.rpartition(".")
    suggestion = format_suggestion(module_name, [*find_modules(), _RULES_MODULE])
    detail = f"The module '{last_part}' does not exist" + (f" in '{parent}'." if parent else ".")
    search_hint = "Put the module next to the project file, or install the package that contains it."
    return _build_not_found_error(detail, suggestion or search_hint)


def _get_class(module: ModuleType, name: str, interfaces: tuple[type[AnyPolicy], ...]) -> type[AnyPolicy]:
    candidate = getattr(module, name, None)
    module_name = module.__name__
    if candidate is None:
        class_names = [n for n, item in vars(module).items() if _is_implementation(item, interfaces)]
        classes_hint = f"Use {format_alternatives(class_names)}." if class_names else ""
        raise _build_not_found_error(
            f"'{module_name}' has no class '{name}'.", format_suggestion(name, class_names) or classes_hint
        )
    if not _is_implementation(candidate, interfaces):
        raise _build_not_a_policy_error(
            f"'{module_name}:{name}' is not a subclass of "
            f"{format_alternatives(i.__name__ for i in interfaces)}."
        )
    if inspect.isabstract(candidate):
        missing_methods = ", ".join(sorted(candidate.__abstractmethods__))
        raise _build_not_a_policy_error(
            f"'{module_name}:{name}' is abstract: it does not implement {missing_methods}."
        )
    implemented = find_interfaces(candidate)
    if ResourcePolicy in implemented and len(implemented) > 1:
        interface_names = " and ".join(interface.__name__ for interface in implemented)
        raise _build_not_a_policy_error(
            f"'{module_name}:{name}' is both {interface_names}.",
            "Use separate classes for topics and for other kinds.",
        )
    if TopicActionsPolicy in implemented and len(implemented) > 1:
        raise _build_interface_conflict(f"{module_name}:{name}", implemented)
    return candidate  # type: ignore[no-any-return]  # it was checked


def _is_implementation(item: object, interfaces: tuple[type[AnyPolicy], ...]) -> bool:
    # isinstance could run custom code of the item
    if not issubclass(type(item), type) or item in INTERFACES:
        return False
    return any(i in interfaces for i in find_interfaces(item))  # type: ignore[arg-type]  # it is a type


def _attempt(call: Callable[[], _T], failure_text: str, path: SpecPath) -> _T:
    def call_guarded() -> _T:
        try:
            return call()
        except (UnusablePolicy, KeyboardInterrupt):
            raise
        except BaseException as e:  # noqa: BLE001  custom code runs here
            _log.info("%s", failure_text, exc_info=True)
            raise _build_failure(failure_text, format_exception(e), path) from None

    try:
        return call_within_limit(call_guarded)
    except TimeLimitExceeded as e:
        raise _build_failure(failure_text, str(e), path) from None


def _build_failure(failure_text: str, reason: str, path: SpecPath) -> UnusablePolicy:
    return UnusablePolicy(
        SpecProblem(path, error("policy-failed", "Policy cannot be loaded", f"{failure_text}: {reason}."))
    )


def _build_interface_conflict(class_name: str, implemented: tuple[type[AnyPolicy], ...]) -> UnusablePolicy:
    deprecated_names = " and ".join(interface.__name__ for interface in implemented[1:])
    detail = (
        f"'{class_name}' is both a TopicActionsPolicy and a {deprecated_names}, which KIP-201 deprecates."
    )
    hint = "Inherit only from TopicActionsPolicy, which receives the same requests."
    return UnusablePolicy(
        SpecProblem(_CLASS_PATH, error("policy-conflict", "Mixed policy interfaces", detail, hint))
    )


def _build_ambiguous_module_error(module: str, conflict: str) -> UnusablePolicy:
    top = module.partition(".")[0]
    detail = f"'{top}' {conflict}, and the folder of the project file has a module with the same name."
    hint = "Rename the module in the folder of the project file."
    return UnusablePolicy(
        SpecProblem(_CLASS_PATH, error("ambiguous-policy-module", "Ambiguous module name", detail, hint))
    )


def _build_not_a_policy_error(detail: str, hint: str = "") -> UnusablePolicy:
    return UnusablePolicy(SpecProblem(_CLASS_PATH, error("not-a-policy", "Not a policy class", detail, hint)))


def _build_not_found_error(detail: str, hint: str) -> UnusablePolicy:
    return UnusablePolicy(
        SpecProblem(_CLASS_PATH, error("policy-not-found", "No such policy class", detail, hint))
    )


CONFIG = "config"
_NO_TAG = ""


def build_problems(e: ValidationError, policy: object, settings: Mapping[str, Any]) -> list[SpecProblem]:
    """Convert validation errors of a policy's settings to problems whose paths begin with ``config``.

    policy: the policy. If it has a ``settings_model``, corrections are suggested.
    """
    model = getattr(policy, "settings_model", None)
    settings_type = model if isinstance(model, type) and issubclass(model, BaseModel) else dict[str, Any]
    data = {CONFIG: dict(settings)}
    paths: list[SpecPath] = []
    diagnostics = build_diagnostics(
        _nest_under_config(e),
        create_model("Entry", config=(settings_type, ...)),
        data,
        _build_tree(data, (), paths),
    )
    if not diagnostics:
        return [SpecProblem((CONFIG,), error("bad-value", "Value not allowed", str(e)))]
    return [_restore_path(diagnostic, paths) for diagnostic in diagnostics]


def _restore_path(diagnostic: Diagnostic, paths: list[SpecPath]) -> SpecProblem:
    place = diagnostic.place
    return SpecProblem(paths[place.line - 1] if place else (CONFIG,), replace(diagnostic, place=None))


def _nest_under_config(e: ValidationError) -> ValidationError:
    return ValidationError.from_exception_data(
        e.title, [_nest_error(item) for item in e.errors(include_url=False)]
    )


def _nest_error(item: ErrorDetails) -> InitErrorDetails:
    loc = (CONFIG, *item["loc"])
    try:
        nested_error = InitErrorDetails(
            type=item["type"], loc=loc, input=item["input"], ctx=item.get("ctx", {})
        )
        ValidationError.from_exception_data("", [nested_error])
    except (KeyError, TypeError, ValueError):  # a custom error type
        custom_type = PydanticCustomError("own", "{said}", {"said": item["msg"]})
        return InitErrorDetails(type=custom_type, loc=loc, input=item["input"])
    return nested_error


def _build_tree(data: Any, path: SpecPath, paths: list[SpecPath]) -> Node:
    """Build YAML nodes from plain data.

    The line number of a node is the index of its path in ``paths``, so that the position of a diagnostic can
    be converted back to a path.
    """
    paths.append(path)
    mark = Mark("", 0, len(paths) - 1, 0, None, 0)
    if isinstance(data, Mapping):
        pairs = [
            (_build_scalar(key, mark), _build_tree(value, (*path, key), paths)) for key, value in data.items()
        ]
        keyed = [(ScalarNode(_NO_TAG, key.value, value.start_mark), value) for key, value in pairs]
        return MappingNode(_NO_TAG, keyed, mark)
    if isinstance(data, list):
        return SequenceNode(
            _NO_TAG, [_build_tree(item, (*path, n), paths) for n, item in enumerate(data)], mark
        )
    return _build_scalar(data, mark)


def _build_scalar(data: Any, mark: Mark) -> ScalarNode:
    return ScalarNode(_NO_TAG, data.reference if isinstance(data, Referenced) else str(data), mark)
