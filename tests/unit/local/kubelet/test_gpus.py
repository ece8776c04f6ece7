"""The GPUs of the machine, and the variables that assign them."""

from pathlib import Path

import pytest

from mpi_operator.local.kubelet.gpus import listed, variables, visible

TWO = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-77aa1c02-9f10)
"""
DIVIDED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4)
  MIG 3g.20gb     Device  1: (UUID: MIG-GPU-5d5ba0d6-d33d/7/0)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-77aa1c02-9f10)
"""


@pytest.fixture
def devices(tmp_path):
    place = tmp_path / "dev"
    place.mkdir()
    for name in ("nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (place / name).touch()
    return place


def driver(directory: Path, script: str) -> dict[str, str]:
    """An environment in which `nvidia-smi` is found."""
    program = directory / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(directory)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("1,GPU-abc", ("1", "GPU-abc"), id="numbers and identities"),
        pytest.param("", (), id="none"),
        pytest.param("-1", (), id="none, as people write it"),
        pytest.param("0, -1, 1", ("0",), id="CUDA stops at what is none"),
    ],
)
def test_what_the_variable_says_is_what_there_is(given, expected, devices):
    assert visible({"CUDA_VISIBLE_DEVICES": given}, devices) == expected


def test_else_the_driver_is_asked(tmp_path, devices):
    environment = driver(tmp_path, f"test $1 = -L && cat <<'end'\n{TWO}end")
    assert visible(environment, devices) == ("GPU-5d5ba0d6-d33d", "GPU-77aa1c02-9f10")


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found"])
def test_else_devices_are_counted(tmp_path, devices, script):
    assert visible(driver(tmp_path, script), devices) == ("0", "2", "10")
    assert visible({"PATH": ""}, devices) == ("0", "2", "10")


def test_a_gpu_that_is_divided_is_used_in_parts():
    assert listed(DIVIDED) == (
        "MIG-c6d4f1ef-42e4",
        "MIG-GPU-5d5ba0d6-d33d/7/0",
        "GPU-77aa1c02-9f10",
    )


def test_gpus_are_named_for_cuda_and_for_containers():
    assert variables(["0", "2"]) == {
        "CUDA_VISIBLE_DEVICES": "0,2",
        "NVIDIA_VISIBLE_DEVICES": "0,2",
    }
