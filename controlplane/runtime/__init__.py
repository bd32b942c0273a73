"""Makes the real things: engine, clock, entropy, and the places where a process's parts wake each other."""

from controlplane.runtime.board import Asked, Board, Change, Resolved
from controlplane.runtime.ends import Eyes
from controlplane.runtime.happenings import Ear, Happening
from controlplane.runtime.pulse import Pulse
from controlplane.runtime.runtime import Runtime
from controlplane.runtime.waits import Wait, WaitHub

__all__ = [
    "Asked",
    "Board",
    "Change",
    "Ear",
    "Eyes",
    "Happening",
    "Pulse",
    "Resolved",
    "Runtime",
    "Wait",
    "WaitHub",
]
