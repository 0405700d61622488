"""The least that an apply must do: create exports with so many requests at once.

Run: python creates.py BASE_URL KEY COUNT PARALLELISM, on a service with projects 1 to 20.
"""

import asyncio
import sys
from collections.abc import Iterator

import httpx
import orjson

BODY = {
    "model": "events",
    "interval": "hour",
    "destination": {
        "type": "S3",
        "config": {"bucket_name": "acme", "region": "eu-central-1", "prefix": "web/"},
    },
}


async def create(client: httpx.AsyncClient, numbers: Iterator[int]) -> None:
    """Create the exports with the next numbers, until there are none."""
    for number in numbers:
        body = orjson.dumps({**BODY, "name": f"Export {number}"})
        path = f"/api/projects/{number % 20 + 1}/batch_exports/"
        answer = await client.post(path, content=body)
        orjson.loads(answer.raise_for_status().content)


async def main() -> None:
    """Create all exports."""
    base_url, key, count, parallelism = sys.argv[1:]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    numbers = iter(range(int(count)))
    async with httpx.AsyncClient(base_url=base_url, headers=headers, timeout=60) as client:
        await asyncio.gather(*(create(client, numbers) for _ in range(int(parallelism))))


asyncio.run(main())
