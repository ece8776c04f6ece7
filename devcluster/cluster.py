"""A Kubernetes cluster with nodes: pods really run, on different hosts.

    with Cluster(nodes=2) as cluster:                 # root and Linux needed; about 10 seconds
        cluster.load(Path("image.tar"))               # a docker archive, on all nodes, once
        cluster.kubectl("apply", "-f", "-", stdin=manifest)
        print(cluster.kubectl("logs", "job/pi"))

It is a `ControlPlane` in every respect (`kubeconfig`, `endpoint`, `audit_records`,
`kill_apiserver`, …) with nodes `node-0`, `node-1`, …, cluster IPs, DNS without any caching,
`kubectl logs` and `exec`, webhooks to services, and these ways to break it:

    cluster.kill_node(1)      power loss: everything on it ends at once
    cluster.start_node(1)     it boots again; returns when it is ready
    cluster.cut_node(1)       its link goes down: pods keep running, unreachable
    cluster.join_node(1)      the link comes up; returns when the node is ready
    cluster.stop_kubelet(1)   only the agent ends; cluster.start_kubelet(1)
    cluster.is_ready(1)       whether the API server counts a node as ready
    cluster.mend()            undoes all of that, and starts a control plane that was stopped

By default Kubernetes marks a silent node as lost after 50s and evicts its pods 5 minutes later.
`Cluster(node_grace_seconds=8, eviction_seconds=2)` shortens both.

    cluster.start_scheduler_plugins()     a second scheduler, `scheduler-plugins-scheduler`, which
                                          starts gangs (PodGroup) all at once or not at all
    cluster.node_command(0, ["ip", "route"])   the command that runs something in a node, as root
    cluster.address                       this host, as nodes and pods see it

Pods reach each other, this host, and nothing beyond it: images have to be loaded.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from devcluster import (
    binaries,
    containerd,
    coredns,
    images,
    network,
    packages,
    permissions,
    readiness,
    runs,
    scheduler_plugins,
    slot_cleanup,
    slots,
)
from devcluster.binaries import CannotBuild
from devcluster.control_plane import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, ControlPlane
from devcluster.network import Network
from devcluster.node import ClusterContext, Node
from devcluster.readiness import NotReady

COREDNS = "coredns"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Readiness paths of components without TLS.
_HEALTH_WITHOUT_TLS = {COREDNS: "/ready", scheduler_plugins.CONTROLLER: "/readyz"}
_PROGRAMS = (*binaries.USES["control-plane"], *binaries.USES["nodes"])


def unsupported_reason() -> str:
    """Why this machine cannot run nodes; empty if it can."""
    if sys.platform != "linux":
        return f"Nodes need Linux, and this is {sys.platform}."
    if os.geteuid() != 0:
        return "Nodes need root: they have network namespaces, mounts and cgroups of their own."
    return ""


def new(nodes: int, **options: Any) -> ControlPlane:
    """A cluster with that many nodes; with none it is a whole control plane."""
    if nodes == 0:
        return ControlPlane(controller_manager=True, scheduler=True, **options)
    return Cluster(nodes=nodes, **options)


def adopt(name: str) -> ControlPlane | None:
    """Take over a detached cluster, with or without nodes; None if there is none of this name."""
    facts = runs.root() / runs.checked_name(name) / "control-plane.json"
    with_nodes = facts.exists() and "nodes" in json.loads(facts.read_text())
    return Cluster.adopt(name) if with_nodes else ControlPlane.adopt(name)


def load(target: ControlPlane, archives: Sequence[Path]) -> None:
    """Load images onto all nodes of a cluster; NoNodes if it has none."""
    if not isinstance(target, Cluster):
        raise NoNodes("This cluster has no nodes to load images onto.")
    target.load(*archives)


class NoNodes(Exception):
    """The control plane has no nodes."""


class CommandFailed(Exception):
    """kubectl failed; the message has its error output."""


class Cluster(ControlPlane):
    """A control plane with nodes, owned by this process from `start` to `stop`."""

    def __init__(
        self,
        *,
        nodes: int = 2,
        domain: str = "cluster.local",
        node_grace_seconds: int | None = None,
        eviction_seconds: int | None = None,
        apiserver_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        **options: Any,
    ) -> None:
        if not 1 <= nodes <= network.MAX_NODES:
            raise ValueError(f"invalid number of nodes {nodes}: expected 1 to {network.MAX_NODES}")
        super().__init__(
            controller_manager=True,
            scheduler=True,
            apiserver_args=[*_eviction_flags(eviction_seconds), *apiserver_args],
            controller_manager_args=[*_grace_flags(node_grace_seconds), *controller_manager_args],
            **options,
        )
        self.components.append(COREDNS)
        self.domain = domain
        self.nodes: list[Node] = []
        self._count = nodes
        self._grace_seconds = node_grace_seconds
        self._slot: int | None = None

    @property
    def network(self) -> Network:
        if self._slot is None:
            raise RuntimeError("This cluster is not running: call start() first.")
        return Network(self._slot)

    def load(self, *archives: Path) -> None:
        """Load the images of docker or OCI archives onto all nodes."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            for archive in archives:
                list(pool.map(lambda node: node.load(archive), self.nodes))  # noqa: B023

    def kubectl(self, *arguments: str, stdin: str | None = None, user: str = "admin") -> str:
        """Run kubectl as a user and return what it prints."""
        program = binaries.provide(["kubectl"])["kubectl"]
        done = subprocess.run(
            [str(program), f"--kubeconfig={self.kubeconfig(user)}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise CommandFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def is_ready(self, node: int) -> bool:
        """Whether the API server counts a node as ready and schedules pods to it."""
        return self.nodes[node].is_ready()

    def kill_node(self, node: int) -> None:
        """Power loss: everything on the node ends at once."""
        self.nodes[node].kill()

    def start_node(self, node: int) -> None:
        """Boot a killed node with the disk it had, and return when it is ready."""
        self.nodes[node].start()

    def cut_node(self, node: int) -> None:
        """Take the node's link down. Its pods keep running, but are unreachable."""
        network.cut(self.network, node)

    def join_node(self, node: int) -> None:
        """Bring the node's link up, and return when the node is ready."""
        network.join(self.network, node)
        self.nodes[node].wait_until_ready(since=time.time())

    def stop_kubelet(self, node: int) -> None:
        """Stop the kubelet of a node; its containers keep running."""
        self.nodes[node].stop_kubelet()

    def start_kubelet(self, node: int) -> None:
        """Start a stopped agent, and return when the node is ready."""
        self.nodes[node].start_kubelet()

    def node_command(self, node: int, argv: Sequence[str]) -> list[str]:
        """The command line that runs a program in a node."""
        return self.nodes[node].command(argv)

    def start_scheduler_plugins(self) -> None:
        """Start the scheduler `scheduler-plugins-scheduler` and its controller. Safe to repeat."""
        if scheduler_plugins.SCHEDULER in self.components:
            return
        programs = binaries.provide(scheduler_plugins.COMPONENTS)
        admin = self.endpoint()
        permissions.grant_scheduler_plugins(admin)
        for definition in scheduler_plugins.definitions():
            permissions.create(admin, _DEFINITIONS, definition)
        served = readiness.answers_ok(admin, scheduler_plugins.POD_GROUPS)
        readiness.wait_until(served, self._processes[APISERVER], self._ready_seconds)
        self._start_components(scheduler_plugins.COMPONENTS, programs)
        self.components += scheduler_plugins.COMPONENTS
        self._save()

    def mend(self) -> list[str]:
        """Undo every fault: links up, what is paused resumed, what is dead started, nodes ready."""
        self.resume_apiserver()
        for node in self.nodes:
            if node.machine.is_alive:  # a dead one has no link
                network.join(self.network, node.index)
        return self.revive()

    def revive(self) -> list[str]:
        """Restart what has died of the control plane, DNS and the nodes; return the names."""
        if slots.of(self.directory) != [self._slot] or not network.exists(self.network):
            raise NotReady(
                f"Cannot restart {self.run.name!r}: its network is gone, as after a reboot."
                " Take it down and start it again."
            )
        revived = super().revive()
        for node in self.nodes:
            revived += node.revive()
        return revived

    def _provide(self) -> dict[str, Path]:
        if reason := unsupported_reason():
            raise CannotBuild(reason)
        packages.provide(packages.FOR_NODES)
        return binaries.provide(_PROGRAMS)

    def _create_files(self) -> None:
        self._slot = slots.claim(self.directory, slot_cleanup.clear)
        network.create(self.network)
        self.address = self.network.host_address
        super()._create_files()
        self._apiserver_args += self._kubelet_client_flags()

    def _start_all(self, programs: dict[str, Path]) -> None:
        self._create_nodes(programs)
        for node in self.nodes:
            node.boot()
        self._start_components([ETCD, APISERVER], programs)
        permissions.grant(self.endpoint())
        for node in self.nodes:
            node.start_agents()
        self._start_components([CONTROLLER_MANAGER, SCHEDULER], programs)
        self._start_on_free_port(COREDNS, programs[COREDNS])
        self.load(self._sandbox_image(programs["pause"]))
        for node in self.nodes:
            node.wait_until_ready()

    def _create_nodes(self, programs: dict[str, Path]) -> None:
        context = ClusterContext(
            run=self.run,
            network=self.network,
            count=self._count,
            programs=programs,
            control_plane=self,
            domain=self.domain,
            grace_seconds=self._grace_seconds,
        )
        self.nodes = [Node(index, context) for index in range(self._count)]

    def _kubelet_client_flags(self) -> list[str]:
        client = self.keys.directory / "kubelet-client"
        files = self.keys.authority.issue_client(client, permissions.KUBELET_CLIENT)
        return [
            f"--kubelet-client-certificate={files.certificate}",
            f"--kubelet-client-key={files.key}",
            f"--kubelet-certificate-authority={self.keys.pair('ca').certificate}",
        ]

    def _sandbox_image(self, program: Path) -> Path:
        return images.pack(
            self.directory / "pause.tar",
            name=containerd.SANDBOX_IMAGE,
            files={"pause": program},
            entrypoint=["/pause"],
            user="65535:65535",
        )

    def _command(self, component: str, program: Path) -> list[str]:
        if component == COREDNS:
            return self._coredns_command(program)
        if component == scheduler_plugins.SCHEDULER:
            return self._second_scheduler_command(program)
        if component == scheduler_plugins.CONTROLLER:
            return scheduler_plugins.controller(
                program,
                kubeconfig=self.kubeconfig(scheduler_plugins.USER),
                port=self.ports[component],
            )
        return super()._command(component, program)

    def _coredns_command(self, program: Path) -> list[str]:
        corefile = self.directory / "Corefile"
        corefile.write_text(
            coredns.corefile(
                address=self.address,
                domain=self.domain,
                ready_port=self.ports[COREDNS],
                kubeconfig=self.kubeconfig(coredns.USER),
            )
        )
        return coredns.command(program, corefile=corefile)

    def _second_scheduler_command(self, program: Path) -> list[str]:
        identity = self.kubeconfig(scheduler_plugins.USER)
        configuration_file = self.directory / "scheduler-plugins.json"
        configuration_file.write_text(scheduler_plugins.configuration(identity))
        return scheduler_plugins.scheduler(
            program,
            pki=self.keys,
            kubeconfig=identity,
            configuration_file=configuration_file,
            port=self.ports[scheduler_plugins.SCHEDULER],
        )

    def _is_ready(self, component: str) -> Callable[[], bool]:
        if component in _HEALTH_WITHOUT_TLS:
            return readiness.answers_without_tls(
                self.ports[component], _HEALTH_WITHOUT_TLS[component]
            )
        return super()._is_ready(component)

    def _facts(self) -> dict[str, Any]:
        nodes = {"count": self._count, "domain": self.domain, "grace": self._grace_seconds}
        return {**super()._facts(), "slot": self._slot, "nodes": nodes}

    def _restore(self, facts: dict[str, Any]) -> None:
        super()._restore(facts)
        self._slot, nodes = facts["slot"], facts["nodes"]
        self._count, self.domain = nodes["count"], nodes["domain"]
        self._grace_seconds = nodes["grace"]
        self._create_nodes(binaries.provide(_PROGRAMS))


def _grace_flags(seconds: int | None) -> list[str]:
    if seconds is None:
        return []
    return [f"--node-monitor-grace-period={seconds}s", "--node-monitor-period=1s"]


def _eviction_flags(seconds: int | None) -> list[str]:
    if seconds is None:
        return []
    return [
        f"--default-{state}-toleration-seconds={seconds}" for state in ("not-ready", "unreachable")
    ]
