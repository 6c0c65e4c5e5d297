"""Ray cluster as a place for workers: its nodes, and a detached actor for each attempt."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from ziggurat import __version__
from ziggurat.atomic import atomic_write_text
from ziggurat.cluster.bridge import NOT_NOW
from ziggurat.cluster.followed_group import ranks_of
from ziggurat.cluster.followed_job import GoneError, Place, RemoteWorker, UnreachableError
from ziggurat.cluster.ray.actor import RayWorker, describe_node
from ziggurat.entities import Share
from ziggurat.errors import JobError, ZigguratError

__all__ = ["RayCluster"]

_NAMESPACE: Final = "ziggurat"
_NAME: Final = "name"
"""Label of a Ray node that is its name in the studio."""

_CALL_S: Final = 10.0
_DESCRIBE_S: Final = 30.0
_PROOF: Final = ".ray_proof"


class RayCluster:
    """A Ray cluster.

    Args:
        address: of the cluster; ``auto`` for the one of this machine.
        workspace: folder of the studio.
        cache_bytes: largest size of a node's cache.
    """

    def __init__(self, address: str, workspace: Path, cache_bytes: int) -> None:
        import ray
        from ray.exceptions import ActorDiedError, ActorUnschedulableError, GetTimeoutError, RayError

        self._ray, self._lost = ray, (GetTimeoutError, RayError)
        self._gone = (ActorDiedError, ActorUnschedulableError)
        ray.init(address=address, namespace=_NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        self._workspace, self._cache_bytes = os.path.abspath(workspace), cache_bytes
        self._seeing: set[str] = set()
        self._proof = Path(self._workspace) / _PROOF
        if not self._proof.exists():  # another bridge of the workspace may use it now
            atomic_write_text(self._proof, secrets.token_hex(16), "The proof that nodes see the workspace")
        self._secret = self._proof.read_text(encoding="utf-8")
        self._ids: dict[str, str] = {}
        self._lock = threading.Lock()

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes with processors to give away; ``problem`` says why jobs cannot be put on one."""
        alive = [each for each in self._ray.nodes() if each["Alive"] and each["Resources"].get("CPU", 0) >= 1]
        hosts = Counter(each["NodeManagerHostname"] for each in alive)
        asked = []
        for each in alive:
            host, node_id = each["NodeManagerHostname"], each["NodeID"]
            name = each.get("Labels", {}).get(_NAME) or (host if hosts[host] == 1 else f"{host}-{node_id[:4]}")
            gpus = int(each["Resources"].get("GPU", 0))
            describe = self._ray.remote(describe_node).options(num_cpus=0, scheduling_strategy=self._on(node_id))
            answer = describe.remote(self._workspace, name, str(self._proof), self._secret, gpus)
            asked.append((name, node_id, int(each["Resources"]["CPU"]), answer))
        with self._lock:
            self._ids = {name: node_id for name, node_id, _, _ in asked}
        return [
            self._described(name, cpus, answer) for name, _, cpus, answer in sorted(asked, key=lambda each: each[0])
        ]

    def _described(self, name: str, cpus: int, answer: Any) -> dict[str, Any]:
        try:
            found = self._ray.get(answer, timeout=_DESCRIBE_S)
        except self._lost as error:
            return {"name": name, "problem": f"it does not answer: {type(error).__name__}"}
        with self._lock:
            (self._seeing.add if found["sees_workspace"] else self._seeing.discard)(name)
        other = found["versions"]["ziggurat"]
        problem = "" if other == __version__ else f"it has Ziggurat {other}, and the studio {__version__}"
        return {"name": name, "cpu_slots": max(1, cpus // 2), "problem": problem, **found}

    def place(self, node: str) -> Place:
        """Return what is known of a node."""
        with self._lock:
            return Place(node, Path(self._workspace), node in self._seeing)

    def create(self, job_id: str, attempt: int, shares: Sequence[Share]) -> list[RemoteWorker]:
        """Make the detached actors of an attempt; none is restarted, and they hold their accelerators until the end.

        Several of them are in a placement group: Ray sets aside what all of them need, or nothing, and ends all of them
        with the group, however many a later attempt has.

        Raises:
            JobError: if a node is not there.
        """
        with self._lock:
            ids = {share.node: self._ids.get(share.node) for share in shares}
        for node, node_id in ids.items():
            if node_id is None:
                raise JobError(f"Node {node} is not in the cluster now.", details={NOT_NOW: True})
        for earlier in range(1, attempt):
            for rank, _ in ranks_of(shares):
                with suppress(UnreachableError, ValueError):
                    self._ray.kill(self._ray.get_actor(_name(job_id, earlier, rank)), no_restart=True)
            self.release(job_id, earlier)
        group = self._group(job_id, attempt, shares, ids) if len(ranks_of(shares)) > 1 else None
        workers: list[RemoteWorker] = []
        with self._translated():
            for rank, share in ranks_of(shares):
                strategy = self._on(str(ids[share.node])) if group is None else self._in(group, shares.index(share))
                made = self._ray.remote(RayWorker).options(
                    name=_name(job_id, attempt, rank),
                    lifetime="detached",
                    max_restarts=0,
                    num_cpus=0,
                    # The first process of a node holds them for all.
                    num_gpus=len(share.devices) if rank == share.ranks[0] else 0,
                    scheduling_strategy=strategy,
                )
                actor = made.remote(self._workspace, share.node, job_id, attempt, self._cache_bytes, rank)
                workers.append(cast(RemoteWorker, _Actor(self, actor)))
        return workers

    def _group(self, job_id: str, attempt: int, shares: Sequence[Share], ids: Mapping[str, str | None]) -> Any:
        from ray.util.placement_group import placement_group

        return placement_group(
            [{"CPU": 1, **({"GPU": len(share.devices)} if share.devices else {})} for share in shares],
            strategy="STRICT_SPREAD",
            name=_name(job_id, attempt),
            lifetime="detached",
            bundle_label_selector=[{"ray.io/node-id": str(ids[share.node])} for share in shares],
        )

    def _in(self, group: Any, number: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        return PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=number)

    def release(self, job_id: str, attempt: int) -> None:
        """Give back the placement group of an attempt, if it has one; that ends what is left of its actors."""
        from ray.util import get_placement_group, remove_placement_group

        with suppress(ValueError, *self._lost):
            remove_placement_group(get_placement_group(_name(job_id, attempt)))

    def find(self, job_id: str, attempt: int, rank: int) -> RemoteWorker | None:
        """Return the actor of a process of an attempt; None if there is none any more."""
        try:
            return cast(RemoteWorker, _Actor(self, self._ray.get_actor(_name(job_id, attempt, rank))))
        except ValueError:
            return None

    def call(self, method: Any, *values: Any) -> Any:
        """Return what a method of an actor returns.

        Raises:
            UnreachableError: if it does not answer.
        """
        with self._translated():
            return self._ray.get(method.remote(*values), timeout=_CALL_S)

    def discard(self, actor: Any) -> None:
        """End an actor."""
        with suppress(*self._lost):
            self._ray.kill(actor, no_restart=True)

    def _translated(self) -> _Translated:
        return _Translated(self._lost, self._gone)

    def _on(self, node_id: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node_id=node_id, soft=False)


class _Translated:
    """Turns what Ray raises into what the bridge knows; errors of Ziggurat in an actor come out as they were."""

    def __init__(self, lost: tuple[type[BaseException], ...], gone: tuple[type[BaseException], ...]) -> None:
        self._lost, self._gone = lost, gone

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        cause = getattr(error, "cause", None)
        if isinstance(cause, ZigguratError | OSError):
            raise cause from None
        if isinstance(error, self._gone):
            raise GoneError(f"{type(error).__name__}: {str(error)[:200]}") from error
        if isinstance(error, self._lost):
            raise UnreachableError(f"{type(error).__name__}: {str(error)[:200]}") from error


class _Actor:
    """The worker that an actor holds."""

    def __init__(self, cluster: RayCluster, actor: Any) -> None:
        self._cluster, self._actor = cluster, actor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return what calls a method of the worker."""
        method = getattr(self._actor, name)
        return lambda *values: self._cluster.call(method, *values)

    def remove(self) -> None:
        try:
            self._cluster.call(self._actor.remove)
        finally:
            self._cluster.discard(self._actor)  # else it would keep its accelerators


def _name(job_id: str, attempt: int, rank: int = 0) -> str:
    return f"{job_id}-{attempt}-{rank}" if rank else f"{job_id}-{attempt}"
