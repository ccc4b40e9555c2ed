"""The commands in docs/howto/move-between-projects.md print what the page shows."""

import shlex
import shutil
from pathlib import Path

from tests.kafka.test_tutorial import find_broken_promise
from tests.unit.cli.command_line import CommandLine
from tests.unit.docs.written import ROOT, list_code_blocks

PAGE = ROOT / "docs" / "howto" / "move-between-projects.md"


def run_line(kdeclare: CommandLine, line: str) -> list[str]:
    """Run a command line of the page, and return its output."""
    program, *arguments = shlex.split(line)
    paths = [kdeclare.folder / argument for argument in arguments if not argument.startswith("-")]
    match program:
        case "kdeclare":
            ran = kdeclare(*arguments)
            assert ran.code == 0, (line, ran)
            return (ran.out + ran.err).splitlines()
        case "mkdir":
            paths[0].mkdir(parents=True, exist_ok=True)
        case "mv":
            shutil.move(paths[0], paths[1])
        case "rm":
            paths[0].unlink()
        case _:
            raise AssertionError(line)
    return []


def write_file(kdeclare: CommandLine, text: str) -> Path:
    """Write a file of the page, whose first line names it."""
    path = kdeclare.folder / text.partition("\n")[0].removeprefix("# ")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def list_owners(kdeclare: CommandLine) -> set[str]:
    """Return the projects that own the topic."""
    projects = [path.parent.name for path in kdeclare.folder.glob("*/kdeclare.yaml")]
    listed = {name: kdeclare("state", "list", "--project", f"{name}/kdeclare.yaml") for name in projects}
    return {name for name, ran in listed.items() if "Topic/orders" in ran.out}


def test_steps_of_the_page_move_the_topic(kdeclare: CommandLine) -> None:
    owners = []
    for language, text in list_code_blocks(PAGE):
        if language == "yaml":
            path = write_file(kdeclare, text)
            if path.parent.parent.name == "checkout":
                assert kdeclare("apply", "--project", "checkout/kdeclare.yaml", "--yes").code == 0
            continue
        assert language == "console"
        for part in text.removeprefix("$ ").split("\n$ "):
            line, *promised = part.rstrip("\n").split("\n")
            printed = run_line(kdeclare, line)
            assert find_broken_promise(promised, printed) is None, (line, printed)
            topic = kdeclare.cluster.topics(["orders"])["orders"]
            assert len(topic.partitions) == 3
        owners.append(list_owners(kdeclare))
    assert owners == [{"billing"}] * 4 + [{"billing", "shipping"}, {"shipping"}]


def test_table_of_the_page_is_true(kdeclare: CommandLine) -> None:
    blocks = [text for language, text in list_code_blocks(PAGE) if language == "yaml"]
    for text in blocks[:3]:
        write_file(kdeclare, text)
    checkout, billing = (("--project", f"{name}/kdeclare.yaml") for name in ("checkout", "billing"))
    assert kdeclare("apply", *checkout, "--yes").code == 0
    line = ("state", "transfer", "Topic/orders", *checkout, "--to-project", billing[1], "--yes")
    assert kdeclare(*line).code == 0
    blocked = kdeclare("apply", *checkout, "--yes")
    assert (blocked.code, "Another project owns the resource" in blocked.out + blocked.err) == (3, True)
    refused = kdeclare("apply", *billing, "--yes", "--allow-empty", "--allow-deletes")
    assert (refused.code, "prevent-destroy" in refused.out + refused.err) == (3, True), refused
    assert kdeclare.topics == {"orders"}
    (kdeclare.folder / "checkout" / "manifests" / "orders.yaml").unlink()
    write_file(kdeclare, blocks[2].replace("checkout/", "billing/"))
    assert kdeclare("apply", *checkout, "--yes", "--allow-empty", "--allow-deletes").code == 0
    assert kdeclare("plan", *billing, "--detailed-exitcode").code == 0
    assert kdeclare.topics == {"orders"}
