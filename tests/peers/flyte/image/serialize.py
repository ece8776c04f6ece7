"""Print all tasks as Flyte's back end gets them: by name, serialised by flytekit, in base64.

Runs in the environment of flytekit: python serialize.py IMAGE
"""

import base64
import json
import sys
from collections import OrderedDict

import tasks
from flytekit import PythonFunctionTask
from flytekit.configuration import ImageConfig, SerializationSettings
from flytekit.tools.translator import get_serializable


def main(image: str) -> None:
    settings = SerializationSettings(
        image_config=ImageConfig.auto(img_name=image),
        project="project",
        domain="development",
        version="1",
        python_interpreter="/opt/venv/bin/python",
    )
    found = {name: each for name, each in vars(tasks).items() if _is_task(each)}
    print(json.dumps({name: serialized(settings, each) for name, each in found.items()}))


def _is_task(thing: object) -> bool:
    return isinstance(thing, PythonFunctionTask)


def serialized(settings: SerializationSettings, task: PythonFunctionTask) -> str:
    spec = get_serializable(OrderedDict(), settings, task)
    return base64.b64encode(spec.template.to_flyte_idl().SerializeToString()).decode()


main(*sys.argv[1:])
