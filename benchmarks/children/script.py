"""A bare script that fetches the pages of the lists, and composes the files.

Run: python script.py JOB, where JOB is that of baseline.py. Written as people write it, with the
asynchronous client. The program reads several lists at the same time, too.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import yaml

job = json.loads(Path(sys.argv[1]).read_bytes())


async def fetched() -> list[Any]:
    """Return the pages."""
    headers = {"Authorization": f"Bearer {job['key']}"}
    async with httpx.AsyncClient(base_url=job["base_url"], headers=headers, timeout=60) as client:
        answers = await asyncio.gather(*map(client.get, job["paths"]))
    return [answer.raise_for_status().json() for answer in answers]


kept = asyncio.run(fetched())
for file in job["files"]:
    text = Path(file).read_text(encoding="utf-8")
    kept.append(yaml.compose(text, Loader=yaml.CSafeLoader))
