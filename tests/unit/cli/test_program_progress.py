import pytest

from mpi_operator.cli.job_output.program_progress import ProgramProgress


def shown(*lines: str, pace: float = 1.0) -> str:
    """What is shown after these lines, with the same time between each."""
    progress = ProgramProgress()
    for number, line in enumerate(lines):
        progress.note(line.encode(), number * pace)
    return progress.line


def test_a_report_is_a_bar_with_everything_that_the_program_said():
    line = "progress: step=40 total=100 loss=0.25 images/s=812.5"
    assert shown(line) == "[########------------] 40/100  loss 0.25  812.5 images/s"


def test_the_time_left_follows_from_the_pace():
    steps = ["progress: step=10 total=100", "progress: step=20 total=100"]
    assert shown(*steps).endswith("20/100  8s left")
    assert shown(*steps, pace=10).endswith("20/100  1m 20s left")
    assert shown(*steps, pace=1000).endswith("20/100  2h 13m left")


def test_the_pace_is_that_of_the_last_reports():
    slow = [f"progress: step={step} total=1000" for step in range(1, 11)]
    progress, now = ProgramProgress(), 0.0
    for line in slow:
        progress.note(line.encode(), now)
        now += 100
    for step in range(11, 100):
        progress.note(f"progress: step={step} total=1000".encode(), now)
        now += 1
    assert progress.line.endswith("99/1000  15m 1s left")


def test_at_the_end_no_time_is_left():
    assert shown("progress: step=1 total=2", "progress: step=2 total=2") == (
        "[####################] 2/2"
    )


def steps(*numbers: int) -> list[str]:
    return [f"progress: step={step} total=100" for step in numbers]


def test_a_program_that_starts_again_has_a_new_pace():
    assert shown(*steps(80, 90, 10, 20, 30)) == "[######--------------] 30/100  7s left"
    assert shown(*steps(80, 90, 10, 20, 30, 95)) == "[###################-] 95/100  0s left"


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        pytest.param((10, 20, 10), "20/100  8s left", id="one line"),
        pytest.param((10, 20, 30, 20, 40), "40/100  8s left", id="and another step after it"),
        pytest.param((10, 20, 30, 20, 20, 20, 20), "30/100  7s left", id="lines of many ranks"),
        pytest.param((10, 20, 30, 10, 20, 30), "30/100  7s left", id="two steps of a slow rank"),
        pytest.param((20, 10), "20/100", id="the first line was read in part of a log"),
    ],
)
def test_a_late_line_of_another_rank_changes_nothing(numbers, line):
    assert shown(*steps(*numbers)).endswith(line)


def test_the_pace_is_known_with_any_number_of_ranks():
    progress = ProgramProgress()
    for time, line in enumerate(steps(10, 20)):
        for _ in range(100):
            progress.note(line.encode(), time)
    assert progress.line.endswith("20/100  8s left")


def test_the_line_has_what_was_said_last_about_a_step():
    said = ["progress: step=1 total=2 loss=2", "progress: step=1 total=2 loss=1"]
    assert shown(*said).endswith("1/2  loss 1")


@pytest.mark.parametrize("tag", ["[0]<stdout>:", "[1,0]<stdout>: ", "2026-11-18 worker-0 | "])
def test_the_tags_of_mpirun_and_horovodrun_do_not_hide_a_report(tag):
    assert "7/10" in shown(f"{tag}progress: step=7 total=10")


def test_the_lines_of_tf_cnn_benchmarks_are_reports_too():
    assert shown(
        "Num batches: 100",
        "40\timages/sec: 154.4 +/- 0.7 (jitter = 4.0)\t8.280",
        "50\timages/sec: 154.8 +/- 0.6 (jitter = 4.0)\t8.397",
    ) == ("[##########----------] 50/100  loss 8.397  154.8 images/s  5s left")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no progress: nothing happens",
        "progress: step=one total=2",
        "progress: step=1",
        "progress: total=2 step=1",
        "40\timages/sec: 154.4 +/- 0.7 (jitter = 4.0)\t8.280",
        "Num batches: 100",
    ],
)
def test_other_lines_are_not_reports(line):
    assert shown(line) == ""


@pytest.mark.parametrize("total", ["0", "-1", "3"])
def test_a_total_that_cannot_be_right_breaks_nothing(total):
    assert f"5/{total}" in shown(f"progress: step=5 total={total}")


def test_a_report_cannot_control_the_terminal():
    assert "\x1b" not in shown("progress: step=1 total=2 loss=\x1b[31mred")
