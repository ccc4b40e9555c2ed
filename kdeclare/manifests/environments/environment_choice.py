"""Choose an environment of a project file, and remove what the chosen environment does not need.

What is removed is not validated, and its references are not resolved.
"""

from collections.abc import Mapping, Set

from yaml.nodes import MappingNode, Node

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.provider.registry import find_environment_settings
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.project_schema import EnvironmentSpec
from kdeclare.manifests.syntax.nodes import find_child, find_node, find_position, list_keys

DEFAULT = "default"
"""The name of the environment of a project without environments, and of a project without a project file."""

_CONNECTION_FIELDS = frozenset({"bootstrapServers", "clientConfig", "clientConfigFile", "providers"})
"""The fields of an environment that are needed only for connecting to its systems."""


def choose_environment(
    env: str | None, default: str | None, environments: Mapping[str, EnvironmentSpec], root: Node | None
) -> str:
    """Return the name of the environment that a command uses.

    env: the name on the command line, or None. default: the default environment of the project, or None.
    root: the document of the project file, or None if there is no project file.
    Raises KdeclareError if the environment does not exist, or if none of several environments is chosen.
    """
    environment_names = list(environments) or [DEFAULT]
    name = env or default or (environment_names[0] if len(environment_names) == 1 else None)
    if name is None:
        raise KdeclareError(
            error(
                "unknown-environment",
                "No environment chosen",
                f"The project has the environments {', '.join(sorted(environment_names))}, "
                f"and none of them is the default.",
                hint="Choose one with --env, or set defaultEnvironment in the project file.",
                place=find_position(root, ("spec", "environments"), key=True) if root is not None else None,
            )
        )
    if name in environment_names:
        return name
    is_declared_default = env is None and root is not None
    raise KdeclareError(
        error(
            "unknown-environment",
            "No such environment",
            f"The project has no environment '{name}'; it has {', '.join(sorted(environment_names))}.",
            hint=format_suggestion(name, environment_names),
            place=find_position(root, ("spec", "defaultEnvironment"))
            if is_declared_default and root is not None
            else None,
            subject=name,
        )
    )


def select_environment(root: Node, env: str) -> Node:
    """Return a project file's document with ``env`` as its only environment."""
    spec = find_child(root, "spec")
    environments = find_child(spec[1], "environments") if spec else None
    if spec is None or environments is None:
        return root
    chosen_pairs = [pair for pair in environments[1].value if pair[0].value == env]
    return _replace_value(
        root, "spec", _replace_value(spec[1], "environments", _build_mapping(environments[1], chosen_pairs))
    )


def drop_connection_fields(root: Node, env: str) -> Node:
    """Return a project file's document without the state, and without the connection settings of ``env``."""
    spec = find_node(root, ("spec",))
    environments, environment = (find_node(root, ("spec", "environments", *more)) for more in ((), (env,)))
    if spec is None:
        return root
    if environments is not None and environment is not None:
        is_plain = set(list_keys(environment)) <= EnvironmentSpec.model_fields.keys()
        fields = _CONNECTION_FIELDS | (frozenset() if is_plain else find_environment_settings().keys())
        environments = _replace_value(environments, env, _drop_keys(environment, fields))
        spec = _replace_value(spec, "environments", environments)
    return _replace_value(root, "spec", _drop_keys(spec, {"state"}))


def _drop_keys(node: Node, keys: Set[str]) -> Node:
    return _build_mapping(node, [(k, v) for k, v in node.value if k.value not in keys])


def _replace_value(node: Node, key: str, value: Node) -> Node:
    return _build_mapping(node, [(k, value if k.value == key else v) for k, v in node.value])


def _build_mapping(node: Node, pairs: list[tuple[Node, Node]]) -> Node:
    return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
