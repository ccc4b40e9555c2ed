"""Options that several commands share, grouped in dataclasses that `command.command` expands.

Slow imports are inside the functions that use them, because every command imports this module, even if it
only shows its ``--help``.
"""

from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.completion import complete_environments, complete_resources
from kdeclare.cli.invocation import Invocation
from kdeclare.cli.options.option_values import (
    parse_deletion_limit,
    parse_pairs,
    parse_resources,
    parse_variables,
)
from kdeclare.cli.options.single_options import (
    ChosenOptions,
    DeletionChoices,
    NoImpact,
    PlanChoices,
    validate_addresses,
    validate_duration,
    validate_location,
)
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.workspace import Workspace, WorkspaceOptions
    from kdeclare.engine.planning.request import PlanScope


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """Options that select the project and its environment, and that set variables of its manifests.

    All commands that open a project have these options, even if they do not read manifests. A script can
    therefore pass the same options to all commands.
    line: the context of the command line. This field is not an option.
    """

    project: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Project file (default: kdeclare.yaml, if it exists)."),
    ] = None
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environment of the project (default: its defaultEnvironment, or its only environment).",
            autocompletion=complete_environments,
        ),
    ] = None
    var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Set a variable that manifests refer to as ${var.NAME}. Repeatable. Not for secrets.",
        ),
    ] = None
    var_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--var-file",
            metavar="FILE",
            help="Read variables from this YAML or JSON file of NAME: VALUE entries. Repeatable; --var takes "
            "precedence.",
        ),
    ] = None
    line: Invocation = field(default_factory=Invocation, kw_only=True)

    @property
    def has_variables(self) -> bool:
        """Whether the command line sets variables."""
        return bool(self.var or self.var_file)

    def collect_options(self) -> "WorkspaceOptions":
        """Return the values of these options. Options that the command does not offer have their defaults.

        Raises BadParameter if the value of --var does not have the form NAME=VALUE.
        """
        from kdeclare.app.workspace import WorkspaceOptions

        known = {option.name for option in fields(WorkspaceOptions)}
        own = {option.name: getattr(self, option.name) for option in fields(self) if option.name in known}
        return WorkspaceOptions(**own, variables=parse_variables(self.var, self.var_file))

    def options(self) -> "WorkspaceOptions":
        """Return the values of these options. The kdeclare shell supplies the options that are not given.

        Raises BadParameter if the value of --var does not have the form NAME=VALUE.
        """
        return self.line.options(self.collect_options())


@dataclass(frozen=True, slots=True)
class StateOptions(ProjectOptions):
    """Project options, and an option for the location of the state."""

    state: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|URI",
            callback=validate_location,
            help="Location of the state (default: from the project file).",
        ),
    ] = None

    def workspace(self) -> "Workspace":
        """Open the project in its environment without connecting to a system. Raises KdeclareError."""
        return self.line.workspace(self.options())


@dataclass(frozen=True, slots=True)
class ClusterOptions(StateOptions):
    """State options, and options for the address of the cluster."""

    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT[,…]",
            callback=validate_addresses,
            help="Bootstrap servers of the cluster (default: from the project file).",
        ),
    ] = None
    command_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Kafka client properties file, as used by Kafka's own tools."),
    ] = None


