"""The command ``kdeclare impact``: what a hypothetical change means for records, producers and consumers."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.completion import complete_resources
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.help_groups import INSPECT
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.option_values import parse_resource
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.commands.options import ConfigChangeOptions, parse_replica_assignment
from kdeclare.providers.kafka.commands.topic import FactorOption, PartitionsOption, ReplicaAssignmentOption

if TYPE_CHECKING:
    from kdeclare.app.adhoc.run import AdhocRequest
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.parts import Connections
    from kdeclare.core.resources.ids import ResourceId

_TARGET = "KIND/NAME|PATH"
_MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
_TOPIC = "Topic"
_EPILOG = build_epilog(
    "kdeclare impact Topic/orders --add-config retention.ms=1d",
    "kdeclare impact Topic/orders --delete",
    "kdeclare impact Topic/orders --partitions 24",
    "kdeclare impact 'Topic/test-.*' --delete --format json",
    "kdeclare impact manifests/orders.yaml             the changes that a manifest requires",
    codes=(0, 1, 3, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Register the command with the application."""
    command(app, "impact", epilog=_EPILOG, help_group=INSPECT)(show_impact)


@dataclass(frozen=True, slots=True)
class HypotheticalChange:
    """The options that describe a change, with the same names as those of ``kdeclare topic``."""

    delete: Annotated[bool, typer.Option("--delete", help="Show the impact of deleting the topics.")] = False
    partitions: PartitionsOption = None
    replication_factor: FactorOption = None
    replica_assignment: ReplicaAssignmentOption = None

    @property
    def has_placement(self) -> bool:
        """Whether the user passed an option about partitions or replicas."""
        options = (self.partitions, self.replication_factor, self.replica_assignment)
        return any(option is not None for option in options)


