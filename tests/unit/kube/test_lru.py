from mpi_operator.kube.lru import LRU


def test_what_is_known_is_recalled():
    memory = LRU[str, int](2)
    assert [memory.get_or_create("a", lambda: 1), memory.get_or_create("a", lambda: 2)] == [1, 1]


def test_what_was_not_asked_for_longest_is_forgotten():
    memory = LRU[str, int](2)
    for key in "abac":
        memory.get_or_create(key, lambda: 1)
    assert [memory.get_or_create(key, lambda: 2) for key in "acb"] == [1, 1, 2]
    assert len(memory) == 2
