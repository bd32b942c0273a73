"""A process that does nothing but seal, in small parts and without a rest, until it is killed."""

import asyncio
import sys

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.services import audit
from controlplane.storage.engine import make_engine, transaction

BATCH = 5


async def seal_for_ever(url: str) -> None:
    engine = make_engine(url, pool_size=1)
    print("sealing", flush=True)
    while True:
        try:
            async with transaction(engine) as conn:
                await audit.seal(conn, BATCH)
        except DatabaseUnavailable:
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(seal_for_ever(sys.argv[1]))
