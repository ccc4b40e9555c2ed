"""The command ``kdeclare acl``: list, add, remove and explain ACLs, with the options of kafka-acls."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.adhoc import VerifyTimeout, WriteManifest, run_and_show
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.commands.acl.acl_options import (
    AclGrantOptions,
    AclGuardOptions,
    AclPatternOptions,
    AclResourceOptions,
    check_access_request,
    check_bindings,
    check_principals,
    parse_operation,
    select_bindings,
)

_LIST_EPILOG = build_epilog(
    "kdeclare acl list",
    "kdeclare acl list --principal User:alice",
    "kdeclare acl list --topic orders --resource-pattern-type match",
    codes=(0, 1, 64, 130),
)
_ADD_EPILOG = build_epilog(
    "kdeclare acl add --allow-principal User:alice --operation Read --topic orders",
    "kdeclare acl add --allow-principal User:alice --producer --topic pay. --resource-pattern-type prefixed",
    "kdeclare acl add --deny-principal User:bob --deny-host 192.0.2.7 --topic '*'",
    codes=(0, 1, 3, 5, 6, 64, 130),
)
_REMOVE_EPILOG = build_epilog(
    "kdeclare acl remove --allow-principal User:alice --operation Read --topic orders",
    "kdeclare acl remove --topic orders          all ACLs of this topic",
    codes=(0, 1, 3, 5, 6, 64, 130),
)
_EXPLAIN_EPILOG = build_epilog(
    "kdeclare acl explain --principal User:alice --operation Write --topic orders",
    "kdeclare acl explain --principal User:alice --operation Read --group jobs --manifests",
    "kdeclare acl explain --principal User:alice --operation Write --topic orders --plan plan.json",
    codes=(0, 1, 3, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Register the commands with the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "list", epilog=_LIST_EPILOG)(list_acls)
    command(group, "add", epilog=_ADD_EPILOG)(add)
    command(group, "remove", epilog=_REMOVE_EPILOG)(remove)
    command(group, "explain", epilog=_EXPLAIN_EPILOG)(explain)
    app.add_typer(group, name="acl", help="List, add, remove and explain ACLs.")


def list_acls(
    *,
    principal: Annotated[
        list[str] | None, typer.Option(metavar="TYPE:NAME", help="Only this principal. Repeatable.")
    ] = None,
    resources: AclResourceOptions,
    pattern: AclPatternOptions,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """List ACLs.

    Without options, lists all ACLs of the cluster.
    """
    from kdeclare.providers.kafka.commands.acl.acl_changes import read_live_bindings
    from kdeclare.providers.kafka.commands.acl.acl_views import build_acl_list, render_bindings

    check_principals("--principal", principal)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    live, _ = read_live_bindings(workspace)
    found = select_bindings(live, resources.list_resources(), pattern.resource_pattern_type, principal or ())
    view = build_acl_list(found)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_bindings(view))
    return ExitCode.OK


def add(
    *,
    resources: AclResourceOptions,
    pattern: AclPatternOptions,
    grants: AclGrantOptions,
    yes: Yes = False,
    write_manifest: WriteManifest = False,
    verify_timeout: VerifyTimeout = 30.0,
    output: Format = "text",
    careful: AclGuardOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Create ACLs.

    Takes the options of Kafka's kafka-acls. Shows the plan and asks for confirmation. To also declare the
    ACLs in the manifest of the principal, pass --write-manifest.
    """
    from kdeclare.app.adhoc.run import AdhocOptions
    from kdeclare.providers.kafka.commands.acl.acl_changes import change_acls

    named = resources.list_resources()
    _require_literal_or_prefixed(pattern)
    if not grants.has_principals:
        raise typer.BadParameter("name a principal.", param_hint="--allow-principal / --deny-principal")
    if not named:
        raise typer.BadParameter("name a resource.", param_hint="--topic / --group / --cluster")
    bindings = grants.build_bindings(named, pattern.resource_pattern_type)
    check_bindings(bindings)
    workspace = reach.workspace()
    options = AdhocOptions(careful.scope(), verify_timeout, write=write_manifest, tell=console.say)
    return run_and_show(
        console,
        "Create these ACLs?",
        lambda how: change_acls(workspace, bindings, lambda _: (), options, how),
        careful.overrides(),
        yes=yes,
    )


