"""The command ``kdeclare config``: configs, quotas and SCRAM credentials, as with Kafka's ConfigCommand."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.adhoc import run_and_show
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.commands.clients.client_options import ClientOptions
from kdeclare.providers.kafka.commands.options import (
    AfterChangeOptions,
    ConfigChangeOptions,
    EntityOptions,
    GuardOptions,
)

if TYPE_CHECKING:
    from kdeclare.app.apply import ApplyOptions
    from kdeclare.providers.kafka.commands.clients.client_query import ClientEntityQuery
    from kdeclare.report.adhoc import AdhocResult

_ALTER_EPILOG = build_epilog(
    "kdeclare config alter --topic orders --add-config retention.ms=604800000,min.insync.replicas=2",
    "kdeclare config alter --topic orders --append-config cleanup.policy=compact",
    "kdeclare config alter --broker-defaults --delete-config log.cleaner.threads",
    "kdeclare config alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2",
    "kdeclare config alter --group checkout --add-config consumer.session.timeout.ms=60000",
    "kdeclare config alter --user alice --add-config producer_byte_rate=10MiB",
    "kdeclare config alter --user alice --add-config 'SCRAM-SHA-512=[password=${env.ALICE_PASSWORD}]'",
    codes=(0, 1, 3, 5, 6, 64, 130),
)

_DESCRIBE_EPILOG = build_epilog(
    "kdeclare config describe --topic orders",
    "kdeclare config describe --broker 1 --all      including inherited values",
    "kdeclare config describe --entity-type brokers --entity-default",
    "kdeclare config describe --user alice          quotas and SCRAM credentials",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Register the commands with the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "alter", epilog=_ALTER_EPILOG)(alter)
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe)
    app.add_typer(group, name="config", help="Alter and describe configs, quotas and SCRAM credentials.")


def alter(
    *,
    entities: EntityOptions,
    clients: ClientOptions,
    changes: ConfigChangeOptions,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that do not exist.")] = False,
    yes: Yes = False,
    output: Format = "text",
    afterwards: AfterChangeOptions,
    careful: GuardOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Change configs, quotas or SCRAM credentials.

    Topics, brokers, groups and client metrics have configs. Users, client ids and IP addresses have quotas,
    and users have SCRAM credentials. All changes to a resource are applied atomically, except for several
    SCRAM credentials of a user. Other configs of the resource stay unchanged (KIP-339). Pass sensitive values
    by reference: '${env.NAME}', '${file.PATH}'. Shows the plan and asks for confirmation.
    """
    from kdeclare.providers.kafka.commands.adhoc_changes import alter_resource_configs, alter_topic_configs
    from kdeclare.providers.kafka.ids import ConfigScope
    from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT, KINDS_BY_SCOPE

    configs = changes.configs()
    if not configs:
        raise typer.BadParameter(
            "specify a change: --add-config, --delete-config, --append-config or --subtract-config.",
            param_hint="alter",
        )
    client_query = entities.build_client_query(clients)
    if client_query is not None:
        return _alter_clients(client_query, changes, afterwards, careful, reach, console, yes=yes)
    resource_query = entities.build_query()
    if not (resource_query.names or resource_query.default):
        raise typer.BadParameter(
            "specify a resource: --topic, --broker, --broker-defaults, --group, --client-metrics, --user, "
            "--client or --ip.",
            param_hint="--entity-name",
        )
    workspace, options = reach.workspace(), afterwards.options(careful.scope(), console)
    if resource_query.scope is ConfigScope.TOPIC:
        return run_and_show(
            console,
            "Change these configs?",
            lambda how: alter_topic_configs(
                workspace, resource_query.names, configs, options, how, if_exists=if_exists
            ),
            careful.overrides(),
            yes=yes,
        )
    kind = KINDS_BY_SCOPE[resource_query.scope]
    names = [*resource_query.names, *([CLUSTER_DEFAULT] if resource_query.default else [])]
    return run_and_show(
        console,
        "Change these configs?",
        lambda how: alter_resource_configs(workspace, kind, names, configs, options, how),
        careful.overrides(),
        yes=yes,
    )


def describe(
    *,
    entities: EntityOptions,
    clients: ClientOptions,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also show inherited values, for all config keys that kdeclare knows."),
    ] = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show configs, quotas or SCRAM credentials.

    Topics, brokers, groups and client metrics have configs. Users, client ids and IP addresses have quotas,
    and users have SCRAM credentials. Shows the source of each config. If you name no resource, shows all
    topics or all brokers. For any other type, shows the resources that have configs, quotas or SCRAM
    credentials.
    """
    from kdeclare.providers.kafka.commands.describe_configs import describe_configs

    client_query = entities.build_client_query(clients)
    if client_query is not None:
        return _describe_clients(client_query, reach, console, everything=everything)
    resource_query = entities.build_query()
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_configs(workspace, resource_query, everything=everything)
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.topic_text import render_configs

    console.notices(view.diagnostics)
    console.out(render_configs(view, console.width, console.style))
    return ExitCode.OK


def _alter_clients(
    query: "ClientEntityQuery",
    changes: ConfigChangeOptions,
    afterwards: AfterChangeOptions,
    careful: GuardOptions,
    reach: ConnectionOptions,
    console: Console,
    *,
    yes: bool,
) -> ExitCode:
    from kdeclare.providers.kafka.commands.clients.client_changes import (
        ClientSettings,
        change_credentials,
        change_quotas,
        explain_wrong_settings,
    )

    if not query.has_names:
        raise typer.BadParameter("name the users, client ids or IP addresses.", param_hint="--entity-name")
    if changes.append_config or changes.subtract_config:
        raise typer.BadParameter(
            "quotas and SCRAM credentials are not lists.", param_hint="--append-config / --subtract-config"
        )
    values = changes.configs()
    settings = ClientSettings(
        {key: value for key, value in values.items() if isinstance(value, str)},
        frozenset(key for key, value in values.items() if value is None),
    )
    problem = explain_wrong_settings(query, settings)
    if problem is not None:
        raise typer.BadParameter(problem, param_hint="--add-config / --delete-config")
    if afterwards.write_manifest and settings.is_about_credentials:
        raise typer.BadParameter(
            "passwords are never written to manifests. Declare a reference such as ${env.NAME} in the "
            "manifest of the user, and run kdeclare apply.",
            param_hint="--write-manifest",
        )
    workspace, options = reach.workspace(), afterwards.options(careful.scope(), console)
    users = query.find_users() or ()

    def change(how: "ApplyOptions") -> "AdhocResult | None":
        if settings.is_about_credentials:
            return change_credentials(workspace, users, settings, options, how)
        return change_quotas(workspace, query.list_entities(), settings, options, how)

    question = "Change these credentials?" if settings.is_about_credentials else "Change these quotas?"
    return run_and_show(console, question, change, careful.overrides(), yes=yes)


def _describe_clients(
    query: "ClientEntityQuery", reach: ConnectionOptions, console: Console, *, everything: bool
) -> ExitCode:
    from kdeclare.providers.kafka.commands.clients.client_views import describe_clients, render_clients

    if everything:
        raise typer.BadParameter(
            "shows inherited values, which Kafka does not report for quotas and SCRAM credentials.",
            param_hint="--all",
        )
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_clients(workspace, query)
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    console.notices(view.diagnostics)
    console.out(render_clients(view, console.width, console.style))
    return ExitCode.OK
