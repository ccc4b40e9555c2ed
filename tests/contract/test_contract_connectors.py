"""Connectors through the `ConnectCluster` protocol: states, tasks, validation, offsets and refusals."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client import connectors_port as port
from kdeclare.providers.connect.client.connectors_port import ConnectorOffset, TargetState, find_class
from tests.connect_beds import SINK, SOURCE, AnyConnectBed

RUNNING, PAUSED, STOPPED = TargetState.RUNNING, TargetState.PAUSED, TargetState.STOPPED


def expect_refusal(code: str, send: Callable[[], object]) -> Fault:
    """Return the fault of a request that must be refused, without an effect."""
    with pytest.raises(Fault) as caught:
        send()
    assert (caught.value.error, caught.value.kind) == (code, FaultKind.REFUSED), caught.value
    return caught.value


def test_cluster_identifies_itself(connect_bed: AnyConnectBed) -> None:
    info = connect_bed.cluster.identify()
    assert info.version.startswith("4.")
    assert info.kafka_cluster_id


def test_file_connectors_are_installed(connect_bed: AnyConnectBed) -> None:
    plugins = connect_bed.cluster.list_plugins()
    by_name = {plugin.name: plugin for plugin in plugins}
    for alias, type_ in ((SOURCE, "source"), (SINK, "sink")):
        name = find_class(plugins, alias)
        assert name == find_class(plugins, f"{alias}Connector")
        assert name is not None
        assert by_name[name].type == type_


# creation, listing, deletion


def test_created_connector_gets_its_status_and_tasks_later(connect_bed: AnyConnectBed) -> None:
    name, config = connect_bed.name(), connect_bed.new_sink(**{"tasks.max": "2"})
    connect_bed.cluster.create_connector(name, config)
    at_once = connect_bed.cluster.list_connectors()[name]
    assert at_once.config == {**config, "name": name}
    assert at_once.state in ("", "UNASSIGNED", "RUNNING")
    later = connect_bed.expect_states(name, "RUNNING", "RUNNING", "RUNNING")
    assert later.type == "sink"
    assert later.worker_id
    assert [task.id for task in later.tasks] == [0, 1]
    assert connect_bed.cluster.list_connectors()[name] == later


def test_source_creates_fewer_tasks_than_it_may(connect_bed: AnyConnectBed) -> None:
    name = connect_bed.create(connect_bed.new_source(**{"tasks.max": "3"}))
    assert connect_bed.describe(name).type == "source"


def test_existing_connector_is_not_created_again(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_sink()
    name = connect_bed.create(config)
    for tasks in ("1", "5"):
        other = {**config, "tasks.max": tasks}
        expect_refusal(port.CONNECTOR_EXISTS, partial(connect_bed.cluster.create_connector, name, other))
    assert connect_bed.describe(name).config == {**config, "name": name}


def test_deleted_connector_is_gone(connect_bed: AnyConnectBed) -> None:
    name = connect_bed.create(connect_bed.new_sink())
    connect_bed.cluster.delete_connector(name)
    assert connect_bed.cluster.describe_connector(name) is None
    assert name not in connect_bed.cluster.list_connectors()
    expect_refusal(port.CONNECTOR_MISSING, lambda: connect_bed.cluster.delete_connector(name))


@pytest.mark.parametrize(
    "send",
    [
        lambda bed, name: bed.cluster.set_state(name, PAUSED),
        lambda bed, name: bed.cluster.set_state(name, STOPPED),
        lambda bed, name: bed.cluster.set_state(name, RUNNING),
        lambda bed, name: bed.cluster.restart_connector(name, include_tasks=True, only_failed=True),
        lambda bed, name: bed.cluster.restart_connector(name, include_tasks=False, only_failed=False),
        lambda bed, name: bed.cluster.delete_connector(name),
        lambda bed, name: bed.cluster.read_offsets(name),
        lambda bed, name: bed.cluster.delete_offsets(name),
        lambda bed, name: bed.cluster.alter_offsets(name, (ConnectorOffset({"filename": "a"}, None),)),
    ],
)
def test_missing_connector_is_refused(
    connect_bed: AnyConnectBed, send: Callable[[AnyConnectBed, str], object]
) -> None:
    expect_refusal(port.CONNECTOR_MISSING, lambda: send(connect_bed, connect_bed.name()))


@pytest.mark.parametrize("suffix", [" b", "ü", "a..b", "?&=+#", ":,;"])
def test_names_are_free(connect_bed: AnyConnectBed, suffix: str) -> None:
    name = connect_bed.create(connect_bed.new_sink(), name=connect_bed.name(suffix))
    assert connect_bed.describe(name).name == name
    assert connect_bed.cluster.list_connectors()[name].config["name"] == name


# configs


def test_config_is_replaced_as_a_whole(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_source(**{"batch.size": "10"})
    name = connect_bed.create(config)
    replaced = {key: value for key, value in config.items() if key != "batch.size"}
    for _ in range(2):
        connect_bed.cluster.replace_config(name, replaced)
        assert connect_bed.describe(name).config == {**replaced, "name": name}
    connect_bed.expect_states(name, "RUNNING", "RUNNING")


def test_replaced_config_tells_whether_the_connector_existed(connect_bed: AnyConnectBed) -> None:
    name, config, created = connect_bed.name(), connect_bed.new_sink(), list[bool]()
    for _ in range(2):
        created.append(connect_bed.cluster.replace_config(name, config))
    assert created == [True, False]


def test_more_tasks_follow_from_the_config(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_sink()
    name = connect_bed.create(config)
    connect_bed.cluster.replace_config(name, {**config, "tasks.max": "3"})
    connect_bed.expect_states(name, "RUNNING", "RUNNING", "RUNNING", "RUNNING")


def test_source_can_become_a_sink(connect_bed: AnyConnectBed) -> None:
    name = connect_bed.create(connect_bed.new_source())
    connect_bed.cluster.replace_config(name, connect_bed.new_sink())
    assert connect_bed.expect_states(name, "RUNNING", "RUNNING").type == "sink"


def test_invalid_config_is_refused_with_all_errors(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_source()
    name, new_name = connect_bed.create(config), connect_bed.name()
    invalid = {"connector.class": SOURCE, "tasks.max": "0"}
    for send in (
        lambda: connect_bed.cluster.replace_config(name, invalid),
        lambda: connect_bed.cluster.create_connector(new_name, invalid),
    ):
        message = expect_refusal(port.INVALID_CONNECTOR, send).message
        assert "tasks.max" in message
        assert "topic" in message
    assert connect_bed.describe(name).config == {**config, "name": name}
    assert connect_bed.cluster.describe_connector(new_name) is None


@pytest.mark.parametrize("class_", [None, "", "NoSuchClass"])
def test_class_must_be_installed(connect_bed: AnyConnectBed, class_: str | None) -> None:
    name = connect_bed.name()
    config = {"topics": "a", **({} if class_ is None else {"connector.class": class_})}
    for send in (
        lambda: connect_bed.cluster.create_connector(name, config),
        lambda: connect_bed.cluster.replace_config(name, config),
        lambda: connect_bed.cluster.validate_config(name, config),
    ):
        expect_refusal(port.INVALID_CONNECTOR, send)
    assert connect_bed.cluster.describe_connector(name) is None


# validation


def test_validation_reports_errors_by_key_and_changes_nothing(connect_bed: AnyConnectBed) -> None:
    name = connect_bed.name()
    invalid = {"connector.class": SOURCE, "tasks.max": "0"}
    validation = connect_bed.cluster.validate_config(name, invalid)
    assert validation.errors.keys() == {"tasks.max", "topic"}
    assert "at least 1" in validation.errors["tasks.max"][0]
    assert connect_bed.cluster.describe_connector(name) is None


def test_validation_passes_unknown_keys_and_defines_known_ones(connect_bed: AnyConnectBed) -> None:
    config = {**connect_bed.new_sink(), "fiel": "x"}
    validation = connect_bed.cluster.validate_config(connect_bed.name(), config)
    assert validation.errors == {}
    assert "fiel" not in validation.definitions
    types = {key: one.type for key, one in validation.definitions.items()}
    assert {key: types[key] for key in ("name", "connector.class", "tasks.max", "topics", "file")} == {
        "name": "STRING",
        "connector.class": "STRING",
        "tasks.max": "INT",
        "topics": "LIST",
        "file": "STRING",
    }


def test_sink_needs_topics_or_a_pattern(connect_bed: AnyConnectBed) -> None:
    config = {"connector.class": SINK}
    errors = connect_bed.cluster.validate_config(connect_bed.name(), config).errors
    assert errors.keys() == {"topics", "topics.regex"}
    pattern = {**config, "topics.regex": "a.*"}
    assert connect_bed.cluster.validate_config(connect_bed.name(), pattern).errors == {}


def test_sink_cannot_have_topics_and_a_pattern(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_sink(**{"topics.regex": "a.*"})
    errors = connect_bed.cluster.validate_config(connect_bed.name(), config).errors
    assert errors.keys() == {"topics", "topics.regex"}


def test_secret_override_of_a_client_has_type_password(connect_bed: AnyConnectBed) -> None:
    key = "consumer.override.sasl.jaas.config"
    config = connect_bed.new_sink()
    assert key not in connect_bed.cluster.validate_config(connect_bed.name(), config).definitions
    validation = connect_bed.cluster.validate_config(connect_bed.name(), {**config, key: "abc"})
    assert validation.definitions[key].type == "PASSWORD"


def test_placeholder_without_provider_is_an_ordinary_value(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_source(file="${nope:x:y}")
    name = connect_bed.create(config)
    assert connect_bed.describe(name).config["file"] == "${nope:x:y}"


SECRET = "s3cret-of-the-worker"


def test_resolved_placeholder_appears_nowhere(connect_bed: AnyConnectBed) -> None:
    placeholder = connect_bed.add_secret(SECRET)
    name, config = connect_bed.name(), {**connect_bed.new_sink(), "tasks.max": placeholder}
    validation = connect_bed.cluster.validate_config(name, config)
    assert placeholder in validation.errors["tasks.max"][0]
    assert SECRET not in repr(validation)
    for send in (
        lambda: connect_bed.cluster.create_connector(name, config),
        lambda: connect_bed.cluster.replace_config(name, config),
    ):
        fault = expect_refusal(port.INVALID_CONNECTOR, send)
        assert placeholder in fault.message
        assert SECRET not in str(fault)


def test_placeholder_stays_in_the_config(connect_bed: AnyConnectBed) -> None:
    file = str(connect_bed.folder / "placed.txt")
    config = connect_bed.new_sink(file=connect_bed.add_secret(file))
    name = connect_bed.create(config)
    assert connect_bed.describe(name).config == {**config, "name": name}


def test_placeholder_that_cannot_be_resolved_is_refused(connect_bed: AnyConnectBed) -> None:
    placeholder = connect_bed.add_unresolvable()
    name, config = connect_bed.name(), {**connect_bed.new_sink(), "file": placeholder}
    for send in (
        lambda: connect_bed.cluster.create_connector(name, config),
        lambda: connect_bed.cluster.replace_config(name, config),
        lambda: connect_bed.cluster.validate_config(name, config),
    ):
        expect_refusal(port.INVALID_CONNECTOR, send)
    assert connect_bed.cluster.describe_connector(name) is None


# states


@pytest.mark.parametrize("state", [PAUSED, STOPPED])
def test_connector_is_created_without_running(connect_bed: AnyConnectBed, state: TargetState) -> None:
    name = connect_bed.create(connect_bed.new_sink(), state)
    connect_bed.cluster.set_state(name, RUNNING)
    connect_bed.expect_states(name, "RUNNING", "RUNNING")


def test_paused_connector_keeps_its_tasks_and_a_stopped_one_loses_them(connect_bed: AnyConnectBed) -> None:
    name = connect_bed.create(connect_bed.new_sink())
    for state, tasks in ((PAUSED, ["PAUSED"]), (RUNNING, ["RUNNING"]), (STOPPED, []), (RUNNING, ["RUNNING"])):
        for _ in range(2):  # the second request has no effect
            connect_bed.cluster.set_state(name, state)
        connect_bed.expect_states(name, state.value, *tasks)


@pytest.mark.parametrize(("state", "tasks"), [(PAUSED, ["PAUSED"]), (STOPPED, [])])
def test_state_survives_another_config_but_not_a_deletion(
    connect_bed: AnyConnectBed, state: TargetState, tasks: list[str]
) -> None:
    config = connect_bed.new_source()
    name = connect_bed.create(config)
    connect_bed.cluster.set_state(name, state)
    connect_bed.expect_states(name, state.value, *tasks)
    connect_bed.cluster.replace_config(name, {**config, "batch.size": "5"})
    connect_bed.expect_states(name, state.value, *tasks)
    connect_bed.cluster.delete_connector(name)
    connect_bed.create(config, name=name)


def test_source_without_topic_runs_and_cannot_be_paused(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_source(topic=f"missing-{connect_bed.name()}")
    Path(config["file"]).write_text("a line\n", encoding="utf-8")
    name = connect_bed.create(config)
    connect_bed.cluster.set_state(name, PAUSED)
    connect_bed.expect_states(name, "PAUSED", "RUNNING")


def test_task_fails_with_one_line_until_it_is_restarted(connect_bed: AnyConnectBed) -> None:
    file = str(connect_bed.folder / "later" / "out.txt")
    connect_bed.forbid_folder(file)
    name = connect_bed.name()
    config = connect_bed.new_sink(file=file)
    connect_bed.cluster.create_connector(name, config)
    task = connect_bed.expect_states(name, "RUNNING", "FAILED").tasks[0]
    assert f"Couldn't find or create file '{file}'" in task.trace
    assert "\n" not in task.trace
    connect_bed.allow_folder(file)
    connect_bed.cluster.restart_connector(name, include_tasks=False, only_failed=False)
    connect_bed.expect_states(name, "RUNNING", "FAILED")
    connect_bed.cluster.restart_connector(name, include_tasks=True, only_failed=True)
    assert connect_bed.expect_states(name, "RUNNING", "RUNNING").tasks[0].trace == ""


# offsets


def test_offsets_change_only_while_the_connector_is_stopped(connect_bed: AnyConnectBed) -> None:
    name = connect_bed.create(connect_bed.new_source())
    other = ConnectorOffset({"filename": "other"}, {"position": 3})
    for state in (RUNNING, PAUSED):
        connect_bed.cluster.set_state(name, state)
        expect_refusal(port.NOT_STOPPED, lambda: connect_bed.cluster.delete_offsets(name))
        expect_refusal(port.NOT_STOPPED, lambda: connect_bed.cluster.alter_offsets(name, (other,)))
    connect_bed.cluster.set_state(name, STOPPED)
    connect_bed.expect_states(name, "STOPPED")
    connect_bed.cluster.alter_offsets(name, (other,))
    assert connect_bed.cluster.read_offsets(name) == (other,)
    reset = ConnectorOffset(other.partition, None)
    connect_bed.cluster.alter_offsets(name, (reset,))
    assert connect_bed.cluster.read_offsets(name) == ()
    for _ in range(2):  # the second time, there are none
        connect_bed.cluster.delete_offsets(name)


def test_offsets_of_a_sink_name_topics_and_partitions(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_sink()
    name = connect_bed.create(config, STOPPED)
    offset = ConnectorOffset({"kafka_topic": config["topics"], "kafka_partition": 0}, {"kafka_offset": 0})
    connect_bed.cluster.alter_offsets(name, (offset,))
    assert connect_bed.cluster.read_offsets(name) == (offset,)
    connect_bed.cluster.delete_offsets(name)
    assert connect_bed.cluster.read_offsets(name) == ()


def test_offsets_survive_the_deletion_of_their_connector(connect_bed: AnyConnectBed) -> None:
    config = connect_bed.new_source()
    name = connect_bed.create(config)
    offset = connect_bed.commit_offset(name)
    connect_bed.cluster.delete_connector(name)
    connect_bed.cluster.create_connector(name, config, STOPPED)
    assert connect_bed.cluster.read_offsets(name) == (offset,)
    connect_bed.cluster.delete_offsets(name)
    # The partition of a deleted offset can still be listed, without an offset.
    assert not [found for found in connect_bed.cluster.read_offsets(name) if found.offset is not None]
