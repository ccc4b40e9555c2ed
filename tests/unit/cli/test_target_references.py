"""``--target`` and manifests of other resources whose references cannot be resolved."""

import pytest

from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """A project in which Topic/orders is complete, and Topic/payments needs a value that is missing."""
    kdeclare.topic("orders")
    kdeclare.topic("payments", configs={"retention.ms": "${env.NO_SUCH_VALUE}"})
    return kdeclare


@pytest.mark.parametrize("reference", ["${env.NO_SUCH_VALUE}", "${var.none}", "${file.gone.txt}"])
def test_target_does_not_need_references_of_other_resources(shop: CommandLine, reference: str) -> None:
    shop.topic("payments", configs={"retention.ms": reference})
    assert shop("plan").code == 1
    ran = shop("plan", "--target", "Topic/orders")
    assert ran.code == 0, ran.err
    assert "+ Topic/orders" in ran.out
    assert "Topic/payments" in ran.out
    assert "The plan leaves out the resource, because it is not a target." in " ".join(ran.out.split())
    assert shop("apply", "--target", "Topic/orders", "--yes").code == 0
    assert shop.topics == {"orders"}


def test_target_with_missing_reference_is_error(shop: CommandLine) -> None:
    ran = shop("plan", "--target", "Topic/payments")
    assert ran.code == 1
    assert "The environment variable 'NO_SUCH_VALUE' is not set." in ran.err
    assert shop("plan", "--target", "Topic/orders", "--target", "Topic/payments").code == 1


def test_resource_that_is_left_out_is_no_orphan(shop: CommandLine) -> None:
    shop.topic("payments")
    assert shop("apply", "--yes").code == 0
    shop.topic("payments", configs={"retention.ms": "${env.NO_SUCH_VALUE}"})
    ran = shop("apply", "--target", "Topic/orders", "--allow-deletes", "--yes")
    assert ran.code == 0, ran.err
    assert shop.topics == {"orders", "payments"}


def test_other_mistakes_still_stop_the_plan(shop: CommandLine) -> None:
    shop.topic("refunds", partitons=1)
    assert shop("plan", "--target", "Topic/orders").code == 1


@pytest.mark.parametrize("reference", ["${env.NO SUCH", "${no.such}"])
def test_malformed_references_still_stop_the_plan(shop: CommandLine, reference: str) -> None:
    shop.topic("payments", configs={"retention.ms": reference})
    assert shop("plan", "--target", "Topic/orders").code == 1


def test_policies_must_be_resolved_for_every_plan(shop: CommandLine) -> None:
    shop.write(
        "manifests/p.yaml", "Policy", "p", rule="true", message="${env.NO_SUCH_VALUE}", actions=["CREATE"]
    )
    ran = shop("plan", "--target", "Topic/orders")
    assert ran.code == 1
    assert "Policy/p" in ran.err


def test_manifest_whose_name_cannot_be_resolved_still_stops_the_plan(shop: CommandLine) -> None:
    """It could be a second manifest of the target."""
    shop.write("manifests/named.yaml", "Topic", "${env.NO_SUCH_NAME}", partitions=1)
    assert shop("plan", "--target", "Topic/orders").code == 1
