"""Sensitive configs: planned, applied, recorded, rolled back; their value never leaves the process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kdeclare.app.apply import ApplyOptions, apply_manifests, apply_saved, roll_back
from kdeclare.app.plan import make_plan, save_plan
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.resources.changes import FieldOp
from kdeclare.core.resources.owned_record import narrow_record
from kdeclare.core.secrets.secret_hashes import is_hash_of
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.executor.recreation import IRREVERSIBLE
from kdeclare.engine.planning.planfile import load_plan, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.manifests.project import open_project
from kdeclare.providers.kafka.broker_config import BrokerConfigRecord
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import run_outcome
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.run.documents import build_run_document
from kdeclare.report.run.run_text import render_run_text
from tests.beds import broker_resource
from tests.connections import make_connector
from tests.engine.world import nothing

KEY = "listener.name.internal.ssl.keystore.password"
BROKER = broker_resource(1)
OLD, NEW = "correct-horse", "battery-staple"
REFERENCE = "${env.KEYSTORE_PASSWORD}"


ADOPT = PlanScope(adopt=True, visibility_timeout_s=0.2)


@dataclass
class Case:
    """A project on disk with one secret, and all output of kdeclare about it."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    outputs: list[str] = field(default_factory=list)

    def declare(self, value: str | list[str] | None = REFERENCE, key: str = KEY, **environ: str) -> None:
        """Write the only manifest; None declares no value for the key."""
        self.environ |= environ
        configs = {"log.cleaner.threads": 2} | ({} if value is None else {key: value})
        manifest = {
            "apiVersion": "kdeclare/v1",
            "kind": "BrokerConfig",
            "metadata": {"name": "1"},
            "spec": {"configs": configs},
        }
        (self.folder / "broker.yaml").write_text(json.dumps(manifest))

    @property
    def workspace(self) -> Workspace:
        store = LocalStore(self.folder / "state")
        project = open_project(self.folder / "kdeclare.yaml", None, self.environ)
        return Workspace(project, store, "memory", make_connector(self.cluster), self.environ)

    def plan(self) -> Plan:
        plan = make_plan(self.workspace, (), ADOPT, nothing, "plan").plan
        self._record_output(plan_text(plan), render_plan_file(plan, None)[0], repr(plan))
        return plan

    def save(self) -> Path:
        path = self.folder / "it.plan"
        save_plan(self.plan(), path)
        return path

    def apply(self, saved: Path | None = None) -> ApplyResult:
        if saved is not None:
            options = self._make_options("apply")
            return self._record_run(apply_saved(self.workspace, load_plan(saved), options))
        return self._record_run(apply_manifests(self.workspace, (), ADOPT, self._make_options("apply")))

    def rollback(self) -> ApplyResult:
        how = self._make_options("rollback")
        return self._record_run(roll_back(self.workspace, None, how, allow_data_loss=False, out=None))

    def overrides(self) -> Mapping[str, str]:
        found: dict[str, str] = self.cluster.overrides(BROKER)
        return found

    def read_record(self, key: str = KEY) -> SecretRef:
        """Return the record of the secret in the state."""
        state = self.workspace.store.read()
        assert state is not None
        record = narrow_record(state.resources["BrokerConfig/1"], BrokerConfigRecord)
        found = record.configs[key] if record is not None else None
        assert isinstance(found, SecretRef)
        return found

    def check_no_leaks(self) -> None:
        """Check that the value is in no file except the manifests, and in no output."""
        files = [p for p in self.folder.rglob("*") if p.is_file() and p.suffix != ".yaml"]
        texts = [*self.outputs, *(p.read_text() for p in files)]
        assert [t for t in texts if OLD in t or NEW in t] == []
        assert any(SENSITIVE_MASK in text for text in texts)

    def _make_options(self, command: str) -> ApplyOptions:
        def confirm(plan: Plan, notices: object) -> bool:
            self._record_output(plan_text(plan), repr(plan))
            return True

        return ApplyOptions(command, confirm, nothing, RunOptions(workers=1, visibility_timeout_s=0.2))

    def _record_run(self, result: ApplyResult | None) -> ApplyResult:
        assert result is not None
        self._record_output(
            render_run_text(result),
            json.dumps(dump_document(build_run_document(result, None, 0.0))),
            repr(result),
        )
        return result

    def _record_output(self, *texts: str) -> None:
        self.outputs += texts


@pytest.fixture
def case(tmp_path: Path) -> Case:
    project = {
        "apiVersion": "kdeclare/v1",
        "kind": "Project",
        "metadata": {"name": "secret"},
        "spec": {"manifests": ["broker.yaml"]},
    }
    (tmp_path / "kdeclare.yaml").write_text(json.dumps(project))
    made = Case(tmp_path)
    made.declare(KEYSTORE_PASSWORD=OLD)
    return made


