"""A client of the webhook on this machine that trusts given authorities only, as API servers do."""

import io
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp


async def call(
    port: int,
    path: str,
    body: Any = None,
    *,
    authorities: Sequence[str] = (),
    name: str = "localhost",
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """POST JSON, or GET without a body; the status, and the JSON or text of the answer."""
    context = ssl.create_default_context(cadata="".join(authorities))
    url = f"https://127.0.0.1:{port}{path}"
    method = "GET" if body is None and data is None else "POST"
    content: dict[str, Any] = (
        {"data": io.BytesIO(data)}
        if data is not None
        else {"json": body}
        if body is not None
        else {}
    )
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, url, ssl=context, server_hostname=name, headers=headers, **content
        ) as answer,
    ):
        is_json = answer.content_type == "application/json"
        return answer.status, await answer.json() if is_json else await answer.text()
