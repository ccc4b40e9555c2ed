"""Declared overrides of Connect workers: diff, plan, validate and patch, waiting, drift, rollback."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import NOT_PROPAGATED, Status
from kdeclare.core.resources.changes import Action, FieldOp, Reason
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.planfile import render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.connect.client.port import Changes, Validation
from kdeclare.providers.connect.testing import MemoryConnectCluster, MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.connect.worker_config.spec import ConnectWorkerConfigSpec, parse_worker_config
from kdeclare.providers.connect.worker_state import Certificate
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.run.run_text import render_run_text
from tests.engine.world import World, desired
from tests.jsontypes import dump_args

PLACEHOLDER = "${file:/etc/connect/secrets.properties:keystore}"


def make_certificate(name: str, **more: Any) -> Certificate:
    later = datetime.now(UTC) + timedelta(days=400)
    fields = {"not_before": datetime(2026, 1, 1, tzinfo=UTC), "not_after": later} | more
    return Certificate(name.encode().hex().ljust(64, "0"), f"CN={name}", "CN=ca", **fields)


OLD, NEW = make_certificate("old"), make_certificate("new")


@pytest.fixture
def workers() -> MemoryWorkers:
    found = MemoryWorkers()
    found.files = {"/old": Keystore(OLD, "pw"), "/new": Keystore(NEW, "pw")}
    found.placeholders = {PLACEHOLDER: "pw"}
    return found


@pytest.fixture
def world(workers: MemoryWorkers) -> World:
    world = World(MemoryCluster())
    world.workers[workers.urls] = workers
    return world


def declare_workers(workers: MemoryWorkers, location: str | None = "/old", **spec: Any) -> DesiredResource:
    config: dict[str, Any] = {LOCATION: location, PASSWORD: PLACEHOLDER} if location else {}
    return desired("ConnectWorkerConfig", "eu", workers=list(workers.urls), **({"config": config} | spec))


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def list_served_subjects(workers: MemoryWorkers) -> set[str]:
    return {worker.certificate.subject for worker in workers.workers.values()}


# The course of one change.


def test_rotation_is_validated_by_all_workers_and_sent_once(world: World, workers: MemoryWorkers) -> None:
    plan = world.plan(declare_workers(workers))
    (change,) = plan.changes
    assert (change.action, change.reason) == (Action.UPDATE, Reason.DECLARED)
    assert [(f.path, f.op, f.before, f.after) for f in change.fields] == [
        (f"configs.{LOCATION}", FieldOp.SET, None, "/old"),
        (f"configs.{PASSWORD}", FieldOp.SET, None, PLACEHOLDER),
    ]
    assert not workers.log  # planning changes nothing
    assert {url for call, url in workers.calls if call == "validate"} == set(workers.urls)
    run = world.run(plan)
    assert run.complete
    assert workers.log == [{LOCATION: "/old", PASSWORD: PLACEHOLDER}]
    assert list_served_subjects(workers) == {"CN=old"}
    assert not world.plan(declare_workers(workers)).has_changes
    assert world.apply(declare_workers(workers, "/new")).complete
    assert [call for call, _ in workers.calls].count("patch") == 2
    assert list_served_subjects(workers) == {"CN=new"}


def test_update_sends_only_differing_keys(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    (op,) = world.plan(declare_workers(workers, "/new")).operations
    assert [item["key"] for item in dump_args(op)["ops"]] == [LOCATION]
    assert op.expect == {LOCATION: "/old"}


def test_undeclared_keys_are_removed_and_unmanaged_keys_stay(world: World, workers: MemoryWorkers) -> None:
    kind = "listeners.https.ssl.keystore.type"
    workers.patch(workers.urls[0], {kind: "PKCS12"})
    world.apply(declare_workers(workers))
    plan = world.plan(declare_workers(workers, None))
    assert plan.unmanaged_configs == {"ConnectWorkerConfig/eu": (kind,)}
    assert [f.op for f in plan.changes[0].fields] == [FieldOp.DELETE, FieldOp.DELETE]
    assert world.run(plan).complete
    assert workers.current() == {kind: "PKCS12"}
    assert list_served_subjects(workers) == {"CN=static"}


def test_null_removes_override(world: World, workers: MemoryWorkers) -> None:
    kind = "listeners.https.ssl.keystore.type"
    workers.patch(workers.urls[0], {kind: "PKCS12"})
    nothing = declare_workers(workers, config={kind: None})
    assert world.apply(nothing).complete
    assert workers.current() == {}
    assert not world.plan(nothing).has_changes


def test_orphan_is_deleted_only_when_deletes_are_allowed(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    plan = world.plan()
    assert list_codes(plan) == ["orphaned"]
    assert not plan.has_changes
    assert world.apply(scope=PlanScope(allow_deletes=True)).complete
    assert workers.current() == {}
    assert not world.owned()


def test_orphan_with_unreachable_workers_stays_owned(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    for worker in workers.workers.values():
        worker.down = True
    plan = world.plan(scope=PlanScope(allow_deletes=True))
    assert "endpoint-unreachable" in list_codes(plan)
    assert not plan.operations
    assert "ConnectWorkerConfig/eu" in world.owned()


def test_two_resources_with_different_values_are_contradiction(world: World, workers: MemoryWorkers) -> None:
    other = desired("ConnectWorkerConfig", "us", workers=list(workers.urls), config={LOCATION: "/new"})
    assert "contradiction" in list_codes(world.plan(declare_workers(workers), other))


# Refusals.


def test_key_rejected_by_one_worker_is_not_written(world: World, workers: MemoryWorkers) -> None:
    first, second, third = workers.urls
    world.apply(declare_workers(workers))
    workers.workers[second].missing_paths = {"/new"}
    workers.workers[third].down = True
    plan = world.plan(declare_workers(workers, "/new"))
    (refused,) = [d for d in plan.diagnostics if d.is_error]
    assert refused.code == "refused-by-cluster"
    assert f"{second}: {LOCATION}: There is no file /new" in refused.detail
    assert f"{third}: cannot be checked: it is unreachable" in refused.detail
    assert first not in refused.detail
    assert plan_outcome(plan).exit_code is ExitCode.ERROR
    assert workers.current()[LOCATION] == "/old"


def test_apply_without_preflight_validates_on_every_worker(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    workers.workers[workers.urls[1]].missing_paths = {"/new"}
    run = world.apply(declare_workers(workers, "/new"), scope=PlanScope(preflight=False))
    (result,) = run.results.values()
    assert (result.status, result.error) == (Status.FAILED, "INVALID_WORKER_CONFIG")
    assert workers.urls[1] in result.message
    assert workers.current()[LOCATION] == "/old"
    assert world.owned()["ConnectWorkerConfig/eu"]["configs"][LOCATION] == {"value": "/old"}


def test_key_outside_whitelist_is_rejected(world: World, workers: MemoryWorkers) -> None:
    plan = world.plan(declare_workers(workers, config={"offset.flush.interval.ms": "5"}))
    assert "offset.flush.interval.ms: It cannot be changed dynamically" in plan.diagnostics[0].detail


def test_unreachable_workers_are_an_error(world: World, workers: MemoryWorkers) -> None:
    for worker in workers.workers.values():
        worker.down = True
    plan = world.plan(declare_workers(workers))
    (problem,) = plan.diagnostics
    assert (problem.code, problem.severity) == ("endpoint-unreachable", Severity.ERROR)
    assert all(url in problem.detail for url in workers.urls)
    assert not plan.operations


def test_worker_without_plugin_is_named(world: World, workers: MemoryWorkers) -> None:
    workers.workers[workers.urls[2]].bare = True
    plan = world.plan(declare_workers(workers))
    silent = [d for d in plan.diagnostics if d.code == "worker-silent"]
    assert [d.subject for d in silent] == [workers.urls[2]]
    assert any(d.is_error for d in plan.diagnostics)  # the worker cannot validate the change


# Waiting.


def test_apply_waits_for_lagging_worker(world: World, workers: MemoryWorkers) -> None:
    workers.workers[workers.urls[2]].lag = 3
    before = world.clock.monotonic()
    assert world.apply(declare_workers(workers)).complete
    assert list_served_subjects(workers) == {"CN=old"}
    assert 0 < world.clock.monotonic() - before < 5


def test_apply_waits_while_all_workers_lag(world: World, workers: MemoryWorkers) -> None:
    workers.eager = False
    for lag, worker in enumerate(workers.workers.values(), start=1):
        worker.lag = lag
    assert world.apply(declare_workers(workers)).complete
    assert list_served_subjects(workers) == {"CN=old"}


def test_lagging_worker_gets_no_second_update(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    workers.workers[workers.urls[2]].lag = None
    workers.patch(workers.urls[0], {"listeners.https.ssl.keystore.type": "PKCS12"})
    plan = world.plan(declare_workers(workers))
    assert "worker-behind" in list_codes(plan)
    assert not plan.has_changes


def test_worker_that_never_applies_update_is_named(world: World, workers: MemoryWorkers) -> None:
    late = workers.urls[1]
    workers.workers[late].lag = None
    run = world.apply(declare_workers(workers))
    (result,) = run.results.values()
    assert (result.status, result.error) == (Status.FAILED, NOT_PROPAGATED)
    assert f"{late}: it has not applied the last update yet" in result.message
    assert workers.urls[0] not in result.message
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert "Partially applied" in render_run_text(run)
    assert "rollback" in render_run_text(run)
    assert world.owned()["ConnectWorkerConfig/eu"]["configs"][LOCATION] == {"value": "/old"}


@pytest.mark.parametrize("limit", [0.0, 5.0, 90.0])
def test_follow_timeout_limits_wait_for_workers(world: World, workers: MemoryWorkers, limit: float) -> None:
    workers.workers[workers.urls[1]].lag = None
    before = world.clock.monotonic()
    run = world.apply(declare_workers(workers), follow_timeout_s=limit)
    assert [result.error for result in run.results.values()] == [NOT_PROPAGATED]
    assert limit <= world.clock.monotonic() - before <= limit + 1


def test_interrupted_run_does_not_wait_for_workers(
    world: World, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = workers.urls[1]
    workers.workers[late].lag = None
    plan = world.plan(declare_workers(workers))
    slept: list[float] = []
    sleep = world.clock.sleep

    def sleep_and_stop(seconds: float) -> None:
        slept.append(seconds)
        sleep(seconds)
        world.stop.set()

    monkeypatch.setattr(world.clock, "sleep", sleep_and_stop)
    run = world.run(plan, follow_timeout_s=3600.0)
    assert len(slept) == 1
    (result,) = run.results.values()
    assert (result.status, result.error) == (Status.FAILED, NOT_PROPAGATED)
    assert f"{late}: it has not applied the last update yet" in result.message
    assert run_outcome(run).exit_code is ExitCode.INTERRUPTED


def apply_refused_by_one(world: World, workers: MemoryWorkers) -> str:
    """Remove the file from a worker between validation and update; return the worker's URL."""
    late = workers.urls[1]
    world.apply(declare_workers(workers))
    worker = workers.workers[late]
    worker.lag = 1
    plan = world.plan(declare_workers(workers, "/new"))
    validate = workers.validate

    def validate_and_remove_file(url: str, changes: Changes) -> Validation:
        found = validate(url, changes)
        if url == late:
            worker.missing_paths = {"/new"}
        return found

    workers.validate = validate_and_remove_file  # type: ignore[method-assign]
    run = world.run(plan)
    workers.validate = validate  # type: ignore[method-assign]
    (result,) = run.results.values()
    assert f"{late}: it refused the last update: There is no file /new" in result.message
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    return late