def remove(
    *,
    resources: AclResourceOptions,
    pattern: AclPatternOptions,
    grants: AclGrantOptions,
    yes: Yes = False,
    write_manifest: WriteManifest = False,
    verify_timeout: VerifyTimeout = 30.0,
    output: Format = "text",
    careful: AclGuardOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Delete ACLs.

    Takes the options of Kafka's kafka-acls. Without a principal, deletes all ACLs of the resources. Shows the
    plan and asks for confirmation. To also remove the ACLs from the manifests, pass --write-manifest.
    """
    from kdeclare.app.adhoc.run import AdhocOptions
    from kdeclare.providers.kafka.commands.acl.acl_changes import change_acls

    named = resources.list_resources()
    if not named:
        raise typer.BadParameter("name a resource.", param_hint="--topic / --group / --cluster")
    check_principals("--allow-principal", grants.allow_principal)
    check_principals("--deny-principal", grants.deny_principal)
    grants.check_hosts()
    if grants.has_principals:
        _require_literal_or_prefixed(pattern)
        wanted = frozenset(grants.build_bindings(named, pattern.resource_pattern_type))
    workspace = reach.workspace()
    options = AdhocOptions(careful.scope(), verify_timeout, write=write_manifest, tell=console.say)
    return run_and_show(
        console,
        "Delete these ACLs?",
        lambda how: change_acls(
            workspace,
            (),
            lambda live: (
                sorted(live & wanted)
                if grants.has_principals
                else select_bindings(live, named, pattern.resource_pattern_type)
            ),
            options,
            how,
        ),
        careful.overrides(),
        yes=yes,
    )


def explain(
    *,
    principal: Annotated[str, typer.Option(metavar="TYPE:NAME", help="The principal, such as User:alice.")],
    operation: Annotated[str, typer.Option(metavar="NAME", help="The operation, such as Write.")],
    resources: AclResourceOptions,
    host: Annotated[
        str | None, typer.Option(metavar="IP", help="The address of the client (default: all hosts).")
    ] = None,
    manifests: Annotated[
        bool, typer.Option("--manifests", help="Evaluate only what the manifests declare, without a cluster.")
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Evaluate the ACLs that will exist after this plan has been applied."
        ),
    ] = None,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Explain whether a principal is allowed to perform an operation.

    Names the ACL that decides. Exits with 0 if the principal is allowed, and with 3 if not.
    """
    from kdeclare.providers.kafka.acl.authorization import AccessRequest
    from kdeclare.providers.kafka.commands.acl.acl_changes import (
        read_declared_bindings,
        read_live_bindings,
        read_planned_bindings,
    )
    from kdeclare.providers.kafka.commands.acl.acl_views import explain_access, render_access

    named = resources.list_resources()
    if len(named) != 1:
        raise typer.BadParameter("name exactly one resource.", param_hint="--topic / --group / --cluster")
    if manifests and plan is not None:
        raise typer.BadParameter("use only one of --manifests and --plan.", param_hint="--plan")
    asked_operation = parse_operation(operation)
    check_access_request(principal, host, named[0], asked_operation)
    workspace = reach.workspace()
    if manifests:
        bindings, allows_everyone, source = read_declared_bindings(workspace), False, "manifests"
    elif plan is not None:
        (bindings, allows_everyone), source = read_planned_bindings(workspace, plan), "plan"
    else:
        (bindings, allows_everyone), source = read_live_bindings(workspace), "cluster"
    request = AccessRequest(principal, asked_operation, *named[0], host or "")
    view = explain_access(bindings, request, host, source, allow_if_no_acl=allows_everyone)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_access(view))
    return ExitCode.OK if view.is_allowed else ExitCode.DENIED


def _require_literal_or_prefixed(pattern: AclPatternOptions) -> None:
    if pattern.resource_pattern_type not in ("literal", "prefixed"):
        raise typer.BadParameter(
            "an ACL can only have the pattern type literal or prefixed.", param_hint="--resource-pattern-type"
        )
