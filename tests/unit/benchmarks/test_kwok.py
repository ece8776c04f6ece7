"""The configuration of kwok."""

import yaml

from benchmarks.operators.kwok import configuration


def test_kwok_gets_only_kinds_that_it_knows():
    documents = list(yaml.safe_load_all(configuration(launchers_end=True)))
    kinds = {(each["apiVersion"], each["kind"]) for each in documents}
    assert kinds == {
        ("config.kwok.x-k8s.io/v1alpha1", "KwokConfiguration"),
        ("kwok.x-k8s.io/v1alpha1", "Stage"),
    }
