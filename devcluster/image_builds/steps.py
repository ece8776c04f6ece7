"""The steps of a build, run in the order of their needs, several at once."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from devcluster.binaries import Say

_AT_ONCE = 2


@dataclass(frozen=True)
class Step:
    """One step, which runs after those that it needs."""

    name: str
    usual: str
    """How long it usually takes; a step without it is not reported."""
    needs: tuple[str, ...]
    make: Callable[[], None]


def run(steps: Sequence[Step], say: Say, at_once: int = _AT_ONCE) -> None:
    """Run the steps in order. After a failure no new step starts."""
    waiting, running, done = list(steps), dict[Future[None], Step](), set[str]()
    with ThreadPoolExecutor(at_once) as pool:
        while waiting or running:
            ready = [step for step in waiting if done.issuperset(step.needs)]
            for step in ready[: at_once - len(running)]:
                waiting.remove(step)
                running[pool.submit(_timed, step, say)] = step
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                done.add(running.pop(future).name)


def _timed(step: Step, say: Say) -> None:
    if not step.usual:
        step.make()
        return
    say(f"{step.name}: building (usually {step.usual})")
    started = time.monotonic()
    step.make()
    say(f"{step.name}: built in {time.monotonic() - started:.0f}s")
