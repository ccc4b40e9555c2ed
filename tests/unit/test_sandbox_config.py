"""Settings of a sandbox, and the resulting server.properties."""

from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import security
from kdeclare.sandbox.broker_properties import broker_properties, render
from kdeclare.sandbox.launch import generate_id, render_meta_properties
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.settings import SandboxSettings, validate_settings


def test_ports_and_racks_follow_from_settings() -> None:
    settings = SandboxSettings(Path("/s"), brokers=5, racks=2, port=20000)
    assert [settings.rack(i) for i in settings.broker_ids] == [
        "rack-a",
        "rack-b",
        "rack-a",
        "rack-b",
        "rack-a",
    ]
    assert settings.ports(1) == (20000, 20100)
    assert settings.ports(5) == (20004,)
    assert settings.bootstrap.startswith("127.0.0.1:20000,127.0.0.1:20001,")


@pytest.mark.parametrize(("brokers", "controllers"), [(1, [1]), (2, [1]), (3, [1, 2, 3]), (7, [1, 2, 3])])
def test_number_of_controllers_is_odd(brokers: int, controllers: list[int]) -> None:
    assert list(SandboxSettings(Path("/s"), brokers, 1).controller_ids) == controllers


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SandboxSettings(Path("/s"), brokers=0), "1 to 20 brokers, not 0"),
        (SandboxSettings(Path("/s"), brokers=21), "1 to 20 brokers, not 21"),
        (SandboxSettings(Path("/s"), brokers=2, racks=3), "not 3"),
        (SandboxSettings(Path("/s"), racks=0), "not 0"),
        (SandboxSettings(Path("/s"), port=80), "needs ports 80 to 182"),
        (SandboxSettings(Path("/s"), port=65500), "65602"),
        (SandboxSettings(Path("/a,b")), "comma"),
    ],
)
def test_validate_settings_rejects_impossible_settings(settings: SandboxSettings, message: str) -> None:
    with pytest.raises(KdeclareError, match=message) as failed:
        validate_settings(settings)
    assert failed.value.diagnostics[0].hint


def test_validate_settings_accepts_defaults() -> None:
    validate_settings(SandboxSettings(Path("/s")))


def test_secure_broker_has_listener_for_every_protocol() -> None:
    settings = SandboxSettings(Path("/s"), secure=True)
    assert settings.ports(2) == (19093, 19113, 19153, 19173, 19193)
    assert settings.get_unauthenticated_port(2) == 19173
    made = broker_properties(settings, 2, Path("/s/data"))
    assert made["listeners"] == (
        "SASL_SSL://127.0.0.1:19093,SSL://127.0.0.1:19113,SASL_PLAINTEXT://127.0.0.1:19153,"
        "PLAINTEXT://127.0.0.1:19173,CONTROLLER://127.0.0.1:19193"
    )
    assert made["listener.security.protocol.map"].endswith(",CONTROLLER:SSL")
    assert made["inter.broker.listener.name"] == "SSL"


def test_listener_ports_of_most_brokers_are_distinct() -> None:
    settings = SandboxSettings(Path("/s"), brokers=20, connect_workers=10, secure=True)
    validate_settings(settings)
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    ports += map(settings.get_worker_port, settings.worker_ids)
    assert len(set(ports)) == len(ports) == 20 * 4 + 3 + 10


def test_client_properties_match_broker_properties() -> None:
    settings = SandboxSettings(Path("/s"), secure=True)
    files = resolve_layout(Path("/s")).security
    told = " ".join(security.build_format_arguments())
    for user in (*security.USERS, security.WORKER):
        made = security.build_client_properties(files, settings, user)
        assert made["sasl.mechanism"] in security.broker_properties(files)["sasl.enabled.mechanisms"]
        assert f'username="{user}" password="{security.get_password(user)}"' in made["sasl.jaas.config"]
        assert f"{made['sasl.mechanism']}=[name={user},password={security.get_password(user)}]" in told


def test_combined_broker_listens_on_loopback() -> None:
    made = broker_properties(SandboxSettings(Path("/s")), 2, Path("/s/data"))
    assert made["process.roles"] == "broker,controller"
    assert made["listeners"] == "PLAINTEXT://127.0.0.1:19093,CONTROLLER://127.0.0.1:19193"
    assert made["controller.quorum.voters"] == "1@127.0.0.1:19192,2@127.0.0.1:19193,3@127.0.0.1:19194"
    assert made["broker.rack"] == "rack-b"
    assert made["auto.create.topics.enable"] == "false"


def test_fourth_broker_is_not_controller() -> None:
    made = broker_properties(SandboxSettings(Path("/s"), brokers=4), 4, Path("/s/data"))
    assert made["process.roles"] == "broker"
    assert made["listeners"] == "PLAINTEXT://127.0.0.1:19095"


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "2"), (3, "3", "2")])
def test_internal_topic_replication_follows_number_of_brokers(
    brokers: int, copies: str, in_sync: str
) -> None:
    made = broker_properties(SandboxSettings(Path("/s"), brokers, 1), 1, Path("/s/data"))
    assert made["offsets.topic.replication.factor"] == copies
    assert made["transaction.state.log.replication.factor"] == copies
    assert made["transaction.state.log.min.isr"] == in_sync


def test_property_values_are_escaped_for_java() -> None:
    assert render({"a": "/ö/x y\\z=😀"}) == "a=/\\u00f6/x y\\\\z=\\ud83d\\ude00\n"
    assert render({"a": " b"}) == "a=\\ b\n"


def test_meta_properties_contain_node_and_directory_id() -> None:
    template = "#\n#Sat Nov 21\nnode.id=1\ndirectory.id=AAA\nversion=1\ncluster.id=abc\n"
    assert render_meta_properties(template, 3, "BBB") == (
        "#\n#Sat Nov 21\nnode.id=3\ndirectory.id=BBB\nversion=1\ncluster.id=abc\n"
    )


def test_generated_ids_have_format_of_kafka() -> None:
    ids = {generate_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(i) == 22 and not i.startswith("-") for i in ids)
