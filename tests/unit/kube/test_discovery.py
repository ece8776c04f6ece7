import pytest

from mpi_operator.kube import discovery, errors
from mpi_operator.kube.resources import JOBS
from tests.support.api_server import client_of, says, serving

BATCH = {
    "kind": "APIResourceList",
    "groupVersion": "batch/v1",
    "resources": [
        {
            "name": "jobs",
            "singularName": "job",
            "namespaced": True,
            "kind": "Job",
            "verbs": ["create", "get"],
            "shortNames": ["j"],
            "categories": ["all"],
        },
        {"name": "jobs/status", "namespaced": True, "kind": "Job", "verbs": ["get"]},
        {"name": "odd", "namespaced": False, "kind": "Odd", "verbs": None},
    ],
}


async def ask(question, *answers):
    async with serving(*map(says, answers)) as server, client_of(server) as client:
        return await question(client)


async def test_the_version_of_a_server():
    assert await ask(discovery.server_version, {"gitVersion": "v1.36.4"}) == "v1.36.4"


async def test_the_versions_of_the_api_favourites_first():
    groups = {
        "groups": [
            {
                "name": "a",
                "versions": [{"groupVersion": "a/v1", "version": "v1"}, {"groupVersion": "a/v2"}],
                "preferredVersion": {"groupVersion": "a/v2"},
            }
        ]
    }
    answered = await ask(discovery.api_versions, {"versions": ["v1"]}, groups)
    assert answered == ["v1", "a/v2", "a/v1"]


async def test_the_kinds_of_a_group():
    jobs, odd = await ask(lambda client: discovery.served(client, "batch/v1"), BATCH)
    assert jobs.resource == JOBS
    assert (odd.resource.kind, odd.resource.namespaced) == ("Odd", False)


@pytest.mark.parametrize("answer", [{"resources": None}, {"resources": []}, {}], ids=str)
async def test_a_group_without_kinds(answer):
    assert await ask(lambda client: discovery.served(client, "v1"), answer) == []


async def test_an_unknown_group_has_no_kinds():
    async with serving(says({}, 404)) as server, client_of(server) as client:
        assert await discovery.served(client, "nobody.example.com/v1") == []
        assert server.seen == ["GET /apis/nobody.example.com/v1"]


@pytest.mark.parametrize("body", [b"<html>", b"null", b"[]", b'{"gitVersion": 1}'], ids=repr)
async def test_an_answer_that_makes_no_sense_is_an_error(body):
    with pytest.raises(errors.Undecodable, match="get /version: the response does not conform"):
        await ask(discovery.server_version, body)