def describe_error(problem: pytest.ExceptionInfo[KdeclareError]) -> tuple[ExitCode, list[str]]:
    return problem.value.exit_code, [d.code for d in problem.value.diagnostics]


def test_secret_is_applied_without_leaking(case: Case) -> None:
    plan = case.plan()
    (wanted,) = (f for f in plan.changes[0].fields if f.path == f"configs.{KEY}")
    assert (wanted.op, wanted.before, wanted.after) == (FieldOp.SET, None, SENSITIVE_MASK)
    assert case.apply(case.save()).complete
    assert case.overrides()[KEY] == OLD
    assert case.rollback().complete
    assert KEY not in case.overrides()
    case.check_no_leaks()


def test_state_and_plan_store_reference_and_salted_hash(case: Case) -> None:
    case.apply()
    record = case.read_record()
    assert record.reference == REFERENCE
    assert is_hash_of(record.secret, OLD)
    assert not is_hash_of(record.secret, NEW)
    case.check_no_leaks()


def test_equal_values_of_two_keys_have_different_hashes(case: Case) -> None:
    other = "listener.name.internal.ssl.key.password"
    case.environ["OTHER"] = OLD
    text = (case.folder / "broker.yaml").read_text()
    (case.folder / "broker.yaml").write_text(
        text.replace(f'"{KEY}"', f'"{other}": "${{env.OTHER}}", "{KEY}"')
    )
    case.apply()
    assert case.read_record().secret != case.read_record(other).secret
    case.check_no_leaks()


def test_applied_secret_causes_no_change(case: Case) -> None:
    case.apply()
    assert not case.plan().has_changes
    assert not case.plan().ownership


def test_new_value_of_same_reference_is_a_change(case: Case) -> None:
    case.apply()
    case.declare(KEYSTORE_PASSWORD=NEW)
    (wanted,) = case.plan().changes[0].fields
    assert (wanted.op, wanted.before, wanted.after) == (FieldOp.SET, SENSITIVE_MASK, SENSITIVE_MASK)
    case.apply()
    assert case.overrides()[KEY] == NEW
    assert not case.plan().has_changes
    case.check_no_leaks()


def test_secret_removed_from_cluster_is_drift(case: Case) -> None:
    case.apply()
    case.cluster.set_overrides(BROKER, {"log.cleaner.threads": "2"})
    plan = case.plan()
    assert plan.changes[0].reason == "drifted"
    case.apply()
    assert case.overrides()[KEY] == OLD


def test_undeclared_secret_is_deleted(case: Case) -> None:
    case.apply()
    case.declare(None)
    case.apply()
    assert KEY not in case.overrides()
    assert not case.plan().has_changes
    case.check_no_leaks()


def test_saved_plan_is_stale_after_secret_change(case: Case) -> None:
    saved = case.save()
    case.environ["KEYSTORE_PASSWORD"] = NEW
    with pytest.raises(KdeclareError) as problem:
        case.apply(saved)
    assert describe_error(problem) == (ExitCode.STALE, ["secret-changed"])
    assert REFERENCE in str(problem.value)
    assert case.overrides() == {}
    assert not case.workspace.store.runs()
    case.check_no_leaks()


def test_saved_plan_is_stale_when_secret_is_missing(case: Case) -> None:
    saved = case.save()
    del case.environ["KEYSTORE_PASSWORD"]
    with pytest.raises(KdeclareError) as problem:
        case.apply(saved)
    assert problem.value.exit_code is ExitCode.STALE
    assert case.overrides() == {}


def test_secret_can_come_from_file(case: Case) -> None:
    (case.folder / "password.yaml").write_text(OLD)
    case.declare("${file.password.yaml}")
    assert case.apply(case.save()).complete
    assert case.overrides()[KEY] == OLD
    assert case.read_record().reference == "${file.password.yaml}"
    case.check_no_leaks()


def test_literal_secret_is_applied_with_warning_and_not_saved(case: Case) -> None:
    case.declare(OLD)
    plan = case.plan()
    assert [d.code for d in plan.diagnostics] == ["literal-secret"]
    with pytest.raises(KdeclareError) as problem:
        case.save()
    assert describe_error(problem) == (ExitCode.ERROR, ["literal-secret"])
    assert not (case.folder / "it.plan").exists()
    assert run_outcome(case.apply()).exit_code is ExitCode.OK
    assert case.overrides()[KEY] == OLD
    assert not case.plan().has_changes
    assert case.read_record().reference == "" or case.read_record().reference is None
    case.check_no_leaks()


