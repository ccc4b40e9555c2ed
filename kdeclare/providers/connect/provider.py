"""The provider of Kafka Connect, as its entry point names it."""

from kdeclare.core.provider import Provider
from kdeclare.providers.connect.collector import WORKERS
from kdeclare.providers.connect.connection import CONNECTION
from kdeclare.providers.connect.doctor import examine_workers
from kdeclare.providers.connect.operations import PatchWorkers
from kdeclare.providers.connect.worker_config import ConnectWorkerConfigKind
from kdeclare.providers.connect.workers.values import is_secret_setting

PROVIDER = Provider(
    "connect",
    kinds=(ConnectWorkerConfigKind(),),
    operation_types=(PatchWorkers(),),
    builds_on=("kafka",),
    connection=CONNECTION,
    examine=examine_workers,
    collectors=(WORKERS,),
    is_secret_setting=is_secret_setting,
)