def test_update_refused_by_one_worker_can_be_rolled_back(world: World, workers: MemoryWorkers) -> None:
    apply_refused_by_one(world, workers)
    assert list_served_subjects(workers) == {"CN=old", "CN=new"}
    assert world.rollback().complete
    assert workers.current() == {LOCATION: "/old", PASSWORD: PLACEHOLDER}
    assert list_served_subjects(workers) == {"CN=old"}
    assert world.owned()["ConnectWorkerConfig/eu"]["configs"][LOCATION] == {"value": "/old"}


def test_refused_update_is_retried_after_file_exists(world: World, workers: MemoryWorkers) -> None:
    url = apply_refused_by_one(world, workers)
    wanted = declare_workers(workers, "/new")
    stuck = world.plan(wanted)
    assert {"worker-behind", "refused-by-cluster"} <= set(list_codes(stuck))
    workers.workers[url].missing_paths = set()
    plan = world.plan(wanted)
    assert [(f.path, f.after) for f in plan.changes[0].fields] == [(f"workers.{url}", "in step")]
    assert plan.changes[0].reason is Reason.DRIFTED
    assert world.run(plan).complete
    assert list_served_subjects(workers) == {"CN=new"}
    assert not world.plan(wanted).has_changes


# Requests without a response.


@pytest.mark.parametrize("lost", ["lose_answers", "lose_requests"])
def test_patch_without_response_is_settled_by_observation(
    world: World, workers: MemoryWorkers, lost: str
) -> None:
    setattr(workers, lost, 1)
    assert world.apply(declare_workers(workers)).complete
    assert len(workers.log) == 1
    assert list_served_subjects(workers) == {"CN=old"}


