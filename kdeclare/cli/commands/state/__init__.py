"""``kdeclare state``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.commands.state.contents import list_, move, pull, push, remove, show
from kdeclare.cli.commands.state.runs import abandon, migrate, prune
from kdeclare.cli.commands.state.transfer import transfer
from kdeclare.cli.epilogs import build_epilog

_READ_EPILOG = build_epilog(codes=(0, 1, 64))
_WRITE_EPILOG = build_epilog(codes=(0, 1, 6, 64))
_PULL_EPILOG = build_epilog("kdeclare state pull --out state.json", codes=(0, 1, 64))
_MOVE_EPILOG = build_epilog("kdeclare state mv Acl/checkout Acl/payments", codes=(0, 1, 6, 64))
_TRANSFER_EPILOG = build_epilog(
    "kdeclare state transfer Topic/orders --to-project ../billing/kdeclare.yaml", codes=(0, 1, 6, 64)
)
_MIGRATE_EPILOG = build_epilog(
    "kdeclare state migrate --to s3://company-kafka/kdeclare",
    "kdeclare state migrate --from s3://company-kafka/kdeclare --to state",
    codes=(0, 1, 6, 64),
)
_PRUNE_EPILOG = build_epilog(
    "kdeclare state prune --keep 100                      keep the last 100 runs",
    "kdeclare state prune --keep 20 --older-than 90d      remove older runs, but keep at least 20",
    codes=(0, 1, 6, 64),
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "list", epilog=_READ_EPILOG)(list_)
    command(group, "show", epilog=_READ_EPILOG)(show)
    command(group, "mv", epilog=_MOVE_EPILOG)(move)
    command(group, "transfer", epilog=_TRANSFER_EPILOG)(transfer)
    command(group, "rm", epilog=_WRITE_EPILOG)(remove)
    command(group, "pull", epilog=_PULL_EPILOG)(pull)
    command(group, "push", epilog=_WRITE_EPILOG)(push)
    command(group, "migrate", epilog=_MIGRATE_EPILOG)(migrate)
    command(group, "abandon", epilog=_WRITE_EPILOG)(abandon)
    command(group, "prune", epilog=_PRUNE_EPILOG)(prune)
    app.add_typer(group, name="state", help="Inspect, move and repair the state.")
