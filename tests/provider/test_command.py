"""A command of another provider: found, run, shown and undone as those of kdeclare's own."""

import json

from tests.unit.cli.command_line import CommandLine


def test_command_of_another_provider_changes_its_system(kdeclare: CommandLine) -> None:
    assert "Feature flags ad hoc: set." in kdeclare("--help").out
    ran = kdeclare("flag", "set", "dark-mode", "25", "--yes")
    assert ran.code == 0, ran.err
    assert "Flag/dark-mode" in ran.out
    assert "created; all clients follow" in ran.out
    done = kdeclare("flag", "set", "dark-mode", "50", "--yes", "--format", "json")
    document = json.loads(done.out)
    (item,) = document["results"]
    assert (item["result"], item["seen"]) == ("altered", {"rolling": False})
    assert kdeclare("rollback", "--yes").code == 0
    again = kdeclare("flag", "set", "dark-mode", "25", "--yes")
    assert "in order already" in again.out
    assert kdeclare("flag", "set", "dark-mode", "101").code == 64
