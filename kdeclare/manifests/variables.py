"""The variables of a project: their declarations, and their values in one environment.

A value comes from ``--var``, from ``--var-file``, from the environment in the project file, or from the
default of the declaration; the first of these that has a value takes precedence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from yaml import Mark
from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.suggestions import format_suggestion
from kdeclare.core.units import parse_amount
from kdeclare.manifests.document_models import load_document
from kdeclare.manifests.project_schema import EnvironmentSpec, VariableSpec
from kdeclare.manifests.syntax.node_reader import KAFKA, TEXT, UNIFORM, VALUE, NodeReader
from kdeclare.manifests.syntax.nodes import compose, find_node, get_position
from kdeclare.manifests.syntax.substitution import Variable

OPTION: Final = "--var"
_NUMBER = re.compile("-1|[0-9]+")
_FILE_READ_HINT = "Pass the path of a readable YAML or JSON file with --var-file FILE."


@dataclass(frozen=True, slots=True)
class GivenVariables:
    """The values that a command line sets. Later values replace earlier ones.

    files: files with a mapping of names to values. assignments: names and their values as typed.
    """

    files: tuple[Path, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()

    def over(self, earlier: "GivenVariables") -> "GivenVariables":
        """Return the values of both objects. Values of ``self`` take precedence over values of ``earlier``.

        However, assignments always take precedence over files.
        """
        return GivenVariables((*earlier.files, *self.files), (*earlier.assignments, *self.assignments))


@dataclass(frozen=True, slots=True)
class ProjectVariables:
    """The variables in one environment.

    values: the variables that have a value. unset: the declared variables without a value.
    """

    values: Mapping[str, Variable]
    unset: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Statement:
    """A variable's name and value in a file or on the command line. position: the position of the name."""

    name: str
    node: Node
    position: SourcePosition


def resolve_variables(
    root: Node | None,
    declared: Mapping[str, VariableSpec],
    environments: Mapping[str, EnvironmentSpec],
    env: str,
    reader: NodeReader,
    given: GivenVariables,
) -> ProjectVariables:
    """Return the variables of a project in one environment.

    root: the project file. None if there is no project file; every name is then accepted.
    declared: the variables in ``spec.variables``.
    reader: resolves references in the values.
    Raises KdeclareError for unknown names and for values that do not have the declared type.
    """
    statements = [*_list_defaults(root, declared), *_list_environment_values(root, env)]
    problems = list(_check_environments(root, declared, environments))
    known = set(declared) or {name for spec in environments.values() for name in spec.variables}
    for statement in _list_given(given, declared):
        if root is not None and statement.name not in known:
            problems.append(_build_unknown_error(statement.name, statement.position, known))
        else:
            statements.append(statement)
    chosen = {statement.name: statement for statement in statements}
    values = {}
    for statement in chosen.values():
        spec = declared.get(statement.name, VariableSpec())
        variable, read_problems = _read_variable(statement, spec, reader)
        problems += read_problems
        if variable is not None:
            values[statement.name] = variable
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))
    return ProjectVariables(values, frozenset(declared) - chosen.keys())


def _list_defaults(root: Node | None, declared: Mapping[str, VariableSpec]) -> Iterator[_Statement]:
    for name in declared:
        default = find_node(root, ("spec", "variables", name, "default")) if root is not None else None
        if default is not None and declared[name].default is not None:
            yield _Statement(name, default, get_position(default))


def _list_environment_values(root: Node | None, env: str) -> Iterator[_Statement]:
    node = find_node(root, ("spec", "environments", env, "variables")) if root is not None else None
    yield from _list_entries(node)


def _list_entries(node: Node | None) -> Iterator[_Statement]:
    for key, value in node.value if isinstance(node, MappingNode) else ():
        yield _Statement(str(key.value), value, get_position(key))


def _list_given(given: GivenVariables, declared: Mapping[str, VariableSpec]) -> Iterator[_Statement]:
    for file in given.files:
        yield from _list_entries(load_document(file, "Variables", _FILE_READ_HINT))
    for name, text in given.assignments:
        node = _parse_assignment(name, text, declared.get(name, VariableSpec()))
        yield _Statement(name, node, get_position(node))


