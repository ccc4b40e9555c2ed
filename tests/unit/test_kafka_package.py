"""kafka-python is imported module by module, and completely when other code needs more."""

import subprocess
import sys

import pytest

IMPORTED = "import sys, kdeclare.providers.kafka.client; "
HEAVY = "'kafka.consumer.group' in sys.modules"


def run(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_consumers_and_producers_are_not_imported() -> None:
    unused = "('admin', 'consumer', 'coordinator', 'producer', 'record')"
    assert run(f"{IMPORTED} print([m for m in {unused} if f'kafka.{{m}}' in sys.modules])") == "[]"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import kafka.errors as found", False),
        ("from kafka import errors as found", False),
        ("from kafka import KafkaConsumer as found", True),
        ("import kafka; found = kafka.KafkaProducer", True),
        ("import kafka; assert not hasattr(kafka, 'nothing'); found = kafka", True),
        ("from kafka import *; found = KafkaAdminClient", True),
        ("import kafka; found = kafka.__version__", True),
    ],
)
def test_the_package_is_there_for_others(code: str, heavy: bool) -> None:
    assert run(f"{IMPORTED} {code}; print(bool(found), {HEAVY})") == f"True {heavy}"


def test_a_package_that_was_imported_before_stays_as_it_is() -> None:
    assert (
        run(f"import kafka; {IMPORTED} print(kafka is sys.modules['kafka'], type(kafka).__name__)")
        == "True module"
    )
