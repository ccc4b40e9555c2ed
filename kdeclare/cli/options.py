"""Options that several commands share, in groups; `commands.command` puts them into signatures.

Whatever is heavy is imported where it is used: all of this is read for every ``--help``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.completion import complete_environments, complete_resources
from kdeclare.cli.invocation import Invocation
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.workspace import Workspace, WorkspaceOptions
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.engine.planning.request import DeletionLimit, PlanScope

Format = Annotated[
    Literal["text", "json"],
    typer.Option("--format", metavar="text|json", help="What stdout is for: people or scripts."),
]
RunFormat = Annotated[
    Literal["text", "json", "html"],
    typer.Option(
        "--format", metavar="text|json|html", help="What stdout is for: people, scripts or a browser."
    ),
]
PlanFormat = Annotated[
    Literal["text", "json", "markdown", "sarif", "html"],
    typer.Option(
        "--format",
        metavar="text|json|markdown|sarif|html",
        help="What stdout is for: people, scripts, a comment on a pull request, annotations of files, or a "
        "browser.",
    ),
]
FindingsFormat = Annotated[
    Literal["text", "json", "sarif"],
    typer.Option(
        "--format",
        metavar="text|json|sarif",
        help="What stdout is for: people, scripts, or annotations of files.",
    ),
]
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Files or folders with manifests; all of the project's when none is given.",
        show_default=False,
    ),
]
_MAX_SECONDS = 365 * 86400.0
"""A year, in seconds: what sockets and locks can be told to wait for has an end."""


def validate_duration(value: float | None) -> float | None:
    """A number of seconds or days as somebody can mean it. Raises BadParameter for nan, inf and the like."""
    if value is not None and not value <= _MAX_SECONDS:
        raise typer.BadParameter(f"{value:g} is more than can be waited for, or no number.")
    return value


FollowTimeout = Annotated[
    float,
    typer.Option(
        "--follow-timeout",
        metavar="SECONDS",
        min=0,
        callback=validate_duration,
        help="How long Connect workers are given to follow a change.",
    ),
]
VisibilityTimeout = Annotated[
    float,
    typer.Option(
        "--visibility-timeout",
        metavar="SECONDS",
        min=0,
        callback=validate_duration,
        help="How long to wait for systems to show what exists.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Graph = Annotated[bool, typer.Option("--graph", help="Show the order of execution, and why.")]


@dataclass(frozen=True, slots=True)
class ProviderOptionsMarker:
    """Marks a parameter, or a field of a group, that stands for options of plans of the installed providers.

    It holds what was given, by the names of the options. deletions: those about deletions; else all others.
    provider: of this one only.
    """

    deletions: bool = False
    provider: str | None = None


ChosenOptions = Mapping[str, object]
PlanChoices = Annotated[ChosenOptions, ProviderOptionsMarker()]
DeletionChoices = Annotated[ChosenOptions, ProviderOptionsMarker(deletions=True)]


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """Which project, in which environment. line: no option, but the line that it all stands on."""

    project: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Project file (default: kdeclare.yaml, if it is here)."),
    ] = None
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Environment of the project.", autocompletion=complete_environments
        ),
    ] = None
    line: Invocation = field(default_factory=Invocation, kw_only=True)

    def given(self) -> "WorkspaceOptions":
        """What these options say."""
        from kdeclare.app.workspace import WorkspaceOptions

        return WorkspaceOptions(self.project, self.env)

    def options(self) -> "WorkspaceOptions":
        """As the use-cases want it: what is not given here may have been given to the shell."""
        return self.line.options(self.given())


@dataclass(frozen=True, slots=True)
class StateOptions(ProjectOptions):
    """The same, and with which state."""

    state: Annotated[
        str | None,
        typer.Option(metavar="DIR|URI", help="Where the state is kept (default: the project's)."),
    ] = None

    def given(self) -> "WorkspaceOptions":
        """What these options say."""
        from kdeclare.app.workspace import WorkspaceOptions

        return WorkspaceOptions(self.project, self.env, state=self.state)

    def workspace(self) -> "Workspace":
        """The project in its environment; nothing is connected to. Raises KdeclareError."""
        return self.line.workspace(self.options())


@dataclass(frozen=True, slots=True)
class ClusterOptions(StateOptions):
    """The same, and where the cluster is."""

    bootstrap_server: Annotated[
        str | None, typer.Option(metavar="HOST:PORT[,…]", help="The cluster (default: the environment's).")
    ] = None
    command_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Kafka client properties, as Kafka's own tools take them."),
    ] = None

    def given(self) -> "WorkspaceOptions":
        """What these options say."""
        from kdeclare.app.workspace import WorkspaceOptions

        return WorkspaceOptions(
            self.project, self.env, self.bootstrap_server, self.command_config, self.state
        )


@dataclass(frozen=True, slots=True)
class ConnectionOptions(ClusterOptions):
    """The same, and how long to wait for it."""

    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            callback=validate_duration,
            help="How long to wait for the cluster (default: 10).",
        ),
    ] = None

    def given(self) -> "WorkspaceOptions":
        """What these options say."""
        from kdeclare.app.workspace import WorkspaceOptions

        return WorkspaceOptions(
            self.project, self.env, self.bootstrap_server, self.command_config, self.state, self.timeout
        )


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How much is said, and how."""

    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no notices, only results and errors.")
    ] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log to stderr what goes on.")] = False
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours; as with NO_COLOR set.")] = False

    def over(self, other: "OutputOptions") -> "OutputOptions":
        """What either of them says."""
        return OutputOptions(
            self.quiet or other.quiet, self.verbose or other.verbose, self.no_color or other.no_color
        )


