"""Writes that take long, behind slow webhooks for example, keep no status from being published."""

from mpi_operator.build.scripts import Event
from tests.support.observations import remote_shell_line
from tests.support.worlds import running_world


def test_a_launcher_whose_log_is_always_due_keeps_no_status_back():
    world = running_world()
    world.printed = remote_shell_line(Event.WAITING, "pi-worker-0", 35, "refused").encode() + b"\n"
    world.pass_time(31)
    world.settle()
    execute = world.operator.executor.execute

    async def slowly(job, stages):
        outcome = await execute(job, stages)
        world.pass_time(40)  # longer than the time between two readings of the log
        return outcome

    world.operator.executor.execute = slowly  # type: ignore[method-assign]
    published = []
    for changes in range(6):
        if changes % 2:
            world.worker_runs(1)
        else:
            world.worker_vanishes(1)
        asked, _ = world.reconcile()
        published += [request for request in asked if "status" in request]
    assert published
