"""Hashes of secrets: their salts, their keys, and the migration of earlier versions."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.resources.kind import narrow
from kdeclare.core.secrets import secret_hashes
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_hashes import SecretHasher, can_compare, hash_like, is_hash_of, read_keys
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.engine.planning.secret_digests import collect_secret_values, has_secrets, hash_secrets
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.manifests.project import open_project
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import PASSWORD, Keystore
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import run_outcome
from tests.connections import make_connector
from tests.engine.test_connect_workers import OLD as CERTIFICATE
from tests.engine.test_connect_workers import PLACEHOLDER, declare_secret, declare_workers, dump_everything
from tests.engine.test_connect_workers import workers as workers  # a fixture
from tests.engine.test_connect_workers import world as world  # a fixture
from tests.engine.test_secrets import KEY, NEW, OLD, Case, describe_error
from tests.engine.test_secrets import case as case  # a fixture
from tests.engine.world import World, desired, nothing, topic
from tests.jsontypes import dump_args

FIRST, SECOND = "first-key-of-the-team", "second-key-of-the-team"
OF_0_1 = "pbkdf2$9cb5b986bb78112b$"


def hash_as_in_0_1(value: str) -> str:
    """With a salt that depends only on the resource and the key."""
    found = hash_like(f"{OF_0_1}00", value)
    assert found is not None
    return found


def store_hash(case: Case, known: str) -> None:
    """Replace the hash in the state, which has no checksum afterwards."""
    file = case.folder / "state" / "state.json"
    text = re.sub(r'  "checksum": .*\n', "", file.read_text())
    file.write_text(text.replace(case.read_record().secret, known))
    assert case.read_record().secret == known


# Salts.


def test_equal_secrets_of_two_projects_have_different_hashes(case: Case) -> None:
    planned = read_planned_hash(case)
    project = json.loads((case.folder / "kdeclare.yaml").read_text())
    project["metadata"]["name"] = "another"
    (case.folder / "kdeclare.yaml").write_text(json.dumps(project))
    assert read_planned_hash(case) != planned


def test_equal_secrets_of_two_clusters_have_different_hashes(case: Case) -> None:
    planned = read_planned_hash(case)
    case.cluster = MemoryCluster(cluster_id="another")
    assert read_planned_hash(case) != planned


def read_planned_hash(case: Case) -> str:
    (op,) = case.plan().operations
    (item,) = [item for item in dump_args(op)["ops"] if item["key"] == KEY]
    assert is_hash_of(item["value"]["secret"], OLD)
    found: str = item["value"]["secret"]
    return found


def test_equal_plans_have_equal_hashes(case: Case) -> None:
    assert read_planned_hash(case) == read_planned_hash(case)


def test_hash_from_before_first_state_is_kept(case: Case) -> None:
    planned = read_planned_hash(case)
    case.apply()
    assert case.read_record().secret == planned
    plan = case.plan()
    assert not plan.has_changes
    assert not plan.ownership


def test_new_hashes_are_salted_with_lineage() -> None:
    one, two = World(), World()
    hashes = set()
    for here in (one, two):
        here.apply(topic("t", partitions=1))
        state = here.store.read()
        assert state is not None
        hashes.add(SecretHasher(state.lineage).make_hash("BrokerConfig/1", KEY, OLD))
    assert len(hashes) == 2


def test_equal_values_of_different_keys_or_resources_hash_differently() -> None:
    hasher = SecretHasher("lineage")
    places = (("BrokerConfig/1", "a"), ("BrokerConfig/1", "b"), ("BrokerConfig/2", "a"))
    assert len({hasher.make_hash(*place, OLD) for place in places}) == 3


# Hashes of 0.1.


def test_hash_of_0_1_is_replaced_by_next_apply_without_change(case: Case) -> None:
    case.apply()
    store_hash(case, hash_as_in_0_1(OLD))
    plan = case.plan()
    assert not plan.has_changes
    assert case.read_record().secret.startswith(OF_0_1), "planning changes nothing"
    case.apply()
    assert not case.read_record().secret.startswith(OF_0_1)
    assert is_hash_of(case.read_record().secret, OLD)
    assert not case.plan().ownership


def test_value_differing_from_hash_of_0_1_is_a_change(case: Case) -> None:
    case.apply()
    store_hash(case, hash_as_in_0_1(OLD))
    case.declare(KEYSTORE_PASSWORD=NEW)
    assert [f.path for f in case.plan().changes[0].fields] == [f"configs.{KEY}"]
    case.apply()
    assert case.overrides()[KEY] == NEW


def test_rollback_restores_secret_hashed_in_0_1(case: Case) -> None:
    case.apply()
    store_hash(case, hash_as_in_0_1(OLD))
    case.declare("${env.NEXT}", NEXT=NEW)
    case.apply()
    assert run_outcome(case.rollback()).exit_code is ExitCode.OK
    assert case.overrides()[KEY] == OLD
    case.check_no_leaks()


# Keys.


def test_hashes_are_keyed_when_key_is_set(case: Case) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply(case.save())
    assert case.read_record().secret.startswith("hmac$")
    assert case.overrides()[KEY] == OLD
    assert not case.plan().ownership
    assert FIRST not in str([p.read_text() for p in case.folder.rglob("*") if p.is_file()])
    assert FIRST not in SCRUBBER.scrub(f"the key is {FIRST}")


def test_plan_apply_and_rollback_fail_without_key(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    case.declare("${env.NEXT}", NEXT=NEW)
    case.apply()
    switch_keys(case, monkeypatch)
    for act in (case.plan, case.apply, case.rollback):
        with pytest.raises(KdeclareError) as problem:
            act()
        assert describe_error(problem) == (ExitCode.ERROR, ["secret-key-missing"])
    assert "KDECLARE_SECRET_KEY" in problem.value.diagnostics[0].hint


def switch_keys(case: Case, monkeypatch: pytest.MonkeyPatch, **environ: str) -> None:
    """Simulate another process with other keys."""
    for name in ("KDECLARE_SECRET_KEY", "KDECLARE_OLD_SECRET_KEY"):
        case.environ.pop(name, None)
    monkeypatch.setattr(secret_hashes, "_KEYS", type(secret_hashes._KEYS)())
    case.environ.update(environ)


def test_saved_plan_requires_its_key(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    saved = case.save()
    switch_keys(case, monkeypatch)
    with pytest.raises(KdeclareError) as problem:
        case.apply(saved)
    assert describe_error(problem) == (ExitCode.ERROR, ["secret-key-missing"])
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND)
    with pytest.raises(KdeclareError) as problem:
        case.apply(saved)
    assert describe_error(problem) == (ExitCode.STALE, ["secret-key-changed"])
    assert case.overrides() == {}
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=FIRST)
    assert case.apply(saved).complete


def test_key_is_replaced_without_change_when_old_key_is_set(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    first = case.read_record().secret
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND, KDECLARE_OLD_SECRET_KEY=FIRST)
    assert not case.plan().has_changes
    case.apply()
    assert case.read_record().secret.startswith("hmac$")
    assert case.read_record().secret.split("$")[1] != first.split("$")[1]
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND)
    assert not case.plan().has_changes
    assert not case.plan().ownership


def test_secret_is_set_again_when_old_key_is_lost(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND)
    assert [f.path for f in case.plan().changes[0].fields] == [f"configs.{KEY}"]
    case.apply()
    assert not case.plan().has_changes


def test_project_can_return_to_unkeyed_hashes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    switch_keys(case, monkeypatch, KDECLARE_OLD_SECRET_KEY=FIRST)
    assert not case.plan().has_changes
    case.apply()
    assert case.read_record().secret.startswith("pbkdf2$")


def test_rollback_of_key_replacement_keeps_new_hash(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND, KDECLARE_OLD_SECRET_KEY=FIRST)
    case.apply()
    replaced = case.read_record()
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND)
    assert run_outcome(case.rollback()).exit_code is ExitCode.OK
    assert case.read_record() == replaced
    assert not case.plan().has_changes


def test_rollback_with_another_key_reports_irreversible_secret(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    case.declare("${env.NEXT}", NEXT=NEW)
    case.apply()
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=SECOND)
    result = case.rollback()
    (found,) = [d for d in result.plan.diagnostics if d.code == "irreversible"]
    assert "was computed with a different key than the one in" in found.detail
    assert "KDECLARE_OLD_SECRET_KEY" in found.hint


def test_undeclared_secret_requires_key(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    case.declare(None)
    switch_keys(case, monkeypatch)
    with pytest.raises(KdeclareError) as problem:
        case.plan()
    assert describe_error(problem) == (ExitCode.ERROR, ["secret-key-missing"])


def test_trailing_newline_of_key_is_ignored(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.apply()
    switch_keys(case, monkeypatch, KDECLARE_SECRET_KEY=f"{FIRST}\n")
    assert not case.plan().has_changes


def test_key_can_hold_any_bytes(case: Case) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = os.fsdecode(bytes(range(128, 160)))
    case.apply()
    assert not case.plan().has_changes


def test_weak_key_is_refused(case: Case) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = "fifteen-letters"
    with pytest.raises(KdeclareError, match="KDECLARE_SECRET_KEY has 15 characters") as problem:
        case.plan()
    assert describe_error(problem) == (ExitCode.ERROR, ["weak-key"])


def test_key_is_never_resolved_in_manifest(case: Case) -> None:
    case.environ["KDECLARE_SECRET_KEY"] = FIRST
    case.declare("${env.KDECLARE_SECRET_KEY}")
    with pytest.raises(KdeclareError) as problem:
        case.plan()
    assert describe_error(problem) == (ExitCode.ERROR, ["reference-not-allowed"])
    assert "is a key for hashing secrets. kdeclare never resolves references to it" in str(problem.value)


def test_workspace_loads_keys_without_planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = _hash_with_key(FIRST)
    environ = {"KDECLARE_SECRET_KEY": FIRST}
    monkeypatch.setattr(secret_hashes, "_KEYS", type(secret_hashes._KEYS)())
    Workspace(open_project(None, None, environ), MemoryStore(), "x", make_connector(MemoryCluster()), environ)
    assert can_compare(known)
    assert is_hash_of(known, OLD)
    assert not is_hash_of(known, NEW)


def _hash_with_key(key: str) -> str:
    return SecretHasher("x", read_keys({"KDECLARE_SECRET_KEY": key})).make_hash("r", "k", OLD)


# Workers, whose overrides are returned in plain text.


@pytest.mark.parametrize("key", [None, FIRST])
def test_worker_password_is_planned_changed_and_rolled_back(
    world: World, workers: MemoryWorkers, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is not None:
        world.key_id = read_keys({"KDECLARE_SECRET_KEY": key})
    world.secrets.values = {"${env.ONE}": "s3cret-one", "${env.TWO}": "s3cret-two"}
    one, two = (
        declare_secret(workers, "s3cret-one", "${env.ONE}"),
        declare_secret(workers, "s3cret-two", "${env.TWO}"),
    )
    workers.files["/old"] = Keystore(CERTIFICATE)  # with any password
    assert world.apply(one).complete
    assert not world.plan(one).has_changes
    assert world.apply(two).complete
    assert workers.current()[PASSWORD] == "s3cret-two"
    assert world.rollback().complete
    assert workers.current()[PASSWORD] == "s3cret-one"
    assert world.rollback().complete
    assert workers.current()[PASSWORD] == "s3cret-two"
    assert "s3cret" not in dump_everything(world)
    if key is not None:
        assert "pbkdf2" not in dump_everything(world)


def test_worker_password_is_not_compared_without_key(
    world: World, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.key_id = read_keys({"KDECLARE_SECRET_KEY": FIRST})
    world.secrets.values = {"${env.ONE}": "s3cret-one"}
    workers.files["/old"] = Keystore(CERTIFICATE)  # with any password
    world.apply(declare_secret(workers, "s3cret-one", "${env.ONE}"))
    monkeypatch.setattr(secret_hashes, "_KEYS", type(secret_hashes._KEYS)())
    with pytest.raises(KdeclareError) as problem:
        world.rollback()
    assert [d.code for d in problem.value.diagnostics] == ["secret-key-missing"]


def test_worker_password_can_be_replaced_after_key_loss(
    world: World, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.key_id = read_keys({"KDECLARE_SECRET_KEY": FIRST})
    world.secrets.values = {"${env.ONE}": "s3cret-one", "${env.TWO}": "s3cret-two"}
    workers.files["/old"] = Keystore(CERTIFICATE)
    world.apply(declare_secret(workers, "s3cret-one", "${env.ONE}"))
    monkeypatch.setattr(secret_hashes, "_KEYS", type(secret_hashes._KEYS)())
    world.key_id = read_keys({"KDECLARE_SECRET_KEY": SECOND})
    assert world.apply(declare_secret(workers, "s3cret-two", "${env.TWO}")).complete
    assert workers.current()[PASSWORD] == "s3cret-two"
    assert not world.plan(declare_secret(workers, "s3cret-two", "${env.TWO}")).has_changes
    assert world.apply(declare_workers(workers)).complete


def test_worker_password_hashed_in_0_1_has_not_drifted(world: World, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(CERTIFICATE)  # with any password
    world.secrets.values = {"${env.ONE}": "s3cret-one"}
    one = declare_secret(workers, "s3cret-one", "${env.ONE}")
    world.apply(one)
    rewrite_hash(world, hash_as_in_0_1("s3cret-one"))
    assert not world.plan(one).has_changes
    assert world.apply(declare_workers(workers)).complete
    assert workers.current()[PASSWORD] == PLACEHOLDER
    assert world.rollback().complete
    assert workers.current()[PASSWORD] == "s3cret-one"


def rewrite_hash(world: World, known: str) -> None:
    """Replace the hash of the workers' password in the state."""
    state = world.store.read()
    assert state is not None
    resources = json.loads(json.dumps(world.owned()))
    resources["ConnectWorkerConfig/eu"]["configs"][PASSWORD]["secret"] = known
    with world.store.lock("test"):
        world.store.write(replace(state, serial=state.serial + 1, resources=resources))