def _parse_assignment(name: str, text: str, spec: VariableSpec) -> Node:
    """Return the YAML node for a value on the command line.

    The value of a variable of type string is used exactly as typed. Other values are read in the same way as
    in the project file. Raises KdeclareError for a list or mapping that is not valid YAML.
    """
    source = f"{OPTION} {name}"
    if spec.type in ("list", "map") or (spec.type is None and text.startswith(("[", "{"))):
        problems: list[Diagnostic] = []
        documents = list(compose(source, text.encode(), problems))
        if problems:
            raise KdeclareError(*problems)
        if len(documents) == 1:
            return documents[0]
    mark = Mark(source, 0, 0, 0, None, 0)
    return ScalarNode(
        cast("str", None), text, mark, mark, style='"' if spec.type == "string" or not text else None
    )


def _check_environments(
    root: Node | None, declared: Mapping[str, VariableSpec], environments: Mapping[str, EnvironmentSpec]
) -> Iterator[Diagnostic]:
    """Yield an error for each variable that an environment sets but the project does not declare.

    Without this error, a variable would silently keep its default if an environment misspells its name.
    """
    if not declared or root is None:
        return
    for env in environments:
        for statement in _list_environment_values(root, env):
            if statement.name not in declared:
                yield _build_unknown_error(statement.name, statement.position, declared)


def _read_variable(
    statement: _Statement, spec: VariableSpec, reader: NodeReader
) -> tuple[Variable | None, list[Diagnostic]]:
    """Return the variable, and the problems with its value.

    The value is read twice: with its YAML type, and as text.
    """
    node = statement.node
    text, text_problems = reader.read_aside(node, UNIFORM[KAFKA])
    if spec.type in _AS_WRITTEN:
        value, problems = reader.read_aside(node, UNIFORM[TEXT])
    else:
        value, problems = reader.read_aside(node, UNIFORM[VALUE])
    problems = list(dict.fromkeys((*problems, *text_problems)))
    if problems:
        return None, [replace(problem, subject=statement.name) for problem in problems]
    if spec.type is not None and not _TYPE_CHECKS[spec.type](value):
        return None, [_build_type_error(statement, spec.type)]
    return Variable(value, text, statement.position), []


_AS_WRITTEN = frozenset({"string", "duration", "size"})


def _is_amount(key: str) -> Callable[[Any], bool]:
    """Return a predicate that is true for amounts with a unit, whole numbers, and -1 (unlimited).

    key: a config key that determines the allowed units, such as ``retention.ms``.
    """
    return lambda value: (
        isinstance(value, str)
        and (_NUMBER.fullmatch(value) is not None or parse_amount(key, value) is not None)
    )


_TYPE_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
    "duration": _is_amount("retention.ms"),
    "size": _is_amount("bytes"),
}
_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "map": "a mapping",
    "duration": "a duration such as 7d, or a whole number of milliseconds",
    "size": "a size such as 50MiB, or a whole number of bytes",
}


def _build_type_error(statement: _Statement, declared_type: str) -> Diagnostic:
    return error(
        "wrong-variable-type",
        "Variable has the wrong type",
        f"The project declares '{statement.name}' as {_TYPE_NAMES[declared_type]}, but this value has a "
        "different type.",
        hint="Correct the value, or the type under 'variables' in the spec of the project file.",
        place=get_position(statement.node),
        subject=statement.name,
    )


def _build_unknown_error(name: str, position: SourcePosition, known: Iterable[str]) -> Diagnostic:
    return error(
        "unknown-variable",
        "Variable is not declared",
        f"The project declares no variable '{name}'.",
        hint=format_suggestion(name, known)
        or f"Declare it under 'variables' in the spec of the project file: {name}: {{}}.",
        place=position,
        subject=name,
    )


def parse_assignments(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Split arguments of the form ``NAME=VALUE`` into names and values.

    Raises ValueError for an argument without a name or without an equals sign.
    """
    assignments = []
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise ValueError("use the form NAME=VALUE, for example retention=7d")
        assignments.append((name, value))
    return tuple(assignments)