@dataclass(frozen=True, slots=True)
class PolicyOverrideOptions:
    """Which policies are overridden, and why."""

    override_policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Do also what this policy denies; needs --reason. Repeatable."),
    ] = None
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why a policy is overridden; stands in the plan and the history."),
    ] = None

    def overrides(self) -> dict[str, str]:
        """The reason by policy. Raises BadParameter for one without the other."""
        policy_names, reason = self.override_policy or [], (self.reason or "").strip()
        if policy_names and not reason:
            raise typer.BadParameter("needs --reason TEXT; it is recorded.", param_hint="--override-policy")
        if self.reason is not None and not policy_names:
            raise typer.BadParameter("goes with --override-policy NAME.", param_hint="--reason")
        return dict.fromkeys(policy_names, reason)


@dataclass(frozen=True, slots=True)
class OverrideOptions(PolicyOverrideOptions):
    """What is checked beforehand, and what providers offer for plans."""

    no_preflight: Annotated[
        bool, typer.Option("--no-preflight", help="Do not have the systems check the changes beforehand.")
    ] = False
    choices: PlanChoices = field(default_factory=dict)

    def chosen(self) -> ChosenOptions:
        """All options of providers that were given."""
        return self.choices

    def scope(self) -> "PlanScope":
        """As the use-cases want it. Raises BadParameter for what is malformed, and KdeclareError."""
        from kdeclare.core.provider.plan_options import choose_options
        from kdeclare.engine.planning.request import PlanScope

        return PlanScope(
            preflight=not self.no_preflight,
            options=choose_options(**self.chosen()),
            overrides=self.overrides(),
        )


@dataclass(frozen=True, slots=True)
class PlanningOptions(OverrideOptions):
    """What a plan is about and may do."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/NAME",
            help="Only this resource, for instance Topic/orders. Repeatable.",
            autocompletion=complete_resources,
        ),
    ] = None
    selector: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only resources with this label. Repeatable."),
    ] = None
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Delete what is owned and declared no longer.")
    ] = False
    delete: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/NAME", help="Delete this resource, which no manifest declares anymore. Repeatable."
        ),
    ] = None
    max_deletes: Annotated[
        str | None,
        typer.Option(
            metavar="N|P%",
            help="Delete at most this many resources of a kind, or this share of those that are owned "
            "(default: 10%, at least 3, at most 50).",
        ),
    ] = None
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept a project that owns resources and has no manifests."),
    ] = False
    forget: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND/NAME", help="Let go of an orphan and keep it in the cluster. Repeatable."),
    ] = None
    deletion_choices: DeletionChoices = field(default_factory=dict)
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Take over resources that exist, are not in the state, and differ from their manifests.",
        ),
    ] = False

    @property
    def is_given(self) -> bool:
        """Whether any of these options was used."""
        return self != PlanningOptions()

    def chosen(self) -> ChosenOptions:
        """All options of providers that were given."""
        return {**self.choices, **self.deletion_choices}

    def scope(self) -> "PlanScope":
        """As the use-cases want it. Raises BadParameter for what is malformed."""
        return replace(
            OverrideOptions.scope(self),
            targets=_parse_resources("--target", self.target or ()),
            selector=parse_pairs("--selector", self.selector),
            allow_deletes=self.allow_deletes,
            forget=_parse_resources("--forget", self.forget or ()),
            deletes=_parse_resources("--delete", self.delete or ()),
            max_deletes=_parse_deletion_limit(self.max_deletes),
            allow_empty=self.allow_empty,
            adopt=self.adopt,
        )


def _parse_deletion_limit(text: str | None) -> "DeletionLimit | None":
    from kdeclare.engine.planning.request import DeletionLimit

    try:
        return None if text is None else DeletionLimit.parse(text)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--max-deletes") from None


def _parse_resources(option: str, texts: Iterable[str]) -> "frozenset[ResourceId]":
    return frozenset(parse_resource(option, text) for text in texts)


def parse_resource(option: str, text: str) -> "ResourceId":
    """What KIND/NAME says. Raises BadParameter for anything else, and for a kind that there is not."""
    from kdeclare.core.provider.registry import KINDS
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.core.suggestions import format_suggestion

    try:
        resource = ResourceId.parse(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is not of the form KIND/NAME, as in Topic/orders.", param_hint=option
        ) from None
    if resource.kind not in KINDS:
        suggestion = format_suggestion(resource.kind, KINDS) or f"The kinds are {', '.join(KINDS)}."
        raise typer.BadParameter(f"'{resource.kind}' is no kind. {suggestion}", param_hint=option)
    return resource


def parse_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """What KEY=VALUE says, as often as it was given. Raises BadParameter for anything else."""
    values_by_key = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise typer.BadParameter(
                f"'{text}' is not of the form KEY=VALUE, as in team=checkout.", param_hint=option
            )
        values_by_key[key] = value
    return values_by_key


def parse_settings(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Return what KEY=VALUE says, a key at most once; the value may hold commas.

    Raises BadParameter, which does not repeat what may be a secret.
    """
    settings: dict[str, str] = {}
    for number, pair in enumerate(texts or (), 1):
        key, separator, value = pair.partition("=")
        if not (key.strip() and separator):  # not repeated: it can be the rest of a password that has a comma
            raise typer.BadParameter(
                f"part {number} is not of the form KEY=VALUE, as in retention.ms=604800000; "
                "brackets go round values with commas.",
                param_hint=option,
            )
        if key.strip() in settings:
            raise typer.BadParameter(f"'{key.strip()}' is given twice.", param_hint=option)
        settings[key.strip()] = value.strip()
    return settings
