"""A Kubernetes control plane: etcd and the API server, with the rest on request.

    with ControlPlane(controller_manager=True) as control_plane:
        path = control_plane.kubeconfig()         # cluster admin
        path = control_plane.kubeconfig("eve")    # a user without permissions

Everything is real: TLS, client certificates, RBAC, admission, watches. There are no nodes;
`cluster.Cluster` adds them. Without the controller manager nothing collects garbage, empties
deleted namespaces or creates service accounts, and pods may be created without one. Any number may
run at once; each listens on ports of its own and ends with its owner (see `runs`). All methods
block: call them through `asyncio.to_thread` where that matters.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster import audit, binaries, components, etcd, pki, ports, readiness, runs
from devcluster.endpoint import Endpoint
from devcluster.process import Process
from devcluster.readiness import PortTaken
from devcluster.users import ADMIN, Users

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
COMPONENTS = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER)  # in the order in which they start

_CLIENT_COMMANDS = {
    CONTROLLER_MANAGER: components.controller_manager,
    SCHEDULER: components.scheduler,
}
_PORT_ATTEMPTS = 5


class ControlPlane:
    """One control plane, owned by this process from `start` to `stop`."""

    def __init__(
        self,
        *,
        controller_manager: bool = False,
        scheduler: bool = False,
        audit: bool = False,
        audited_groups: Sequence[str] = (),
        oldest: bool = False,
        apiserver_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        address: str = "127.0.0.1",
        name: str | None = None,
        ready_seconds: float = 60.0,
    ) -> None:
        self.address = address
        self.ports: dict[str, int] = {}
        self.components = [ETCD, APISERVER]
        self.components += [CONTROLLER_MANAGER] * controller_manager + [SCHEDULER] * scheduler
        self._audit = audit or bool(audited_groups)
        # With `audit`, all requests are logged.
        self._audited_groups = () if audit else audited_groups
        self._oldest = oldest  # whether it is of the oldest supported version
        self._apiserver_args = list(apiserver_args)
        self._controller_manager_args = list(controller_manager_args)
        self._name = name
        self._ready_seconds = ready_seconds
        self._processes: dict[str, Process] = {}
        self._run: runs.Run | None = None

    @classmethod
    def adopt(cls, name: str) -> Self | None:
        """Take over a detached control plane, or None if there is none of this name."""
        run = runs.adopt(name)
        if run is None:
            return None
        control_plane = cls(name=name)
        control_plane._run = run
        control_plane._restore(json.loads((run.directory / "control-plane.json").read_text()))
        control_plane._processes = {process.name: process for process in run.processes()}
        return control_plane

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def run(self) -> runs.Run:
        """What this control plane consists of on this machine."""
        if self._run is None:
            raise RuntimeError("This control plane is not running: call start() first.")
        return self._run

    @property
    def directory(self) -> Path:
        """Keys, logs and data; gone after `stop`."""
        return self.run.directory

    @property
    def url(self) -> str:
        return self._users.url

    @property
    def keys(self) -> pki.Pki:
        """All keys and certificates."""
        return pki.Pki(self.directory / "pki")

    @property
    def ca(self) -> Path:
        """The certificate that clients must trust."""
        return self._users.ca

    def start(self) -> None:
        """Build what is missing, start everything, and return when it is ready."""
        programs = self._provide()
        self._run = runs.create(self._name)
        try:
            self._create_files()
            self._start_all(programs)
            self._save()
            self._wait_for_first_objects()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill all processes and remove all files. Safe to call twice."""
        if self._run:
            self._run.end()
            self._run = None

    def detach(self) -> None:
        """Keep it running without an owner, until `adopt`."""
        self.run.detach()
        self._run = None

    def revive(self) -> list[str]:
        """Restart the components that have died, with their data and ports; return their names."""
        dead = [name for name in self.components if not self._processes[name].is_alive]
        for component in self.components:
            if component in dead:
                self._start_again(component)
            else:
                self._wait_until_ready(component)
        return dead

    def kubeconfig(self, user: str = ADMIN, groups: Sequence[str] | None = None) -> Path:
        """The kubeconfig of a user with a client certificate.

        `admin` may do everything. Other users are in no group unless given, and RBAC decides.
        """
        return self._users.kubeconfig(user, groups)

    def endpoint(self, user: str = ADMIN, groups: Sequence[str] | None = None) -> Endpoint:
        """The API server as this user sees it, for a request without a Kubernetes client."""
        return self._users.endpoint(user, groups)

    def anonymous_endpoint(self) -> Endpoint:
        """The API server without credentials."""
        return self._users.anonymous_endpoint()

    @property
    def audit_log(self) -> Path:
        """The audit log of the API server, if started with `audit=True`."""
        if not self._audit:
            raise RuntimeError("There is no audit log: start the control plane with audit=True.")
        return self.directory / "audit.log"

    def audit_records(self) -> Iterator[audit.Record]:
        """The requests to the API server so far (see `audit`)."""
        return audit.read(self.audit_log)

    def process(self, component: str) -> Process:
        """One of the components as a process."""
        return self._processes[component]

    def stop_apiserver(self) -> None:
        """Shut the API server down gracefully; `start_apiserver` brings it back."""
        self._processes[APISERVER].stop()

    def kill_apiserver(self) -> None:
        """End the API server as a crash would."""
        self._processes[APISERVER].kill()

    def start_apiserver(self) -> None:
        """Start a stopped API server on the same port, with the same data."""
        if not self._processes[APISERVER].is_alive:
            self._start_again(APISERVER)

    def pause_apiserver(self) -> None:
        """Freeze the API server: connections stay open and nothing answers."""
        self._processes[APISERVER].pause()

    def resume_apiserver(self) -> None:
        """Resume a paused API server."""
        self._processes[APISERVER].resume()

    def compact(self) -> int:
        """Compact etcd up to now, and return the oldest revision that it still has.

        That alone changes little for clients, because the API server answers from its watch cache:
        watches, exact lists and continued lists of older versions keep working. They get 410

        - after `kill_apiserver` and `start_apiserver`, because the new cache is empty. A watch then
          gets 410 even without compaction if it is behind the newest version of anything;
        - at once with `apiserver_args=["--watch-cache=false"]`, or, for one built-in resource,
          `["--watch-cache-sizes=configmaps#0"]`. Then only compaction makes a version too old,
          and a watch must have missed two writes: etcd keeps the newest revision.
        """
        endpoint = self._etcd_endpoint()
        current = etcd.revision(endpoint)
        etcd.compact(endpoint, current)
        return current

    @property
    def _users(self) -> Users:
        return Users(self.directory / "users", self.keys, self.address, self.ports[APISERVER])

    def _provide(self) -> dict[str, Path]:
        if not self._oldest:
            return binaries.provide(self.components)
        names = {each: each if each == ETCD else binaries.OLDEST + each for each in self.components}
        programs = binaries.provide(names.values())
        return {component: programs[name] for component, name in names.items()}

    def _start_all(self, programs: dict[str, Path]) -> None:
        self._start_components(self.components, programs)

    def _start_components(self, names: Sequence[str], programs: dict[str, Path]) -> None:
        for component in names:
            self._start_on_free_port(component, programs[component])

    def _create_files(self) -> None:
        pki.create(
            self.directory / "pki",
            addresses=dict.fromkeys(("127.0.0.1", self.address, components.SERVICE_ADDRESS)),
        )
        (self.directory / "audit-policy.json").write_text(
            json.dumps(audit.policy(self._audited_groups))
        )

    def _save(self) -> None:
        (self.directory / "control-plane.json").write_text(json.dumps(self._facts()))

    def _facts(self) -> dict[str, Any]:
        """What `adopt` needs to know."""
        return {
            "address": self.address,
            "ports": self.ports,
            "components": self.components,
            "audit": self._audit,
        }

    def _restore(self, facts: dict[str, Any]) -> None:
        self.address, self._audit = facts["address"], facts["audit"]
        self.ports, self.components = facts["ports"], facts["components"]

    def _start_on_free_port(self, component: str, program: Path) -> None:
        for _ in range(_PORT_ATTEMPTS - 1):
            with suppress(PortTaken):
                return self._start_on_some_port(component, program)
        return self._start_on_some_port(component, program)

    def _start_on_some_port(self, component: str, program: Path) -> None:
        self.ports[component] = ports.free_port()
        self._start(component, self._command(component, program))

    def _start_again(self, component: str) -> None:
        self._start(component, self._processes[component].argv)

    def _start(self, component: str, argv: Sequence[str]) -> None:
        log = self.directory / "logs" / f"{component}.log"
        log_start = log.stat().st_size if log.exists() else 0
        self._processes[component] = self.run.start(component, argv)
        self._wait_until_ready(component, log_start)

    def _wait_until_ready(self, component: str, log_start: int = 0) -> None:
        is_ready, process = self._is_ready(component), self._processes[component]
        readiness.wait_until(is_ready, process, self._ready_seconds, log_start=log_start)

    def _command(self, component: str, program: Path) -> list[str]:
        port, keys = self.ports[component], self.keys
        if component == ETCD:
            data, peer_port = self.directory / "data", ports.free_port()
            return components.etcd(program, pki=keys, data=data, port=port, peer_port=peer_port)
        if component == APISERVER:
            return components.apiserver(
                program,
                pki=keys,
                address=self.address,
                port=port,
                etcd_port=self.ports[ETCD],
                with_service_accounts=CONTROLLER_MANAGER in self.components,
                extra=[*self._audit_flags(), *self._apiserver_args],
            )
        # A user of its own for each, with the permissions that Kubernetes ships for it.
        identity = self.kubeconfig(f"system:{component}")
        command = _CLIENT_COMMANDS[component]
        extra = self._controller_manager_args if component == CONTROLLER_MANAGER else []
        return [*command(program, pki=keys, kubeconfig=identity, port=port), *extra]

    def _audit_flags(self) -> list[str]:
        if not self._audit:
            return []
        policy, log = self.directory / "audit-policy.json", self.directory / "audit.log"
        return components.audit_flags(policy, log)

    def _is_ready(self, component: str) -> Callable[[], bool]:
        if component == ETCD:
            return readiness.answers_ok(self._etcd_endpoint(), "/health")
        if component == APISERVER:
            return readiness.answers_ok(self.endpoint(), "/readyz")
        serving = Endpoint("127.0.0.1", self.ports[component], self.ca)
        return readiness.answers_ok(serving, "/healthz")

    def _etcd_endpoint(self) -> Endpoint:
        files, authority = self.keys.pair("etcd"), self.keys.pair("etcd-ca")
        return Endpoint(
            "127.0.0.1", self.ports[ETCD], authority.certificate, files.certificate, files.key
        )

    def _wait_for_first_objects(self) -> None:
        # Ready servers still take a moment to create what every client expects to be there.
        expected = {APISERVER: "", CONTROLLER_MANAGER: "/serviceaccounts/default"}
        for component in self.components:
            if component in expected:
                exists = readiness.answers_ok(
                    self.endpoint(), f"/api/v1/namespaces/default{expected[component]}"
                )
                readiness.wait_until(exists, self._processes[component], self._ready_seconds)
