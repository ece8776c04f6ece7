"""The launcher of a job that grows and shrinks: rounds of training on whatever workers there are.

It asks the operator's script which hosts run and starts `mpirun` on exactly those, round after
round. What is learnt is kept here, in a file, and given to each round on its stdin; so a worker
that leaves costs one round, which is repeated with those that stay. ROUNDS and STEPS are variables.
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
LOOK_EVERY = 0.2
PAUSE = 1.0
# A kubelet may take a minute to bring a new script to this pod.
PATIENCE = 180.0
GRACE = 5.0

Hosts = dict[str, int]


def running_hosts() -> Hosts:
    """The hosts that run, with their slots; none while the script is being replaced."""
    answer = subprocess.run(["sh", SCRIPT], capture_output=True, text=True, check=False)
    if answer.returncode:
        return {}
    pairs = (line.partition(":") for line in answer.stdout.split())
    return {host: int(slots or 1) for host, _, slots in pairs}


def play(hosts: Hosts, state: str, place: Path) -> str | None:
    """One round; the new state, or None if it came to nothing."""
    hostfile, asked, given = place / "hostfile", place / "asked", place / "given"
    hostfile.write_text("".join(f"{host} slots={slots}\n" for host, slots in hosts.items()))
    asked.write_text(f"{state.strip()}\n")
    ranks = str(sum(hosts.values()))
    command = ["mpirun", "--hostfile", str(hostfile), "-n", ranks, "--bind-to", "none"]
    with asked.open() as stdin, given.open("w") as stdout:
        mpirun = subprocess.Popen(
            [*command, "python3", "round.py", str(STEPS)], stdin=stdin, stdout=stdout
        )
        while mpirun.poll() is None:
            # mpirun may wait for long for a host that is gone, and need not notice at all.
            if gone := hosts.keys() - running_hosts().keys():
                print(f"{names(gone)} left", flush=True)
                end(mpirun)
                return None
            time.sleep(LOOK_EVERY)
    # The answer counts, not only the exit code: Open MPI 5 may return 0 after it lost a host.
    answer = given.read_text()
    return answer if mpirun.returncode == 0 and answer.endswith("}\n") else None


def end(mpirun: "subprocess.Popen[bytes]") -> None:
    mpirun.terminate()
    try:
        mpirun.wait(GRACE)
    except subprocess.TimeoutExpired:
        mpirun.kill()
        mpirun.wait()


def keep(file: Path, state: str) -> None:
    """Replaced as a whole: whoever reads it sees the old state or the new one."""
    draft = file.with_suffix(".new")
    draft.write_text(state)
    draft.replace(file)


def names(hosts: "Hosts | set[str]") -> str:
    return ", ".join(sorted(host.partition(".")[0] for host in hosts))


def main() -> None:
    place = Path(tempfile.mkdtemp())
    progress = place / "progress.json"
    keep(progress, json.dumps({"round": 0, "weights": [0.0, 0.0, 0.0], "loss": None}))
    last_success = time.monotonic()
    while (done := json.loads(progress.read_text())["round"]) < ROUNDS:
        if time.monotonic() - last_success > PATIENCE:
            sys.exit(f"no round has succeeded for {PATIENCE:.0f} s")
        hosts = running_hosts()
        if not hosts:
            time.sleep(LOOK_EVERY)
            continue
        print(f"round {done + 1} begins on {names(hosts)}", flush=True)
        state = play(hosts, progress.read_text(), place)
        if state is None:
            print(f"round {done + 1} is repeated", flush=True)
            time.sleep(PAUSE)
            continue
        keep(progress, state)
        last_success = time.monotonic()
        told = json.loads(state)
        workers = ", ".join(told["hosts"])
        print(f"round {told['round']} done by {workers}: loss {told['loss']:.6f}", flush=True)
    print(f"{ROUNDS} rounds are done", flush=True)


if __name__ == "__main__":
    main()
