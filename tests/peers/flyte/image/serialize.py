"""Print a task as Flyte's back end gets it: flytekit serialises it, in base64.

Runs in the environment of flytekit: python serialize.py IMAGE TASK
"""

import base64
import sys
from collections import OrderedDict

import tasks
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.tools.translator import get_serializable


def main(image: str, task: str) -> None:
    settings = SerializationSettings(
        image_config=ImageConfig.auto(img_name=image),
        project="project",
        domain="development",
        version="1",
        python_interpreter="/opt/venv/bin/python",
    )
    spec = get_serializable(OrderedDict(), settings, getattr(tasks, task))
    template = spec.template.to_flyte_idl().SerializeToString()
    print(base64.b64encode(template).decode())


main(*sys.argv[1:])