@dataclass(frozen=True, slots=True)
class ConnectionOptions(ClusterOptions):
    """Cluster options, and an option for the timeout of requests."""

    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            callback=validate_duration,
            help="How long to wait for a response from the cluster (default: 10).",
        ),
    ] = None

    def collect_options(self) -> "WorkspaceOptions":
        """Return the values of these options. Options that the command does not offer have their defaults."""
        return replace(ClusterOptions.collect_options(self), timeout_s=self.timeout)


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options for the amount and the style of the output."""

    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only results and errors, no progress and no notices.")
    ] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log activity to stderr.")] = False
    no_color: Annotated[
        bool, typer.Option("--no-color", help="Do not use colors; NO_COLOR has the same effect.")
    ] = False

    def over(self, other: "OutputOptions") -> "OutputOptions":
        """Return options with the flags that ``self`` or ``other`` sets."""
        return OutputOptions(
            self.quiet or other.quiet, self.verbose or other.verbose, self.no_color or other.no_color
        )


@dataclass(frozen=True, slots=True)
class PolicyOverrideOptions:
    """Options that override policies, with a reason."""

    override_policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Apply changes even if this policy denies them. Requires --reason. Repeatable.",
        ),
    ] = None
    reason: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Why a policy is overridden. The reason is recorded in the plan and the history.",
        ),
    ] = None

    def overrides(self) -> dict[str, str]:
        """Return the reason for each overridden policy, by the name of the policy.

        Raises BadParameter if only one of --override-policy and --reason is given.
        """
        policy_names, reason = self.override_policy or [], (self.reason or "").strip()
        if policy_names and not reason:
            raise typer.BadParameter(
                "requires --reason TEXT; the reason is recorded.", param_hint="--override-policy"
            )
        if self.reason is not None and not policy_names:
            raise typer.BadParameter("requires --override-policy NAME.", param_hint="--reason")
        return dict.fromkeys(policy_names, reason)


@dataclass(frozen=True, slots=True)
class OverrideOptions(PolicyOverrideOptions):
    """Options that override policies or skip the preflight check, and the plan options of providers."""

    no_preflight: Annotated[
        bool,
        typer.Option(
            "--no-preflight", help="Do not ask the systems to validate the changes before they are applied."
        ),
    ] = False
    choices: PlanChoices = field(default_factory=dict)

    def chosen(self) -> ChosenOptions:
        """Return the provider options that the command line contains."""
        return self.choices

    def scope(self) -> "PlanScope":
        """Build the scope of a plan.

        Raises BadParameter if only one of --override-policy and --reason is given, and KdeclareError if the
        value of a provider's option is not valid.
        """
        from kdeclare.core.provider.plan_options import choose_options
        from kdeclare.engine.planning.request import PlanScope

        return PlanScope(
            preflight=not self.no_preflight,
            options=choose_options(**self.chosen()),
            overrides=self.overrides(),
        )


@dataclass(frozen=True, slots=True)
class PlanningOptions(OverrideOptions):
    """Options that choose the resources of a plan, and that allow deletions and adoptions."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/NAME",
            help="Plan only this resource, for instance Topic/orders. Repeatable.",
            autocompletion=complete_resources,
        ),
    ] = None
    selector: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Plan only resources with this label. Repeatable."),
    ] = None
    allow_deletes: Annotated[
        bool,
        typer.Option(
            "--allow-deletes", help="Delete owned resources that no manifest declares anymore (orphans)."
        ),
    ] = False
    delete: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/NAME", help="Delete this resource, which no manifest declares anymore. Repeatable."
        ),
    ] = None
    replaced: Annotated[
        list[str] | None,
        typer.Option(
            "--replace",
            metavar="KIND/NAME",
            help="Delete this declared topic with its records, and create it again. Repeatable.",
            autocompletion=complete_resources,
        ),
    ] = None
    max_deletes: Annotated[
        str | None,
        typer.Option(
            metavar="N|P%",
            help="Delete at most this number of resources of each kind, or this percentage of the owned "
            "resources of each kind (default: 10%, but at least 3 and at most 50).",
        ),
    ] = None
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept a project that owns resources but has no manifests."),
    ] = False
    forget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/NAME", help="Give up ownership of an orphan but keep it in the cluster. Repeatable."
        ),
    ] = None
    deletion_choices: DeletionChoices = field(default_factory=dict)
    no_impact: NoImpact = False
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Adopt existing resources that are not in the state and differ from their manifests.",
        ),
    ] = False

    @property
    def is_given(self) -> bool:
        """Whether the command line contains any of these options."""
        return self != PlanningOptions()

    def chosen(self) -> ChosenOptions:
        """Return the provider options that the command line contains."""
        return {**self.choices, **self.deletion_choices}

    def scope(self) -> "PlanScope":
        """Build the scope of a plan. Raises BadParameter for malformed values."""
        return replace(
            OverrideOptions.scope(self),
            targets=parse_resources("--target", self.target or ()),
            selector=parse_pairs("--selector", self.selector),
            allow_deletes=self.allow_deletes,
            forget=parse_resources("--forget", self.forget or ()),
            deletes=parse_resources("--delete", self.delete or ()),
            replacements=parse_resources("--replace", self.replaced or ()),
            max_deletes=parse_deletion_limit(self.max_deletes),
            allow_empty=self.allow_empty,
            adopt=self.adopt,
            impact=not self.no_impact,
        )
