"""Makes the real things: engine, clock, entropy, and the places where a process's parts wake each other."""

from controlplane.runtime.ends import Eyes
from controlplane.runtime.happenings import Ear, Happening
from controlplane.runtime.pulse import Pulse
from controlplane.runtime.runtime import Runtime
from controlplane.runtime.waits import Wait, WaitHub

__all__ = ["Ear", "Eyes", "Happening", "Pulse", "Runtime", "Wait", "WaitHub"]
