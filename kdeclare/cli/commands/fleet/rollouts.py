"""``kdeclare fleet plan``, ``apply``, ``pause``, ``resume`` and ``abort``."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.confirmation import build_declined_error, prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.fleet_options import EngineName, FleetClusterOptions, FleetFile, SparkOptions
from kdeclare.cli.options.option_groups import PlanningOptions
from kdeclare.cli.options.option_values import parse_pairs
from kdeclare.cli.options.single_options import (
    FollowTimeout,
    Format,
    RequireSignature,
    Sign,
    Yes,
    validate_duration,
)
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.fleet.rollout.rollout_control import RolloutRequest
    from kdeclare.fleet.overview import AppliedCluster, FleetPlan
    from kdeclare.manifests.fleet import Rollout


PLAN_EPILOG = build_epilog(
    "kdeclare fleet plan fleet.yaml --out plans && kdeclare fleet apply fleet.yaml --out plans",
    codes=(0, 1, 2, 3, 64, 130),
)
APPLY_EPILOG = build_epilog(
    "kdeclare fleet apply fleet.yaml --out plans --canary tier=canary --batch-size 5 --max-failures 1",
    codes=(0, 1, 3, 4, 5, 6, 64, 130),
)
PAUSE_EPILOG = build_epilog(
    "kdeclare fleet pause --out plans --reason 'Consumers of eu-1 lag.'", codes=(0, 1, 64, 130)
)
RESUME_EPILOG = build_epilog(
    "kdeclare fleet resume --out plans && kdeclare fleet apply fleet.yaml --out plans",
    codes=(0, 1, 3, 64, 130),
)
ABORT_EPILOG = build_epilog("kdeclare fleet abort --out plans --reason OPS-1234", codes=(0, 1, 64, 130))


def plan(
    fleet: FleetFile,
    *,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")
    ] = False,
    sign: Sign = None,
    engine: EngineName = "auto",
    output: Format = "text",
    planning: PlanningOptions,
    clusters: FleetClusterOptions,
    console: Console,
) -> ExitCode:
    """Plan every cluster of a fleet and save the plans.

    Plans each cluster in the same way as kdeclare plan, and saves the plans in DIR.
    """
    import os

    from kdeclare.app.fleet.rollout.saved_plans import plan_fleet
    from kdeclare.app.signatures import load_signer
    from kdeclare.report.fleet.fleet_runs import compute_plans_exit

    signer = None if sign is None else load_signer(sign, os.environ)
    scope = planning.scope()
    recorded_command = redact_spark_settings(console.command)
    result = plan_fleet(
        clusters.options(fleet, engine), scope, os.environ, console.progress, recorded_command, signer
    )
    if console.is_json:
        console.write_document(result)
    else:
        from kdeclare.report.fleet.fleet_runs import render_fleet_plan_text

        console.out(render_fleet_plan_text(result, clusters.out, console.style))
    return compute_plans_exit(result, detailed_exitcode=detailed_exitcode)


def apply(
    fleet: FleetFile,
    *,
    canary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Label of the clusters in the first wave (default: from the fleet file). Repeatable.",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of clusters in each wave after the canaries (default: from the fleet file).",
        ),
    ] = None,
    max_failures: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Stop applying plans when more than N clusters have failed (default: from the fleet file). "
            "A canary whose plan is not applied completely always stops the rollout.",
        ),
    ] = None,
    yes: Yes = False,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast", help="After a failure in a cluster, start no further operations in that cluster."
        ),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for reassignments to finish.")
    ] = False,
    move_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            callback=validate_duration,
            help="How long to wait for reassignments to finish.",
        ),
    ] = 3600.0,
    follow_timeout: FollowTimeout = 30.0,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Also apply adoptions that were planned with fleet plan --adopt.")
    ] = False,
    max_deletes: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Refuse to start if all plans together delete more than N resources. To limit each plan, "
            "use --max-deletes of fleet plan.",
        ),
    ] = 50,
    skip_health_checks: Annotated[
        bool,
        typer.Option("--skip-health-checks", help="Do not run the health checks in 'rollout.health'."),
    ] = False,
    require_signature: RequireSignature = False,
    output: Format = "text",
    clusters: FleetClusterOptions,
    console: Console,
) -> ExitCode:
    """Apply the saved plans of a fleet in waves.

    Applies the plans that fleet plan saved in DIR: first to the canaries, then to batches of clusters. Shows
    the waves and asks for confirmation first. Repeat the command to continue an unfinished rollout.
    """
    import os

    from kdeclare.app.fleet.rollout.apply import apply_fleet
    from kdeclare.app.fleet.rollout.waves import FleetApplyOptions
    from kdeclare.cli.run_output import announce_stop, build_interrupted_error
    from kdeclare.engine.executor.progress_tracker import RunOptions
    from kdeclare.report.fleet.fleet_runs import compute_apply_exit

    has_started = False

    def confirm(fleet_plan: "FleetPlan", waves: tuple[tuple[str, ...], ...]) -> bool:
        nonlocal has_started
        from kdeclare.report.fleet.fleet_runs import render_waves_text

        must_ask = bool(waves) and not yes
        if must_ask or not console.is_json:
            show = console.say if console.is_json else console.out
            show(render_waves_text(fleet_plan, waves, console.style))
        has_started = not must_ask or prompt_for_yes(console, "Apply these plans?")
        return has_started

    def report_cluster(cluster: "AppliedCluster", done: int, total: int) -> None:
        console.note(f"{done}/{total} {cluster.name}: {cluster.status}")
        console.progress("Applying", done, total)

    run_options = RunOptions(
        fail_fast, not no_wait, move_timeout_s=move_timeout, follow_timeout_s=follow_timeout
    )
    wave_options = _WaveOptions(parse_pairs("--canary", canary), batch_size, max_failures)
    apply_options = FleetApplyOptions(
        redact_spark_settings(console.command),
        confirm,
        report_cluster,
        run_options,
        wave_options.over,
        announce_stop,
        adopt,
        require_signature,
        max_deletes,
        skip_health_checks,
        console.progress,
    )
    try:
        result = apply_fleet(clusters.options(fleet), apply_options, os.environ)
    except KeyboardInterrupt:
        raise build_interrupted_error(has_started=has_started) from None
    if result is None:
        if console.is_json:
            return console.fail([build_declined_error()], ExitCode.ERROR)
        console.say("Nothing was changed.")
        return ExitCode.ERROR
    if console.is_json:
        console.write_document(result)
    else:
        from kdeclare.report.fleet.fleet_runs import NextCommands, render_fleet_apply_text

        plan_line = ["kdeclare", "fleet", "plan", str(fleet), "--out", clusters.out, *(["--adopt"] * adopt)]
        commands = NextCommands(apply_options.command, shlex.join(plan_line))
        console.out(render_fleet_apply_text(result, commands, console.style))
    return compute_apply_exit(result)


_Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="The reason, which is shown to everyone who tries to continue the rollout.",
    ),
]


def pause(*, reason: _Reason = None, spark: SparkOptions, console: Console) -> ExitCode:
    """Stop a rollout before its next wave.

    A running fleet apply of the plans in DIR finishes its wave, and then ends. No other fleet apply of these
    plans can begin until you run fleet resume.
    """
    from kdeclare.app.fleet.rollout.rollout_control import RolloutRequest

    return _request_stop(RolloutRequest.PAUSE, reason, spark, console)


def abort(*, reason: _Reason = None, spark: SparkOptions, console: Console) -> ExitCode:
    """Stop a rollout before its next wave, for good.

    A running fleet apply of the plans in DIR finishes its wave, and then ends. The plans are never applied
    again. Applied changes are kept. To undo them, run kdeclare rollback for each cluster.
    """
    from kdeclare.app.fleet.rollout.rollout_control import RolloutRequest

    return _request_stop(RolloutRequest.ABORT, reason, spark, console)


def _request_stop(
    request: "RolloutRequest", reason: str | None, spark: SparkOptions, console: Console
) -> ExitCode:
    from kdeclare.app.fleet.job import open_results_storage
    from kdeclare.app.fleet.rollout.rollout_control import stop_rollout

    with open_results_storage(spark.results_options("auto")) as storage:
        stop = stop_rollout(storage, request, reason or "")
    console.out(f"{stop.format()}\n")
    return ExitCode.OK


def resume(*, spark: SparkOptions, console: Console) -> ExitCode:
    """Let a paused rollout continue.

    Applies nothing. Run fleet apply to continue the rollout.
    """
    from kdeclare.app.fleet.job import open_results_storage
    from kdeclare.app.fleet.rollout.rollout_control import resume_rollout

    with open_results_storage(spark.results_options("auto")) as storage:
        was_paused = resume_rollout(storage)
    console.out(
        "The rollout can continue. Run kdeclare fleet apply.\n"
        if was_paused
        else "The rollout is not paused.\n"
    )
    return ExitCode.OK


def redact_spark_settings(command: str) -> str:
    """Redact all Spark settings in a command line, because they can contain keys of an object store."""
    words = shlex.split(command)
    for number, word in enumerate(words):
        if word.startswith("--conf="):
            words[number] = f"--conf={word.removeprefix('--conf=').partition('=')[0]}=…"
        elif number and words[number - 1] == "--conf":
            words[number] = f"{word.partition('=')[0]}=…"
    return shlex.join(words)


@dataclass(frozen=True, slots=True)
class _WaveOptions:
    """The rollout options given on the command line. Other rollout options come from the fleet file."""

    canary: dict[str, str]
    batch_size: int | None
    max_failures: int | None

    def over(self, stated: "Rollout") -> "Rollout":
        """Override the rollout settings of the fleet file (``stated``) with the given options."""
        from kdeclare.manifests.fleet import Rollout

        return Rollout(
            self.canary or stated.canary,
            self.batch_size or stated.batch_size,
            stated.max_failures if self.max_failures is None else self.max_failures,
            stated.health,
        )
