from pathlib import Path

from benchmarks.operators.subjects import ALL, GO, OURS, TUNED, turns

KUBECONFIG = Path("/tmp/its.kubeconfig")


def command(subject):
    return subject.command(Path("/bin/go-operator"), KUBECONFIG, 20001)


def test_each_command_names_the_kubeconfig_the_lock_namespace_and_the_port():
    assert {
        f"--kubeconfig={KUBECONFIG}",
        "--lock-namespace=lock-ours",
        "--health-port=20001",
    } < set(command(OURS))
    assert {
        f"-kubeConfig={KUBECONFIG}",
        "-lock-namespace=lock-tuned",
        "-monitoring-port=20001",
    } < set(command(TUNED))


def test_the_tuned_one_differs_from_the_shipped_one_only_in_its_limits():
    def flags(subject):
        return {flag.replace(f"lock-{subject.name}", "lock") for flag in command(subject)}

    assert flags(TUNED) - flags(GO) == set(TUNED.flags)
    assert flags(GO) - flags(TUNED) == set()


def test_no_two_subjects_share_a_user_or_a_lease():
    assert len({each.user for each in ALL}) == len({each.lock_namespace for each in ALL}) == 3


def test_the_order_changes_from_round_to_round():
    assert [list(turns("ab", number)) for number in range(3)] == [
        ["a", "b"],
        ["b", "a"],
        ["a", "b"],
    ]
