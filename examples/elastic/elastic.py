"""The launcher of a job that grows and shrinks: rounds of training on the workers that run.

It asks the operator's script which hosts run and starts `mpirun` on exactly those, round after
round. The training state is in a file here, and each round reads it from stdin. So losing a worker
costs one round, which is repeated with the others. A worker that leaves because the job shrinks
costs none, if the round ends in time. ROUNDS and STEPS are environment variables.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = os.environ.get("DISCOVER_HOSTS", "/etc/mpi/discover_hosts.sh")
ROUNDS = int(os.environ.get("ROUNDS", "10"))
STEPS = int(os.environ.get("STEPS", "20"))
POLL_SECONDS = 0.2
PAUSE_SECONDS = 1.0
# With some operators it takes the kubelet a minute to update the script in this pod.
TIMEOUT_SECONDS = 180.0
# Workers that leave run on for 5 seconds, in which the round may end.
LEAVING_SECONDS = 3.0
GRACE_SECONDS = 5.0

Hosts = dict[str, int]


def running_hosts() -> Hosts:
    """The running hosts with their slots; none while the script is being replaced."""
    answer = subprocess.run(["sh", SCRIPT], capture_output=True, text=True, check=False)
    if answer.returncode:
        return {}
    pairs = (line.partition(":") for line in answer.stdout.split())
    return {host: int(slots or 1) for host, _, slots in pairs}


def run_round(hosts: Hosts, state: str, directory: Path) -> str | None:
    """One round: the new state, or None if the round failed."""
    hostfile, before, after = (directory / name for name in ("hostfile", "before", "after"))
    hostfile.write_text("".join(f"{host} slots={slots}\n" for host, slots in hosts.items()))
    before.write_text(f"{state.strip()}\n")
    ranks = str(sum(hosts.values()))
    command = ["mpirun", "--hostfile", str(hostfile), "-n", ranks, "--bind-to", "none"]
    with before.open() as stdin, after.open("w") as stdout:
        mpirun = subprocess.Popen(
            [*command, "python3", "round.py", str(STEPS)], stdin=stdin, stdout=stdout
        )
        told = None  # when a host left the list
        while mpirun.poll() is None:
            gone = hosts.keys() - running_hosts().keys()
            if gone and told is None:
                told = time.monotonic()
                print(f"{names(gone)} is leaving", flush=True)
            # mpirun may take long to notice that a host is gone, or never do.
            if told is not None and time.monotonic() - told > LEAVING_SECONDS:
                terminate(mpirun)
                return None
            time.sleep(POLL_SECONDS)
    # The exit code is not enough: Open MPI 5 may return 0 after it lost a host.
    answer = after.read_text()
    return answer if mpirun.returncode == 0 and answer.endswith("}\n") else None


def terminate(mpirun: "subprocess.Popen[bytes]") -> None:
    mpirun.terminate()
    try:
        mpirun.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        mpirun.kill()
        mpirun.wait()


def save(file: Path, state: str) -> None:
    """Replace the file at once: a reader sees the old state or the new one."""
    new = file.with_suffix(".new")
    new.write_text(state)
    new.replace(file)


def names(hosts: "Hosts | set[str]") -> str:
    return ", ".join(sorted(host.partition(".")[0] for host in hosts))


def main() -> None:
    directory = Path(tempfile.mkdtemp())
    progress = directory / "progress.json"
    save(progress, json.dumps({"round": 0, "weights": [0.0, 0.0, 0.0], "loss": None}))
    last_success = time.monotonic()
    while (done := json.loads(progress.read_text())["round"]) < ROUNDS:
        if time.monotonic() - last_success > TIMEOUT_SECONDS:
            sys.exit(f"no round has succeeded for {TIMEOUT_SECONDS:.0f}s")
        hosts = running_hosts()
        if not hosts:
            time.sleep(POLL_SECONDS)
            continue
        print(f"round {done + 1} begins on {names(hosts)}", flush=True)
        state = run_round(hosts, progress.read_text(), directory)
        if state is None:
            print(f"round {done + 1} is repeated", flush=True)
            time.sleep(PAUSE_SECONDS)
            continue
        save(progress, state)
        last_success = time.monotonic()
        result = json.loads(state)
        loss, workers = result["loss"], ", ".join(result["hosts"])
        print(f"round {result['round']} done by {workers}: loss {loss:.6f}", flush=True)
        # `mpijob run` and `mpijob describe` show this line as a bar.
        print(f"progress: step={result['round']} total={ROUNDS} loss={loss:.4g}", flush=True)
    print(f"{ROUNDS} rounds are done", flush=True)


if __name__ == "__main__":
    main()
