"""The kind `Connector` with an in-memory Connect cluster: plan, apply, drift, adoption and rollback."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import WORK_FAILED, ApplyResult, Status
from kdeclare.core.resources.changes import Action, Reason, Risk
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.planfile import render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.state.document import encode_state
from kdeclare.providers.connect.client.connectors_port import ConnectorOffset, TargetState
from kdeclare.providers.connect.client.port import LOST, UNREACHABLE
from kdeclare.providers.connect.connector_health import FAILED_CONNECTORS
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.connect.testing.workers import Keystore, MemoryWorkers
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.testing.world import declare
from tests.engine.test_connect_contract import make_certificate
from tests.engine.world import World, desired, topic

SOURCE: dict[str, Any] = {
    "class": "FileStreamSource",
    "tasksMax": 1,
    "config": {"file": "in.txt", "topic": "ft"},
}
SINK: dict[str, Any] = {
    "class": "FileStreamSink",
    "tasksMax": 2,
    "config": {"topics": "ft", "file": "out.txt"},
}
PASSWORD_SINK: dict[str, Any] = {
    "class": "org.example.PasswordSinkConnector",
    "config": {"topics": "ft", "url": "x"},
}
DELETES = PlanScope(allow_deletes=True)


@dataclass
class Bed:
    """A world with one Connect cluster, and another client of that cluster."""

    connect: MemoryConnectCluster = field(default_factory=MemoryConnectCluster)

    def __post_init__(self) -> None:
        self.world = World(connect_clusters={"eu": self.connect})
        self.other = self.connect.elsewhere()

    def apply(
        self, *declared: DesiredResource, scope: PlanScope | None = None, **options: Any
    ) -> ApplyResult:
        self.connect.calls.clear()
        return self.world.apply(*declared, scope=scope, **options)

    def plan(self, *declared: DesiredResource, scope: PlanScope | None = None) -> Plan:
        return self.world.plan(*declared, scope=scope)

    def disconnect(self) -> None:
        """Make the workers unreachable."""
        for method in ("identify", "list_connectors", "describe_connector"):
            self.connect.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method=method)

    def config(self, name: str = "src") -> dict[str, str]:
        found = self.other.describe_connector(name)
        assert found is not None
        return dict(found.config)

    def state(self, name: str = "src") -> str:
        self.other.settle()
        found = self.other.describe_connector(name)
        assert found is not None
        return found.state


@pytest.fixture
def bed() -> Bed:
    return Bed()


def connector(name: str = "src", base: dict[str, Any] = SOURCE, /, **spec: Any) -> DesiredResource:
    """Declare a connector. Keys of ``config`` are added to the config of ``base``; None removes a key."""
    config = {**base["config"], **spec.pop("config", {})}
    return declare("Connector", name, {**base, **spec, "config": config})


def list_verbs(plan: Plan) -> list[str]:
    return [op.verb for op in plan.operations]


def list_fields(plan: Plan, name: str = "src") -> dict[str, tuple[str, object, object]]:
    (change,) = (change for change in plan.changes if change.id.name == name)
    return {field.path: (str(field.op), field.before, field.after) for field in change.fields}


# creation


def test_creation_follows_its_topic_and_waits_for_tasks(bed: Bed) -> None:
    declared = [topic("ft", partitions=1, replicationFactor=1), connector(connect="eu")]
    plan = bed.plan(*declared)
    creation = next(op for op in plan.operations if op.verb == "connector.create")
    assert "topic.create:Topic/ft" in creation.needs
    result = bed.apply(*declared)
    assert result.complete, result.results
    assert bed.connect.requests() == ["POST /connectors"]
    assert bed.config() == {
        "name": "src",
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": "in.txt",
        "topic": "ft",
    }
    assert bed.state() == "RUNNING"
    assert not bed.plan(*declared).has_changes


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_creation_sends_initial_state(bed: Bed, state: str) -> None:
    assert bed.apply(connector(state=state)).complete
    assert bed.connect.requests() == ["POST /connectors"]
    assert bed.state() == state


def test_connect_cluster_can_be_omitted_only_if_there_is_one(bed: Bed) -> None:
    bed.world.connect_clusters["us"] = MemoryConnectCluster()
    plan = bed.plan(connector())
    assert [(d.code, d.subject) for d in plan.diagnostics] == [("endpoint-not-configured", "spec.connect")]
    assert plan.has_errors


def test_failed_task_fails_operation_but_connector_is_owned(bed: Bed) -> None:
    sink = connector("sink", SINK, tasksMax=1, config={"file": "/no/such/dir/x"})
    result = bed.apply(sink)
    (outcome,) = result.results.values()
    assert (outcome.status, outcome.error) == (Status.FAILED, WORK_FAILED)
    assert "Couldn't find or create file" in outcome.message
    assert "\n" not in outcome.message
    assert "Connector/sink" in bed.world.owned()
    plan = bed.plan(sink)
    assert not plan.operations
    assert [d.code for d in plan.diagnostics] == ["connector-failed"]


def test_rollback_deletes_connector_whose_tasks_failed(bed: Bed) -> None:
    bed.apply(connector("sink", SINK, config={"file": "/no/such/dir/x"}))
    assert bed.world.rollback().complete
    assert bed.other.describe_connector("sink") is None
    assert not bed.world.owned()


def test_creation_that_others_made_first_is_stale_and_not_undone(bed: Bed) -> None:
    plan = bed.plan(connector())
    bed.connect.faults.run_before(
        lambda other: other.create_connector("src", {"connector.class": "FileStreamSource", "topic": "mine"}),
        method="create_connector",
    )
    (outcome,) = bed.world.run(plan).results.values()
    assert outcome.status is Status.STALE
    assert not bed.world.plan_rollback().operations
    assert bed.config()["topic"] == "mine"


def test_equal_connector_that_others_created_first_is_stale_and_not_undone(bed: Bed) -> None:
    """Workers do not repeat requests, so that the existing connector is never the one of this run."""
    plan = bed.plan(connector())
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "in.txt", "topic": "ft"}
    bed.connect.faults.run_before(
        lambda other: other.create_connector("src", config), method="create_connector"
    )
    (outcome,) = bed.world.run(plan).results.values()
    assert outcome.status is Status.STALE
    assert not bed.world.plan_rollback().operations


def test_slow_tasks_are_reported_as_started(bed: Bed) -> None:
    bed.connect.lag = 1_000_000
    (outcome,) = bed.apply(connector()).results.values()
    assert (outcome.status, outcome.error) == (Status.STARTED, "work-timeout")
    assert "is not RUNNING after 120 s" in outcome.message
    assert "Connector/src" in bed.world.owned()


def test_run_that_does_not_wait_reports_started(bed: Bed) -> None:
    (outcome,) = bed.apply(connector(), wait=False).results.values()
    assert (outcome.status, outcome.error) == (Status.STARTED, None)


# changes


def test_whole_config_is_declared(bed: Bed) -> None:
    bed.apply(connector(config={"batch.size": "10"}))
    plan = bed.plan(connector())
    assert list_fields(plan) == {"config.batch.size": ("DELETE", "10", None)}
    assert bed.apply(connector()).complete
    assert bed.connect.requests() == ["PUT /connectors/src/config"]
    assert "batch.size" not in bed.config()
    bed.apply(connector())
    assert bed.connect.requests() == []


def test_values_become_strings(bed: Bed) -> None:
    declared = connector(config={"batch.size": 5, "exactly.once": True})
    bed.apply(declared)
    assert (bed.config()["batch.size"], bed.config()["exactly.once"]) == ("5", "true")
    assert not bed.plan(declared).has_changes


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        ("RUNNING", "PAUSED", ["connector.state", "connector.configure"]),
        ("RUNNING", "STOPPED", ["connector.state", "connector.configure"]),
        ("PAUSED", "RUNNING", ["connector.configure", "connector.state"]),
        ("STOPPED", "RUNNING", ["connector.configure", "connector.state"]),
    ],
)
def test_config_and_state_change_in_safe_order(bed: Bed, before: str, after: str, order: list[str]) -> None:
    bed.apply(connector(state=before))
    changed = connector(state=after, config={"batch.size": "5"})
    plan = bed.plan(changed)
    assert list_verbs(plan) == order
    result = bed.apply(changed)
    assert result.complete, result.results
    assert (bed.state(), bed.config()["batch.size"]) == (after, "5")
    assert not bed.plan(changed).has_changes


def test_undeclared_state_is_not_managed(bed: Bed) -> None:
    bed.apply(connector())
    bed.other.set_state("src", TargetState.PAUSED)
    assert not bed.plan(connector()).has_changes
    assert bed.apply(connector(config={"batch.size": "5"})).complete
    assert bed.state() == "PAUSED"


def test_class_alias_equals_full_name(bed: Bed) -> None:
    bed.apply(connector())
    full_name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    renamed = connector(**{"class": full_name})
    assert not bed.plan(renamed).has_changes
    changed = connector(**{"class": full_name}, config={"batch.size": "5"})
    assert list_fields(bed.plan(changed)) == {"config.batch.size": ("SET", None, "5")}
    assert bed.apply(changed).complete
    assert bed.config()["connector.class"] == "FileStreamSource"


def test_other_class_is_disruptive(bed: Bed) -> None:
    bed.apply(connector("sink", SINK))
    plan = bed.plan(connector("sink", {**SINK, "class": "org.example.PasswordSinkConnector"}))
    (change,) = plan.changes
    assert change.risk is Risk.DISRUPTIVE


def test_ignored_keys_keep_their_values(bed: Bed) -> None:
    declared = connector(ignore=["platform.id"])
    bed.apply(declared)
    bed.other.replace_config("src", {**bed.config(), "platform.id": "7"})
    assert not bed.plan(declared).has_changes
    assert bed.apply(connector(ignore=["platform.id"], config={"batch.size": "5"})).complete
    assert bed.config()["platform.id"] == "7"
    assert bed.world.rollback().complete
    assert "batch.size" not in bed.config()
    assert bed.config()["platform.id"] == "7"


def test_two_manifests_for_one_connector_contradict(bed: Bed) -> None:
    plan = bed.plan(connector(connect="eu"), connector("again", name="src", connect="eu"))
    assert [d.code for d in plan.diagnostics if d.is_error] == ["contradiction"]


def test_connector_that_moves_is_denied(bed: Bed) -> None:
    bed.apply(connector())
    plan = bed.plan(connector(name="other"))
    assert [d.code for d in plan.diagnostics] == ["connector-moved"]
    assert not plan.operations


# drift


def test_changes_by_others_are_drift(bed: Bed) -> None:
    bed.apply(connector(state="RUNNING"))
    bed.other.replace_config("src", {**bed.config(), "file": "other.txt", "new": "1"})
    bed.other.set_state("src", TargetState.STOPPED)
    bed.other.settle()
    plan = bed.plan(connector(state="RUNNING"))
    assert list_fields(plan) == {
        "config.file": ("SET", "other.txt", "in.txt"),
        "config.new": ("DELETE", "1", None),
        "state": ("change", "STOPPED", "RUNNING"),
    }
    assert plan.changes[0].reason is Reason.DRIFTED
    assert bed.apply(connector(state="RUNNING")).complete
    assert (bed.state(), bed.config()["file"]) == ("RUNNING", "in.txt")


def test_missing_connector_is_created_again(bed: Bed) -> None:
    bed.apply(connector())
    bed.other.delete_connector("src")
    plan = bed.plan(connector())
    assert (plan.changes[0].action, plan.changes[0].reason) == (Action.CREATE, Reason.MISSING)


def test_failed_task_is_drift_that_restart_failed_repairs(bed: Bed) -> None:
    bed.apply(connector())
    bed.connect.fail_task("src", 0, "java.lang.IllegalStateException: disk full\n\tat x")
    warned = bed.plan(connector())
    assert not warned.operations
    (diagnostic,) = warned.diagnostics
    assert diagnostic.code == "connector-failed"
    assert "task 0 failed: java.lang.IllegalStateException: disk full." in diagnostic.detail
    plan = bed.plan(connector(restartFailed=True))
    assert list_fields(plan) == {"tasks": ("change", "FAILED", "RUNNING")}
    assert bed.apply(connector(restartFailed=True)).complete
    assert bed.connect.requests() == ["POST /connectors/src/restart?includeTasks=true&onlyFailed=true"]
    assert not bed.plan(connector(restartFailed=True)).has_changes


def test_restart_that_does_not_help_fails(bed: Bed) -> None:
    declared = connector("sink", SINK, restartFailed=True, config={"file": "/no/such/dir/x"})
    bed.apply(declared)
    (outcome,) = bed.apply(declared).results.values()
    assert (outcome.status, outcome.error) == (Status.FAILED, WORK_FAILED)


def test_message_of_failed_task_contains_no_credentials(bed: Bed) -> None:
    bed.apply(connector())
    bed.connect.fail_task("src", 0, "SQLException: jdbc:db://joe:hunter2@db/x?password=hunter2&tls=1 refused")
    (diagnostic,) = bed.plan(connector()).diagnostics
    assert "hunter2" not in diagnostic.detail
    assert "tls=1 refused" in diagnostic.detail


# adoption


def test_equal_connector_is_adopted_without_request(bed: Bed) -> None:
    bed.world.adopts = False
    bed.other.create_connector(
        "src",
        {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "in.txt", "topic": "ft"},
    )
    assert bed.apply(connector()).complete
    assert bed.connect.requests() == []
    assert "Connector/src" in bed.world.owned()


def test_different_connector_is_adopted_only_on_request(bed: Bed) -> None:
    bed.world.adopts = False
    bed.other.create_connector("src", {"connector.class": "FileStreamSource", "topic": "mine"})
    plan = bed.plan(connector())
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.ADOPT, "adoption")
    assert not plan.operations
    assert bed.apply(connector(lifecycle={"adopt": True})).complete
    assert bed.config()["topic"] == "ft"


# deletion


def test_orphan_is_deleted_on_request_before_its_topic(bed: Bed) -> None:
    bed.apply(topic("ft", partitions=1, replicationFactor=1), connector())
    plan = bed.plan(scope=DELETES)
    deletion = next(op for op in plan.operations if op.verb == "topic.delete")
    assert "connector.delete:Connector/src" in deletion.needs
    assert bed.apply(scope=DELETES).complete
    assert bed.connect.requests() == ["DELETE /connectors/src"]
    assert not bed.world.owned()


def test_protected_connector_is_not_deleted(bed: Bed) -> None:
    bed.apply(connector(lifecycle={"preventDestroy": True}))
    plan = bed.plan(scope=DELETES)
    assert [d.code for d in plan.diagnostics] == ["prevent-destroy"]
    assert not plan.operations


def test_rollback_creates_deleted_connector_with_config_and_state(bed: Bed) -> None:
    bed.apply(connector(config={"batch.size": "5"}))
    before = bed.config()
    bed.other.set_state("src", TargetState.PAUSED)
    bed.other.settle()
    bed.apply(scope=DELETES)
    assert bed.world.rollback().complete
    assert (bed.config(), bed.state()) == (before, "PAUSED")
    assert "Connector/src" in bed.world.owned()


def test_offsets_are_deleted_on_request(bed: Bed) -> None:
    bed.apply(connector(deleteOffsets=True))
    bed.connect.set_offsets("src", (ConnectorOffset({"filename": "in.txt"}, {"position": 5}),))
    plan = bed.plan(scope=DELETES)
    assert list_verbs(plan) == ["connector.state", "connector.offsets.delete", "connector.delete"]
    assert plan.changes[0].risk is Risk.IRREVERSIBLE
    assert bed.apply(scope=DELETES).complete
    assert bed.connect.requests() == [
        "PUT /connectors/src/stop",
        "DELETE /connectors/src/offsets",
        "DELETE /connectors/src",
    ]
    rollback = bed.world.plan_rollback()
    assert "irreversible" in {d.code for d in rollback.diagnostics}
    assert list_verbs(rollback) == ["connector.create"]


# rollback


def test_rollback_restores_config_and_state(bed: Bed) -> None:
    bed.apply(connector(state="RUNNING", config={"batch.size": "5"}))
    before = bed.config()
    bed.apply(connector(state="PAUSED", config={"file": "other.txt", "new": "1"}))
    assert bed.world.rollback().complete
    assert (bed.config(), bed.state()) == (before, "RUNNING")
    assert not bed.plan(connector(state="RUNNING", config={"batch.size": "5"})).has_changes


def test_rollback_keeps_what_others_changed(bed: Bed) -> None:
    bed.apply(connector())
    bed.apply(connector(config={"file": "new.txt", "batch.size": "5"}))
    bed.other.replace_config("src", {**bed.config(), "file": "theirs.txt", "extra": "1"})
    bed.other.settle()
    result = bed.world.rollback()
    assert [d.subject for d in result.plan.diagnostics if d.code == "conflict"] == ["config.file"]
    assert bed.config() == {
        "name": "src",
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": "theirs.txt",
        "topic": "ft",
        "extra": "1",
    }


# stale plans and unknown outcomes


@pytest.mark.parametrize("change", [{"file": "theirs.txt"}, {"extra": "1"}])
def test_plan_is_stale_if_others_change_config(bed: Bed, change: dict[str, str]) -> None:
    bed.apply(connector())
    plan = bed.plan(connector(config={"batch.size": "5"}))
    bed.other.replace_config("src", {**bed.config(), **change})
    bed.other.settle()
    (outcome,) = bed.world.run(plan, skip_stale=True).results.values()
    assert outcome.status is Status.STALE


@pytest.mark.parametrize("method", ["create_connector", "replace_config", "set_state", "delete_connector"])
@pytest.mark.parametrize("after_effect", [False, True])
def test_lost_response_is_settled_by_reading(bed: Bed, method: str, after_effect: bool) -> None:
    final = connector(state="PAUSED", config={"batch.size": "5"})
    lost = Fault(LOST, "it did not respond", FaultKind.UNKNOWN)
    bed.connect.faults.time_out(fault=lost, method=method, after_effect=after_effect)
    assert bed.apply(connector(state="RUNNING")).complete
    assert bed.apply(final).complete
    assert (bed.state(), bed.config()["batch.size"]) == ("PAUSED", "5")
    assert bed.apply(scope=DELETES).complete
    assert bed.other.describe_connector("src") is None


# secrets


def secret(value: str) -> Referenced:
    return Referenced(value, "${env.DB_PASSWORD}")


def test_secret_is_compared_by_hash_and_never_shown(bed: Bed) -> None:
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "hunter2-hunter2"
    declared = connector(config={"db.password": secret("hunter2-hunter2")})
    plan = bed.plan(declared)
    assert list_fields(plan)["config.db.password"] == ("SET", None, "(sensitive)")
    assert bed.apply(declared).complete
    assert bed.config()["db.password"] == "hunter2-hunter2"
    assert not bed.plan(declared).has_changes
    bed.other.replace_config("src", {**bed.config(), "db.password": "changed-elsewhere"})
    drifted = bed.plan(declared)
    assert list_fields(drifted) == {"config.db.password": ("SET", "(sensitive)", "(sensitive)")}
    state = bed.world.store.read()
    assert state is not None
    for text in (render_plan_file(drifted)[0], plan_text(drifted), encode_state(state)):
        assert "hunter2" not in text
        assert "changed-elsewhere" not in text


def test_every_reference_is_a_secret_whatever_its_key_is(bed: Bed) -> None:
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "hunter2-hunter2"
    plan = bed.plan(connector(config={"file": secret("hunter2-hunter2")}))
    assert "hunter2" not in dump_canonical_json([str(op) for op in plan.operations])
    assert list_fields(plan)["config.file"] == ("SET", None, "(sensitive)")


def test_new_secret_can_be_rolled_back(bed: Bed) -> None:
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "first-password"
    bed.apply(connector(config={"db.password": secret("first-password")}))
    bed.world.secrets.values["${env.NEW}"] = "second-password"
    new = connector(config={"db.password": Referenced("second-password", "${env.NEW}")})
    assert bed.apply(new).complete
    assert bed.config()["db.password"] == "second-password"
    assert bed.world.rollback().complete
    assert bed.config()["db.password"] == "first-password"


def test_placeholders_of_connect_stay_as_they_are(bed: Bed) -> None:
    declared = connector(config={"db.password": "${file:/etc/secrets:db}"})
    plan = bed.plan(declared)
    assert list_fields(plan)["config.db.password"] == ("SET", None, "${file:/etc/secrets:db}")
    assert bed.apply(declared).complete
    assert bed.config()["db.password"] == "${file:/etc/secrets:db}"


def test_masked_values_count_as_applied(bed: Bed) -> None:
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "first-password"
    declared = connector(config={"db.password": secret("first-password")})
    bed.apply(declared)
    bed.other.replace_config("src", {**bed.config(), "db.password": "********"})
    assert not bed.plan(declared).has_changes
    bed.world.secrets.values["${env.NEW}"] = "second-password"
    new = connector(config={"db.password": Referenced("second-password", "${env.NEW}")})
    assert list_fields(bed.plan(new)) == {"config.db.password": ("SET", "(sensitive)", "(sensitive)")}
    assert bed.apply(new).complete
    assert bed.config()["db.password"] == "second-password"


def test_literal_value_of_password_key_is_refused(bed: Bed) -> None:
    plan = bed.plan(connector("sink", PASSWORD_SINK, config={"pin": "12345678"}))
    assert [(d.code, d.subject) for d in plan.diagnostics] == [("literal-password", "spec.config.pin")]
    assert not plan.operations
    assert "12345678" not in plan_text(plan)


def test_live_value_of_password_key_is_not_shown(bed: Bed) -> None:
    bed.other.create_connector(
        "sink",
        {
            "connector.class": PASSWORD_SINK["class"],
            "topics": "ft",
            "url": "x",
            "pin": "12345678",
        },
    )
    plan = bed.plan(connector("sink", PASSWORD_SINK))
    assert list_fields(plan, "sink") == {"config.pin": ("DELETE", "(sensitive)", None)}
    assert "12345678" not in render_plan_file(plan)[0]


def test_every_request_is_a_batch_so_that_runs_can_stop(bed: Bed) -> None:
    declared = [connector(name) for name in ("a", "b", "c")]
    plan = bed.plan(*declared)
    bed.connect.faults.run_before(lambda _: bed.world.stop.set(), method="create_connector", nth=2)
    result = bed.world.run(plan)
    assert result.interrupted
    statuses = sorted(outcome.status for outcome in result.results.values())
    assert statuses == [Status.INTERRUPTED, Status.STARTED, Status.STARTED]
    assert len(bed.connect.requests()) == 2


def test_many_connectors_are_not_read_after_each_request(bed: Bed) -> None:
    bed.connect.lag = 0
    declared = [connector(f"c{number}") for number in range(40)]
    assert bed.apply(*declared).complete
    reads = [call for call in bed.connect.calls if call.method in ("list_connectors", "describe_connector")]
    assert len(reads) < len(declared) / 2


def test_plan_reads_a_connect_cluster_once_even_if_manifests_omit_its_name(bed: Bed) -> None:
    declared = [connector(f"c{number}") for number in range(10)]
    bed.apply(*declared)
    bed.other.settle()
    bed.connect.calls.clear()
    assert not bed.plan(*declared).has_changes
    assert [call.method for call in bed.connect.calls] == ["list_connectors", "identify", "validate_config"]


# validation


def test_invalid_config_is_an_error_of_the_plan(bed: Bed) -> None:
    plan = bed.plan(declare("Connector", "src", {"class": "FileStreamSource", "tasksMax": 0, "config": {}}))
    errors = {d.subject: d.detail for d in plan.diagnostics if d.is_error}
    assert errors.keys() == {"spec.tasksMax", "spec.config.topic"}
    assert "topic" in errors["spec.config.topic"]
    assert bed.connect.requests() == []


def test_unknown_key_is_a_warning(bed: Bed) -> None:
    plan = bed.plan(connector(config={"batchsize": "5", "producer.override.acks": "1"}))
    warnings = [(d.code, d.subject, d.hint) for d in plan.diagnostics]
    assert warnings == [("unknown-connector-key", "spec.config.batchsize", "Did you mean 'batch.size'?")]


def test_unknown_keys_without_suggestions_share_a_warning(bed: Bed) -> None:
    config = {f"pass.through.{number}": "1" for number in range(7)}
    (diagnostic,) = bed.plan(connector(config=config)).diagnostics
    assert (diagnostic.code, diagnostic.subject) == ("unknown-connector-key", "spec.config")
    assert "pass.through.4 and 2 more" in diagnostic.detail


def test_unknown_class_is_an_error_with_a_suggestion(bed: Bed) -> None:
    plan = bed.plan(connector(**{"class": "FileStreamSourc"}))
    (diagnostic,) = (d for d in plan.diagnostics if d.is_error)
    assert (diagnostic.subject, diagnostic.hint) == ("spec.class", "Did you mean 'FileStreamSource'?")


def test_validation_can_be_omitted(bed: Bed) -> None:
    plan = bed.plan(connector(tasksMax=0), scope=PlanScope(preflight=False))
    assert not plan.has_errors
    assert not [
        call for call in bed.connect.calls if call.method == "validate_config" and call.items == ("src",)
    ]


def test_messages_of_validation_contain_no_secrets(bed: Bed) -> None:
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "pw-1"  # too short for the scrubber
    plan = bed.plan(connector(config={"batch.size": secret("pw-1")}))
    (diagnostic,) = (d for d in plan.diagnostics if d.is_error)
    assert diagnostic.subject == "spec.config.batch.size"
    assert "pw-1" not in diagnostic.detail


# several Connect clusters


def test_unreachable_cluster_blocks_only_its_connectors(bed: Bed) -> None:
    us = bed.world.connect_clusters["us"] = MemoryConnectCluster()
    bed.disconnect()
    plan = bed.plan(
        connector("a", connect="eu"),
        connector("b", connect="us"),
        topic("t", partitions=1, replicationFactor=1),
    )
    assert [(d.code, d.resource) for d in plan.diagnostics] == [("endpoint-unreachable", "Connector/a")]
    assert {str(op.resource) for op in plan.operations} == {"Connector/b", "Topic/t"}
    assert plan.endpoints == {"connect/us": "memory"}
    assert bed.world.run(plan).complete
    assert us.describe_connector("b") is not None


def test_orphan_of_unreachable_cluster_stays_owned(bed: Bed) -> None:
    bed.apply(connector())
    bed.disconnect()
    plan = bed.plan(scope=DELETES)
    assert not plan.operations
    assert not plan.ownership


# order between kinds


def test_needed_resources_come_first(bed: Bed) -> None:
    acl = desired("Acl", "access", principal="User:connect", produce=["ft"])
    plan = bed.plan(connector(needs=["Acl/access"]), acl)
    creation = next(op for op in plan.operations if op.verb == "connector.create")
    assert any(need.startswith("acls.create") for need in creation.needs)
    assert bed.apply(connector(needs=["Acl/access"]), acl).complete
    deletion_plan = bed.plan(scope=DELETES)
    acl_deletion = next(op for op in deletion_plan.operations if op.verb == "acls.delete")
    assert "connector.delete:Connector/src" in acl_deletion.needs


def test_needed_resource_that_is_not_declared_is_a_warning(bed: Bed) -> None:
    plan = bed.plan(connector(needs=["Topic/typo"]))
    assert [(d.code, d.subject) for d in plan.diagnostics] == [("unknown-need", "spec.needs")]


def test_access_of_override_user_comes_first(bed: Bed) -> None:
    jaas = 'org.example.Login required username="app" password="${file:/etc/secrets:app}";'
    declared = connector(config={"producer.override.sasl.jaas.config": jaas})
    plan = bed.plan(declared, desired("Acl", "access", principal="User:app", produce=["ft"]))
    creation = next(op for op in plan.operations if op.verb == "connector.create")
    assert any(id_.startswith("acls.create") for id_ in creation.follows)


def test_workers_of_the_same_connect_cluster_are_configured_first(bed: Bed) -> None:
    workers = MemoryWorkers()
    workers.files = {"/new": Keystore(make_certificate("new"), "pw")}
    workers.placeholders = {"${file:/secrets:keystore}": "pw"}
    bed.world.connect_clusters["us"] = MemoryConnectCluster()
    bed.world.workers["connect/eu",] = bed.world.workers["connect/us",] = workers
    prefix, placeholder = "listeners.https.ssl.keystore.", "${file:/secrets:keystore}"
    config = {f"{prefix}location": "/new", f"{prefix}password": placeholder}
    declared = [desired("ConnectWorkerConfig", name, connect=name, config=config) for name in ("eu", "us")]
    plan = bed.plan(connector(connect="eu"), *declared)
    creation = next(op for op in plan.operations if op.verb == "connector.create")
    assert [id_ for id_ in creation.follows if "ConnectWorkerConfig" in id_] == [
        op.id
        for op in plan.operations
        if op.resource.kind == "ConnectWorkerConfig" and op.resource.name == "eu"
    ]


def test_topics_matching_a_regex_come_first(bed: Bed) -> None:
    sink = {"class": "FileStreamSink", "config": {"topics.regex": "f.*", "file": "out"}}
    plan = bed.plan(connector("sink", sink), topic("ft", partitions=1, replicationFactor=1))
    creation = next(op for op in plan.operations if op.verb == "connector.create")
    assert "topic.create:Topic/ft" in creation.follows


def test_unmanaged_connectors_are_counted(bed: Bed) -> None:
    bed.other.create_connector("mine", {"connector.class": "FileStreamSource", "topic": "t"})
    assert bed.plan(connector()).summary.unmanaged == 1


def test_rollback_does_not_wait_for_a_state_that_others_changed(bed: Bed) -> None:
    bed.apply(connector(state="PAUSED"))
    bed.apply(connector(state="PAUSED", config={"batch.size": "5"}))
    bed.other.set_state("src", TargetState.RUNNING)
    bed.other.settle()
    assert bed.world.rollback().complete
    assert bed.state() == "RUNNING"
    assert "batch.size" not in bed.config()


@pytest.mark.parametrize(("before", "after"), [("plain", "secret"), ("secret", "plain"), ("secret", "")])
def test_rollback_restores_value_that_was_or_became_a_secret(bed: Bed, before: str, after: str) -> None:
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "secret"
    values = {"secret": secret("secret"), "plain": "plain", "": ""}
    assert bed.apply(connector(config={"user": values[before]})).complete
    result = bed.apply(connector(config={"user": values[after]}))
    assert result.complete, result.results
    assert bed.config()["user"] == after
    assert bed.world.rollback().complete
    assert bed.config()["user"] == before


@pytest.mark.parametrize("live", ["a", "b"])
def test_plain_value_replaces_secret_that_others_changed(bed: Bed, live: str) -> None:
    """A value that is declared in plain text is not a secret, although the key was applied as a secret."""
    bed.world.secrets.values["${env.DB_PASSWORD}"] = "secret"
    bed.apply(connector(config={"user": secret("secret")}))
    bed.other.replace_config("src", {**bed.config(), "user": live})
    declared = connector(config={"user": "a", "batch.size": "5"})
    assert ("config.user" in list_fields(bed.plan(declared))) == (live == "b")
    result = bed.apply(declared)
    assert result.complete, result.results
    rollback = bed.world.rollback()
    assert rollback.complete
    assert [d.code for d in rollback.plan.diagnostics] == (["irreversible"] if live == "b" else [])
    assert bed.config()["user"] == "a"
    assert "batch.size" not in bed.config()


def test_rollback_undoes_connector_that_others_changed_during_run(bed: Bed) -> None:
    """The connector is owned, and the rollback reverts all keys but the changed one."""
    plan = bed.plan(connector(config={"batch.size": "5"}))

    def change_key(other: MemoryConnectCluster) -> None:
        live = other.describe_connector("src")
        if live is not None:
            other.replace_config("src", {**live.config, "file": "other.txt"})

    bed.connect.faults.run_before(change_key, nth=None, method="describe_connector")
    (outcome,) = bed.world.run(plan).results.values()
    bed.connect.faults.clear()
    assert (outcome.status, outcome.error) == (Status.FAILED, "work-overridden")
    assert "Connector/src" in bed.world.owned()
    rollback = bed.world.plan_rollback()
    assert [(d.code, d.subject) for d in rollback.diagnostics] == [("conflict", "config.file")]


def test_paused_connector_with_failed_task_can_be_configured(bed: Bed) -> None:
    bed.apply(connector("sink", SINK, state="PAUSED", config={"file": "/no/such/dir/x"}))
    changed = connector("sink", SINK, state="PAUSED", config={"file": "/no/such/dir/y"})
    assert bed.apply(changed).complete


def test_health_check_counts_connectors_that_failed(bed: Bed) -> None:
    """Rollouts of fleets wait until the number is zero."""
    connections = bed.world.connect()
    assert FAILED_CONNECTORS.count(connections) == 0
    bed.apply(connector(), connector("sink", SINK, config={"file": "/no/such/dir/x"}))
    assert FAILED_CONNECTORS.count(connections) == 1, "one of two"
    assert FAILED_CONNECTORS.format(1) == "1 failed connector"
    bed.disconnect()
    with pytest.raises(Fault):
        FAILED_CONNECTORS.count(bed.world.connect())
    assert FAILED_CONNECTORS.count(World().connect()) == 0, "no Connect cluster is configured"
