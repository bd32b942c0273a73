"""The crew: every worker of a process, started together and stopped together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controlplane.runtime import Pulse, Runtime
from controlplane.workers.desk import keep_desk
from controlplane.workers.dispatcher import Dispatcher
from controlplane.workers.feedback_askers import AskerKeeper
from controlplane.workers.feedback_board import BoardKeeper
from controlplane.workers.feedback_sweeper import FeedbackSweeper
from controlplane.workers.heads import HeadWriter
from controlplane.workers.key_keeper import KeyKeeper
from controlplane.workers.launcher import Launcher
from controlplane.workers.leases import Follower, Leases
from controlplane.workers.loop import repeat
from controlplane.workers.news import Notifier, Tail, listen_for_ever
from controlplane.workers.recovery import Recovery
from controlplane.workers.sealer import Sealer
from controlplane.workers.session_keeper import SessionKeeper
from controlplane.workers.sweeper import Sweeper

DRAIN_SECONDS = 6.0


@asynccontextmanager
async def running(runtime: Runtime) -> AsyncIterator[None]:
    """Run every worker for the length of a block; at its end what is being sent may end, up to 6 s."""
    heard = Pulse()
    dispatcher, launcher, tail = Dispatcher(runtime), Launcher(runtime), Tail(runtime)
    # Its first look only takes a mark: an end between a wait's own look and a later mark would be seen by neither.
    await tail.step()
    loops = [
        repeat("dispatcher", dispatcher.step, runtime.due),
        repeat("launcher", launcher.step, runtime.work),
        repeat("leases", Leases(runtime).step, Pulse()),
        repeat("follower", Follower(runtime).step, runtime.work),
        repeat("recovery", Recovery(runtime).step, runtime.work),
        repeat("key_keeper", KeyKeeper(runtime).step, Pulse()),
        repeat("session_keeper", SessionKeeper(runtime).step, Pulse()),
        repeat("sweeper", Sweeper(runtime).step, Pulse()),
        repeat("asker_keeper", AskerKeeper(runtime).step, Pulse()),
        repeat("board_keeper", BoardKeeper(runtime).step, Pulse()),
        repeat("feedback_sweeper", FeedbackSweeper(runtime).step, Pulse()),
        repeat("sealer", Sealer(runtime).step, Pulse()),
        repeat("tail", tail.step, heard),
        repeat("notifier", Notifier(runtime).step, runtime.wrote),
        keep_desk(runtime),
    ]
    if runtime.settings.audit_heads is not None:
        loops.append(repeat("heads", HeadWriter(runtime, runtime.settings.audit_heads).step, Pulse()))
    if runtime.settings.listen:
        loops.append(listen_for_ever(runtime, heard))
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await asyncio.gather(dispatcher.drain(), launcher.drain())
        except TimeoutError:
            pass
