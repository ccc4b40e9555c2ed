"""KIP-339's point: two who alter different keys of one topic at a time lose nothing of each other's.

Beside it, what read-modify-write (AlterConfigs, which replaces all overrides) makes of the same.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed, topic_resource
from tests.thoroughness import pick

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

TIMES = pick(15, 50)
KEYS = "retention.ms", "max.message.bytes"
_ALTERING = """
import sys
from kdeclare.cli.main import main
bootstrap, topic, key, times, state = sys.argv[1:]
where = ["--bootstrap-server", bootstrap, "--state", state]
for value in range(1, int(times) + 1):
    change = ["--topic", topic, "--add-config", f"{key}={value}"]
    code = main(["config", "alter", *change, "--yes", "--quiet", *where])
    assert code == 0, code  # 5, had it not been seen that the key has this very value
"""


def test_concurrent_config_alters_lose_no_value(
    kafka_bed: KafkaBed, sandbox: SandboxStatus, tmp_path: Path
) -> None:
    topic = kafka_bed.create()
    lines = [
        [sys.executable, "-c", _ALTERING, sandbox.bootstrap, topic, key, str(TIMES), str(tmp_path / key)]
        for key in KEYS
    ]
    both = [
        subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in lines
    ]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    kafka_bed.expect_overrides(topic_resource(topic), dict.fromkeys(KEYS, str(TIMES)))


def test_concurrent_read_modify_write_loses_values(kafka_bed: KafkaBed, sandbox: SandboxStatus) -> None:
    topic = kafka_bed.create()
    both_have_read, both_have_written = Barrier(len(KEYS)), Barrier(len(KEYS))

    def alter(key: str) -> int:
        """How many of its own values are gone again as soon as both have written."""
        lost = 0
        client = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)
        for value in range(1, TIMES + 1):
            configs = {**kafka_bed.overrides(topic_resource(topic)), key: str(value)}
            both_have_read.wait(60)
            whole = ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)
            client.alter_configs([whole], raise_on_unknown=False, incremental=False)
            both_have_written.wait(60)
            lost += kafka_bed.overrides(topic_resource(topic)).get(key) != str(value)
        client.close()
        return lost

    with ThreadPoolExecutor(len(KEYS)) as pool:
        lost = sum(pool.map(alter, KEYS))
    assert lost >= TIMES / 2, f"{lost} of {2 * TIMES} were lost"
