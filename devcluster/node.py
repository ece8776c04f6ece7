"""One node: a machine (see `machine`) with containerd, a kubelet and kube-proxy in it."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

from devcluster import cgroups, cni, containerd, kube_proxy, kubelet, machine, network, readiness
from devcluster.binaries import CannotBuild
from devcluster.control_plane import ControlPlane
from devcluster.image_store import ImageStore
from devcluster.network import Network
from devcluster.process import Process
from devcluster.runs import Run

_CONTAINERD, _KUBELET, _KUBE_PROXY, _INIT = "containerd", "kubelet", "kube-proxy", "init"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_SECONDS = 60.0
_KUBELET_STARTS = 5


@dataclass(frozen=True)
class ClusterContext:
    """What the nodes of one cluster have in common."""

    run: Run
    network: Network
    count: int
    programs: Mapping[str, Path]
    control_plane: ControlPlane
    domain: str
    grace_seconds: int | None


class Node:
    """Node number `index` of a cluster."""

    def __init__(self, index: int, context: ClusterContext) -> None:
        self.index = index
        self.name = f"node-{index}"
        self.store = ImageStore(context.network.slot, index)
        self._context = context

    @property
    def address(self) -> str:
        return self._context.network.node_address(self.index)

    @property
    def directory(self) -> Path:
        return self._context.run.directory / self.name

    @property
    def machine(self) -> Process:
        return self._process("")

    @property
    def kubelet(self) -> Process:
        return self._process(_KUBELET)

    def boot(self) -> None:
        """Bring up the machine, its link and containerd; return without waiting for the latter."""
        context = self._context
        self._write_files()
        # Cgroups of dead containers, which a real power loss would not leave, take seconds each.
        cgroups.remove(context.network.slot, self.index)
        cgroups.create(context.network.slot, self.index)
        machine.boot(
            context.run, self.name, init=context.programs["pause"], private=self._private()
        )
        network.attach(context.network, self.index, self.machine.pid, nodes=context.count)
        self._start_containerd()

    def start_agents(self) -> None:
        """Start the kubelet and kube-proxy; the API server must be up."""
        context, programs = self._context, self._context.programs
        self._wait_for_containerd()
        identity = context.control_plane.kubeconfig(f"system:node:{self.name}", ["system:nodes"])
        self._start(
            _KUBELET,
            kubelet.command(
                programs["kubelet"],
                configuration_file=self.directory / "kubelet.json",
                kubeconfig=identity,
                node=self.name,
                address=self.address,
            ),
        )
        self._start(
            _KUBE_PROXY,
            kube_proxy.command(
                programs["kube-proxy"],
                kubeconfig=context.control_plane.kubeconfig("system:kube-proxy"),
                node=self.name,
                pod_ranges=context.network.range,
            ),
        )

    def load(self, archive: Path) -> bool:
        """Load the images of an archive; False if they were there already."""
        self._wait_for_containerd()
        return self.store.load(self.machine, archive)

    def wait_until_ready(self, since: float = 0.0) -> None:
        """Return once the node is ready, by a report not older than `since`.

        A kubelet that exits is restarted, as a service manager would do: containerd listens before
        it serves, and a kubelet that asks it in between exits.
        """
        for starts_left in reversed(range(_KUBELET_STARTS)):
            try:
                readiness.wait_until(lambda: self.is_ready(since), self.kubelet, _SECONDS)
            except readiness.Ended:
                if not starts_left:
                    raise
                self._revive(_KUBELET)
            else:
                return

    def is_ready(self, since: float = 0.0) -> bool:
        """Whether the API server counts it as ready, and schedules pods to it."""
        node = self._get(f"/api/v1/nodes/{self.name}")
        lease = self._get(f"{_LEASES}/{self.name}")
        if not node or not lease:
            return False
        conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
        return (
            conditions["Ready"] == "True"
            and not node["spec"].get("taints")
            and _moment(lease["spec"]["renewTime"]) >= since
        )

    def kill(self) -> None:
        """Simulate a power loss."""
        for part in ("", _INIT, _KUBELET, _KUBE_PROXY, _CONTAINERD):
            self._process(part).kill()

    def start(self) -> None:
        """Boot a node that was killed, and return when it is ready again."""
        if self.machine.is_alive:
            return
        started = time.time()
        self.boot()
        self.start_agents()
        self.wait_until_ready(started)

    def stop_kubelet(self) -> None:
        """Kill the kubelet; the containers keep running."""
        self.kubelet.kill()

    def start_kubelet(self) -> None:
        """Start a stopped kubelet, and return when the node is ready."""
        started = time.time()
        self._revive(_KUBELET)
        self.wait_until_ready(started)

    def revive(self) -> list[str]:
        """Restart what has died, and return the names."""
        if not self.machine.is_alive:
            self.start()
            return [self.name]
        revived = [
            self._record_name(part)
            for part in (_CONTAINERD, _KUBELET, _KUBE_PROXY)
            if self._revive(part)
        ]
        self.wait_until_ready()
        return revived

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs a program in this node."""
        return machine.inside(self.machine, argv)

    def _get(self, path: str) -> Any:
        try:
            answer = self._context.control_plane.endpoint().request("GET", path)
        except (OSError, HTTPException):
            return None
        return answer.json() if answer.status == 200 else None

    def _write_files(self) -> None:
        plugins = cni.plugin_directory()
        if plugins is None:
            raise CannotBuild("The CNI plugins are missing. Install containernetworking-plugins.")
        cni.configure(self.directory / "cni", pod_range=self._context.network.pod_range(self.index))
        for name, for_kubernetes in (("containerd.toml", True), ("cleaning.toml", False)):
            text = containerd.configuration(
                plugins=plugins, cni=self.directory / "cni", for_kubernetes=for_kubernetes
            )
            (self.directory / name).write_text(text)
        (self.directory / "kubelet.json").write_text(json.dumps(self._kubelet_configuration()))

    def _kubelet_configuration(self) -> dict[str, object]:
        context, keys = self._context, self._context.control_plane.keys
        serving = keys.authority.issue_server(self.directory / "serving", (self.name, self.address))
        return kubelet.configuration(
            authority=keys.pair("ca").certificate,
            serving=serving,
            cgroup_root=cgroups.root(context.network.slot, self.index),
            runtime=containerd.SOCKET,
            dns_address=context.network.host_address,
            dns_domain=context.domain,
            grace_seconds=context.grace_seconds,
        )

    def _private(self) -> dict[str, Path]:
        places = {path: self.directory / path.lstrip("/") for path in machine.PRIVATE}
        return {**places, "/var/lib/containerd": self.store.root}

    def _start_containerd(self) -> None:
        is_first = not (self.directory / "served").exists()
        if is_first and self.store.is_incomplete:
            self.store.clear()
        if is_first and self.store.has_old_containers:
            self._remove_old_containers()
        (self.directory / "served").touch()
        self.store.mark_used()
        self._start(_CONTAINERD, containerd.command(self.directory / "containerd.toml"))

    def _remove_old_containers(self) -> None:
        self._start(_CONTAINERD, containerd.command(self.directory / "cleaning.toml"))
        self._wait_for_containerd()
        self.store.remove_old_containers(self.machine)
        self._process(_CONTAINERD).kill()

    def _wait_for_containerd(self) -> None:
        node = self.machine
        readiness.wait_until(lambda: containerd.answers(node), self._process(_CONTAINERD), _SECONDS)

    def _start(self, part: str, argv: Sequence[str]) -> None:
        self._context.run.start(self._record_name(part), self.command(argv))

    def _revive(self, part: str) -> bool:
        dead = self._process(part)
        if dead.is_alive:
            return False
        self._context.run.start(dead.name, dead.argv)
        return True

    def _process(self, part: str) -> Process:
        return self._context.run.process(self._record_name(part))

    def _record_name(self, part: str) -> str:
        return f"{self.name}.{part}" if part else self.name


def _moment(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
