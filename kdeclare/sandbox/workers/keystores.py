"""The keystores of Connect workers: one certificate each, all of one authority."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from kdeclare.sandbox.certificates import issue, make_authority
from kdeclare.sandbox.layout import ConnectFiles


def certify(java: str, files: ConnectFiles, worker_ids: Iterable[int]) -> None:
    """Make the authority and the keystores of these workers, as far as they are not there.

    Raise KdeclareError ``sandbox-certificates``.
    """
    make_authority(java, files)
    without = [i for i in worker_ids if not files.worker(i).keystore.exists()]

    def equip(worker_id: int) -> None:
        issue(java, files, files.worker(worker_id).keystore, f"worker-{worker_id}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(equip, without))