def test_rollback_restores_secret_when_reference_still_resolves(case: Case) -> None:
    case.apply()
    case.declare("${env.NEXT}", NEXT=NEW)
    case.apply()
    assert case.overrides()[KEY] == NEW
    assert run_outcome(case.rollback()).exit_code is ExitCode.OK
    assert case.overrides()[KEY] == OLD
    assert case.read_record().reference == REFERENCE
    assert run_outcome(case.rollback()).exit_code is ExitCode.OK  # and that rollback was rolled back
    assert case.overrides()[KEY] == NEW
    case.check_no_leaks()


def test_rollback_reports_unavailable_earlier_secret_in_plan(case: Case) -> None:
    case.apply()
    case.declare(KEYSTORE_PASSWORD=NEW)  # the same reference: its earlier value is gone
    case.apply()
    before = len(case.outputs)
    result = case.rollback()
    assert [d.code for d in result.plan.diagnostics] == [IRREVERSIBLE]
    assert "The earlier secret is not available" in case.outputs[before]
    assert run_outcome(result).exit_code is ExitCode.PARTIAL
    assert case.overrides()[KEY] == NEW
    case.check_no_leaks()


def test_rollback_to_foreign_secret_is_irreversible(case: Case) -> None:
    case.cluster.set_overrides(BROKER, {KEY: "somebody-elses"})
    case.apply()
    result = case.rollback()
    assert [d.code for d in result.plan.diagnostics] == [IRREVERSIBLE]
    assert run_outcome(result).exit_code is ExitCode.PARTIAL
    assert case.overrides()[KEY] == OLD


def test_rollback_to_literal_secret_is_irreversible(case: Case) -> None:
    case.declare(OLD)
    case.apply()
    case.declare(KEYSTORE_PASSWORD=NEW)
    case.apply()
    result = case.rollback()
    assert [d.code for d in result.plan.diagnostics] == [IRREVERSIBLE]
    assert case.overrides()[KEY] == NEW
    case.check_no_leaks()


def test_rollback_of_secret_deletion_restores_available_secret(case: Case) -> None:
    case.apply()
    case.declare(None)
    case.apply()
    assert run_outcome(case.rollback()).exit_code is ExitCode.OK
    assert case.overrides()[KEY] == OLD
    case.check_no_leaks()


def test_broker_error_messages_do_not_leak_secret(case: Case) -> None:
    case.cluster.faults.fail(Fault("INVALID_REQUEST", "Invalid keystore."), item="BROKER/1", nth=2)
    case.apply()
    case.check_no_leaks()


CUSTOM = "my.plugin.token"


def test_plugin_key_hidden_by_cluster_is_a_secret(case: Case) -> None:
    """A plug-in's key: Kafka hides values of keys that it does not know."""
    case.cluster.set_overrides(BROKER, {CUSTOM: "somebody-elses"})
    case.declare(key=CUSTOM)
    plan = case.plan()
    assert not plan.has_errors
    case.apply(case.save())
    assert case.overrides()[CUSTOM] == OLD
    assert not case.plan().has_changes
    case.check_no_leaks()


def test_literal_for_plugin_secret_is_applied_and_not_saved(case: Case) -> None:
    case.cluster.set_overrides(BROKER, {CUSTOM: "somebody-elses"})
    case.declare(OLD, key=CUSTOM)
    with pytest.raises(KdeclareError) as problem:
        case.save()
    assert describe_error(problem) == (ExitCode.ERROR, ["literal-secret"])
    assert run_outcome(case.apply()).exit_code is ExitCode.OK
    assert case.overrides()[CUSTOM] == OLD
    assert not case.plan().has_changes
    case.check_no_leaks()


@pytest.mark.parametrize("value", [REFERENCE, OLD, [OLD, "other"]])
def test_plugin_key_set_on_another_broker_is_a_secret(case: Case, value: str | list[str]) -> None:
    """The key is in use on another broker, so the cluster knows it and hides it everywhere."""
    case.cluster.set_overrides(broker_resource(2), {CUSTOM: "somebody-elses"})
    case.declare(value, key=CUSTOM)
    plan = case.plan()
    assert not plan.has_errors
    assert [d.code for d in plan.diagnostics] == ([] if value == REFERENCE else ["literal-secret"])
    assert run_outcome(case.apply()).exit_code is ExitCode.OK
    assert case.overrides()[CUSTOM] == (f"{OLD},other" if isinstance(value, list) else OLD)
    assert not case.plan().has_changes
    case.check_no_leaks()
