"""Which numbers the workers of a job have: 0, 1, … unless a job shrank in another way.

When a job shrinks, the workers that are cheapest to lose go first, as their annotation says
(`controller.kubernetes.io/pod-deletion-cost`, as for ReplicaSets), and of equal ones the highest
number. So a number in the middle may become free. The hostfile says which ones the job has, and
survives a restart. A job that grows gets the lowest free numbers.

A file of its own, apart from `observed`: it is a pure rule over numbers, and tested as such.
"""

from collections.abc import Mapping
from itertools import count, islice


def worker_indexes(known: frozenset[int], wanted: int, costs: Mapping[int, int]) -> frozenset[int]:
    """The numbers of `wanted` workers, as near as possible to the known ones."""
    surplus = len(known) - wanted
    if surplus > 0:
        leaving = sorted(known, key=lambda index: (costs.get(index, 0), -index))[:surplus]
        return known.difference(leaving)
    free = (index for index in count() if index not in known)
    return known.union(islice(free, -surplus))