def show_impact(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar=_TARGET,
            help="Resources to change with the options, such as Topic/orders, or files or folders with "
            "manifests.",
            show_default=False,
            autocompletion=complete_resources,
        ),
    ],
    *,
    change: HypotheticalChange,
    configs: ConfigChangeOptions,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show what a change would mean for records and clients.

    The options describe a change to existing resources; the name of a topic can be a regular expression.
    Config values can be amounts such as 1d or 10GiB. Instead of options, you can pass manifests. The command
    changes nothing, and needs neither a project nor a state. Without the state, it does not notice configs
    and resources that were removed from manifests; kdeclare plan does. Policies do not evaluate the change,
    and brokers do not validate it.
    """
    from kdeclare.app.adhoc.impact import read_impact
    from kdeclare.providers.kafka.commands.impact.impact_views import (
        build_impact_view,
        compute_impact_exit_code,
        list_diagnostics,
        render_impact,
    )

    make_builder = _choose_request(targets, change, configs)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    predicted = read_impact(workspace, make_builder(workspace), console.progress)
    if predicted.plan is None:
        return console.fail(list_diagnostics(predicted), ExitCode.ERROR)
    if console.is_json:
        console.write_document(build_impact_view(workspace.cluster_name, predicted))
    else:
        console.notices(list_diagnostics(predicted))
        console.out(render_impact(workspace.cluster_name, predicted.plan, console.style))
    return compute_impact_exit_code(predicted)


RequestBuilder = Callable[["Connections"], "AdhocRequest"]


def _choose_request(
    targets: Sequence[str], change: HypotheticalChange, configs: ConfigChangeOptions
) -> "Callable[[Workspace], RequestBuilder]":
    """Return a function that builds the request for the change. Raises BadParameter if arguments conflict."""
    if change != HypotheticalChange() or configs != ConfigChangeOptions():
        if any(not _is_resource(target) and _exists(target) for target in targets):
            raise typer.BadParameter(
                "manifests describe the change themselves; omit the other options, or name a resource such "
                "as Topic/orders.",
                param_hint=_TARGET,
            )
        resources = [parse_resource(_TARGET, target) for target in targets]
        return partial(_choose_resource_request, resources, change, configs)
    if not any(map(_exists, targets)):
        for target in targets:
            if not _is_resource(target) and target.endswith(_MANIFEST_SUFFIXES):
                raise typer.BadParameter(f"there is no file '{target}'.", param_hint=_TARGET)
            parse_resource(_TARGET, target)
        raise typer.BadParameter(
            "specify a change: --delete, --partitions, --replication-factor, --replica-assignment or "
            "configs.",
            param_hint=_TARGET,
        )
    if not all(map(_exists, targets)):
        missing = next(target for target in targets if not _exists(target))
        problem = (
            "pass either manifests or resources, not both."
            if _is_resource(missing)
            else f"there is no file '{missing}'."
        )
        raise typer.BadParameter(problem, param_hint=_TARGET)
    paths = [Path(target) for target in targets]
    return lambda workspace: partial(_request_manifests, workspace, paths)


def _is_resource(target: str) -> bool:
    from kdeclare.core.provider.registry import KINDS

    return target.partition("/")[0] in KINDS


def _exists(target: str) -> bool:
    """Return whether ``target`` is an existing file or folder. A name too long for a path is neither."""
    return os.path.exists(target)  # noqa: PTH110


def _choose_resource_request(
    resources: "Sequence[ResourceId]",
    change: HypotheticalChange,
    configs: ConfigChangeOptions,
    workspace: "Workspace",
) -> RequestBuilder:
    from kdeclare.core.provider.registry import KINDS
    from kdeclare.providers.kafka.commands import topic_requests
    from kdeclare.providers.kafka.config.configs_kind import ConfigsKind
    from kdeclare.providers.kafka.connection import KafkaConnection
    from kdeclare.providers.kafka.topic.adhoc_request import AdhocTopicRequest

    names = [resource.name for resource in resources]
    kinds = {resource.kind for resource in resources}
    kind = resources[0].kind
    changes = configs.configs()
    if len(kinds) > 1:
        raise typer.BadParameter("name resources of the same kind.", param_hint=_TARGET)
    if kind == _TOPIC and change.delete:
        if change.has_placement or changes:
            raise typer.BadParameter("cannot be combined with other changes.", param_hint="--delete")
        build = partial(topic_requests.build_delete_request, names, if_exists=False)
    elif kind == _TOPIC:
        requests = [
            AdhocTopicRequest(
                name,
                change.partitions,
                change.replication_factor,
                parse_replica_assignment(change.replica_assignment),
                changes,
            )
            for name in names
        ]
        build = partial(topic_requests.build_alter_request, workspace, requests, if_exists=False)
    elif not isinstance(KINDS[kind], ConfigsKind):
        raise typer.BadParameter(
            f"kdeclare can compute the impact of a deletion only for topics, not for the kind {kind}."
            if change.delete
            else f"the options cannot describe changes to resources of the kind {kind}. Pass a manifest "
            "instead.",
            param_hint=_TARGET,
        )
    elif change != HypotheticalChange():
        raise typer.BadParameter(f"the options can change only the configs of a {kind}.", param_hint=_TARGET)
    else:
        return lambda _: topic_requests.build_configs_request(workspace, kind, names, changes)
    return lambda connections: build(connections.get(KafkaConnection).cluster)


def _request_manifests(
    workspace: "Workspace", paths: Sequence[Path], connections: "Connections"
) -> "AdhocRequest":
    from kdeclare.app.adhoc.run import AdhocRequest
    from kdeclare.app.plan import load_valid_manifests
    from kdeclare.core.diagnostics import KdeclareError, error

    manifests = load_valid_manifests(workspace, paths)
    if not manifests.desired:
        raise KdeclareError(
            error(
                "no-resources",
                "No resources",
                "The manifests declare no resources.",
                hint="Pass a manifest of a resource, such as a Topic.",
            )
        )
    return AdhocRequest(manifests.desired, diagnostics=manifests.diagnostics)
