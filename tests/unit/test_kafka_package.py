"""kafka-python is imported module by module, and completely when other code needs more."""

import subprocess
import sys

import pytest

IMPORTED = "import sys, kdeclare.providers.kafka.client; "
HEAVY = "'kafka.consumer.group' in sys.modules"


def run_python(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_consumers_and_producers_are_not_imported() -> None:
    unused = "('admin', 'consumer', 'coordinator', 'producer', 'record')"
    assert run_python(f"{IMPORTED} print([m for m in {unused} if f'kafka.{{m}}' in sys.modules])") == "[]"


@pytest.mark.slow
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
def test_kafka_package_is_complete_for_other_code(code: str, heavy: bool) -> None:
    assert run_python(f"{IMPORTED} {code}; print(bool(found), {HEAVY})") == f"True {heavy}"


def test_kafka_package_imported_earlier_is_kept() -> None:
    assert (
        run_python(f"import kafka; {IMPORTED} print(kafka is sys.modules['kafka'], type(kafka).__name__)")
        == "True module"
    )