# Sealing.


def test_hash_secrets_reports_progress() -> None:
    reports: list[tuple[str, int, int]] = []
    items = [desired("BrokerConfig", str(n), configs={KEY: f"password-{n}"}) for n in range(200)]
    found = hash_secrets(
        items,
        {},
        SecretHasher("x"),
        lambda what, done, total, moves=None: reports.append((what, done, total)),
    )
    assert [item.id for item in found] == [item.id for item in items]
    assert reports[0] == ("Hashing secrets", 0, 200)
    assert len(reports) == 10


@given(st.lists(st.tuples(st.integers(1, 3), st.text(max_size=5)), unique_by=lambda pair: pair[0]))
def test_hash_secrets_gives_each_secret_its_own_hash(pairs: list[tuple[int, str]]) -> None:
    items = [topic("t"), *(desired("BrokerConfig", str(n), configs={KEY: value}) for n, value in pairs)]
    sealed = hash_secrets(items, {}, SecretHasher("x"), nothing)
    assert has_secrets(items) == bool(pairs)
    assert sealed[0] is items[0]
    for item, (_, value) in zip(sealed[1:], pairs, strict=True):
        sealed_value = narrow(item.get_body(ConfigsBody).configs[KEY], Secret)
        assert is_hash_of(sealed_value.digest, value)
    assert sorted(collect_secret_values(sealed).values()) == sorted(value for _, value in pairs)