def test_patch_uses_first_reachable_worker(workers: MemoryWorkers) -> None:
    from kdeclare.providers.connect.client.port import patch_through_any

    workers.workers[workers.urls[0]].down = True
    assert patch_through_any(workers, {LOCATION: "/old", PASSWORD: "pw"})[LOCATION] == "/old"
    assert [url for call, url in workers.calls if call == "patch"] == list(workers.urls[:2])


# Staleness, drift, rollback.


def test_plan_is_stale_after_concurrent_key_change(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    plan = world.plan(declare_workers(workers, "/new"))
    workers.files["/other"] = Keystore(NEW)
    workers.patch(workers.urls[0], {LOCATION: "/other"})
    with pytest.raises(KdeclareError) as stale:
        world.run(plan)
    assert stale.value.exit_code is ExitCode.STALE
    assert workers.current()[LOCATION] == "/other"


def test_concurrent_key_change_is_drift_and_corrected(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    workers.patch(workers.urls[0], {LOCATION: "/new"})
    plan = world.plan(declare_workers(workers))
    assert plan.changes[0].reason is Reason.DRIFTED
    assert world.run(plan).complete
    assert list_served_subjects(workers) == {"CN=old"}


def test_rollback_restores_overrides_and_keeps_other_keys(world: World, workers: MemoryWorkers) -> None:
    kind = "listeners.https.ssl.keystore.type"
    world.apply(declare_workers(workers))
    world.apply(declare_workers(workers, "/new"))
    workers.patch(workers.urls[0], {kind: "PKCS12"})
    assert world.rollback().complete
    assert workers.current() == {LOCATION: "/old", PASSWORD: PLACEHOLDER, kind: "PKCS12"}


def test_rollback_after_concurrent_change_is_conflict(world: World, workers: MemoryWorkers) -> None:
    world.apply(declare_workers(workers))
    workers.patch(workers.urls[0], {LOCATION: "/new"})
    plan = world.plan_rollback()
    assert "conflict" in list_codes(plan)
    assert [item["key"] for op in plan.operations for item in dump_args(op)["ops"]] == [PASSWORD]


@pytest.mark.parametrize(
    ("who", "text"),
    [
        ("one that shows what it does not have", "a certificate other than the one that it reports"),
        ("one with a file of its own", "a different certificate than the other workers"),
    ],
)
def test_worker_with_different_certificate_is_named(
    world: World, workers: MemoryWorkers, who: str, text: str
) -> None:
    odd = workers.workers[workers.urls[1]]
    if "file" in who:
        odd.files["/old"] = Keystore(NEW, "pw")
    world.apply(declare_workers(workers))
    if "file" not in who:
        odd.proxy_certificate = NEW
    plan = world.plan(declare_workers(workers))
    (found,) = [d for d in plan.diagnostics if d.code == "worker-certificate"]
    assert (found.subject, found.severity) == (odd.url, Severity.WARNING)
    assert text in found.detail
    assert not plan.has_changes


def test_workers_with_individual_certificates_do_not_differ(world: World, workers: MemoryWorkers) -> None:
    for name, worker in enumerate(workers.workers.values()):
        worker.files["/old"] = Keystore(make_certificate(f"of its own {name}"), "pw")
    world.apply(declare_workers(workers))
    assert set(list_codes(world.plan(declare_workers(workers)))) == {"certificate"}


# Certificate expiry.


@pytest.mark.parametrize(
    ("days", "before", "code"),
    [
        (60, None, "certificate"),
        (20, None, "certificate-expires"),
        (60, "90d", "certificate-expires"),
        (20, "7d", "certificate"),
        (-1, "0s", "certificate-expired"),
    ],
)
def test_expiring_certificate_is_warned_of(
    world: World, workers: MemoryWorkers, days: int, before: str | None, code: str
) -> None:
    ends = datetime.now(UTC) + timedelta(days=days)
    workers.files["/old"] = Keystore(make_certificate("old", not_after=ends), "pw")
    limit = {"warnBeforeExpiry": before} if before else {}
    wanted = declare_workers(workers, **limit)
    world.apply(wanted)
    (diagnostic,) = world.plan(wanted).diagnostics
    assert diagnostic.code == code
    assert f"{ends:%Y-%m-%d %H:%M} UTC" in diagnostic.detail
    assert all(url in diagnostic.detail for url in workers.urls)


# Secrets.


def dump_everything(world: World, *texts: str) -> str:
    """Return everything that is stored or shown."""
    kept = [str(world.store.read())]
    for run in world.store.runs():
        kept += [world.store.read_plan_text(run), str(list(world.store.entries(run)))]
    return "".join([*kept, *texts])


def declare_secret(
    workers: MemoryWorkers, value: str, reference: str | None, location: str = "/old"
) -> DesiredResource:
    written = Referenced(value, reference) if reference else value
    return declare_workers(workers, config={LOCATION: location, PASSWORD: written})


def test_raw_password_is_never_shown_or_stored(world: World, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(OLD, "s3cret-one")
    workers.files["/new"] = Keystore(NEW, "s3cret-two")
    world.secrets.values = {"${env.PW}": "s3cret-one"}
    plan = world.plan(declare_secret(workers, "s3cret-one", "${env.PW}"))
    run = world.run(plan)
    assert run.complete
    assert workers.current()[PASSWORD] == "s3cret-one"
    world.secrets.values = {"${env.PW}": "s3cret-two"}
    second = world.plan(declare_secret(workers, "s3cret-two", "${env.PW}", "/new"))
    assert [(f.before, f.after) for f in second.changes[0].fields][1] == ("(sensitive)", "(sensitive)")
    again = world.run(second)
    assert again.complete
    texts = [
        plan_text(plan),
        plan_text(second),
        render_plan_file(second)[0],
        render_run_text(run),
        render_run_text(again),
    ]
    assert "s3cret" not in dump_everything(world, *texts)
    assert not world.plan(declare_secret(workers, "s3cret-two", "${env.PW}", "/new")).has_changes


def test_raw_password_changed_by_another_client_is_drift(world: World, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(OLD)
    world.secrets.values = {"${env.PW}": "s3cret-one"}
    wanted = declare_secret(workers, "s3cret-one", "${env.PW}")
    world.apply(wanted)
    plan = world.plan(declare_workers(workers, "/old", config={LOCATION: "/old", PASSWORD: PLACEHOLDER}))
    workers.patch(workers.urls[0], {PASSWORD: "s3cret-other"})
    with pytest.raises(KdeclareError) as stale:
        world.run(plan)
    assert "s3cret" not in str(stale.value)
    drifted = world.plan(wanted)
    assert drifted.changes[0].reason is Reason.DRIFTED
    assert "s3cret" not in plan_text(drifted)


def test_rollback_restores_raw_password_only_when_available(world: World, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(OLD)
    workers.patch(workers.urls[0], {PASSWORD: "s3cret-of-somebody"})
    plan = world.plan(declare_workers(workers))
    (op,) = plan.operations
    assert op.irreversible == f"Cannot be restored: the secret of {PASSWORD}."
    world.secrets.values = {"${env.PW}": "s3cret-one"}
    world.apply(declare_secret(workers, "s3cret-one", "${env.PW}"))
    world.apply(declare_workers(workers))
    assert workers.current()[PASSWORD] == PLACEHOLDER
    assert world.rollback().complete
    assert workers.current()[PASSWORD] == "s3cret-one"


def test_worker_connection_in_plan_contains_no_secrets(world: World, workers: MemoryWorkers) -> None:
    header = Referenced("Basic s3cret", "Basic ${env.AUTH}")
    wanted = declare_workers(workers, headers={"Authorization": header}, tls={"caFile": "ca.pem"})
    plan = world.plan(wanted)
    (op,) = plan.operations
    assert dump_args(op)["workers"] == {
        "urls": list(workers.urls),
        "ca_file": "ca.pem",
        "headers": [["Authorization", "Basic ${env.AUTH}"]],
    }
    assert "s3cret" not in render_plan_file(plan)[0]


def test_added_workers_are_recorded_without_change(world: World, workers: MemoryWorkers) -> None:
    few = MemoryWorkers(workers.urls[:2])
    few.files, few.placeholders = workers.files, workers.placeholders
    world.workers[few.urls] = few
    world.apply(declare_workers(few))
    workers.log = few.log
    for worker in workers.workers.values():
        workers._apply_update(worker)
    plan = world.plan(declare_workers(workers))
    assert not plan.operations
    assert world.run(plan).complete
    assert world.owned()["ConnectWorkerConfig/eu"]["workers"]["urls"] == list(workers.urls)


# Named Connect clusters.


@pytest.fixture
def named(world: World, workers: MemoryWorkers) -> DesiredResource:
    """The declaration of overrides for the workers that the environment names eu."""
    world.workers["connect/eu",] = workers
    world.connect_clusters["eu"] = MemoryConnectCluster(kafka_cluster_id="KAFKA-1")
    return desired(
        "ConnectWorkerConfig", "eu", connect="eu", config={LOCATION: "/old", PASSWORD: PLACEHOLDER}
    )


def test_named_workers_are_configured_and_rolled_back(
    world: World, workers: MemoryWorkers, named: DesiredResource
) -> None:
    plan = world.plan(named)
    assert plan.endpoints == {"connect/eu": "KAFKA-1"}
    assert dump_args(plan.operations[0])["workers"] == {"endpoint": "eu"}
    assert "connect/eu" in plan_text(plan)
    assert world.apply(named).complete
    assert workers.overrides(workers.urls[0])[LOCATION] == "/old"
    assert not world.plan(named).has_changes
    assert world.rollback().complete
    assert not workers.overrides(workers.urls[0])


def test_plan_for_another_named_connect_cluster_is_refused(world: World, named: DesiredResource) -> None:
    assert world.apply(named).complete
    world.connect_clusters["eu"] = MemoryConnectCluster(kafka_cluster_id="KAFKA-2")
    with pytest.raises(KdeclareError, match="connect/eu now has the id KAFKA-2"):
        world.plan(named)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, ()),
        ({"connect": "eu", "workers": ["https://worker:8083"]}, ("workers",)),
        ({"connect": "eu", "tls": {"caFile": "ca.pem"}}, ("tls",)),
    ],
)
def test_manifest_names_workers_in_exactly_one_way(spec: dict[str, Any], field: tuple[str, ...]) -> None:
    parsed = ConnectWorkerConfigSpec.model_validate({"config": {LOCATION: "/old"}, **spec})
    _, problems = parse_worker_config("eu", parsed)
    assert [problem.path for problem in problems] == [field]
