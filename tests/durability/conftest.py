"""What proofs are typed with."""

from tests.figures import Figures

__all__ = ["Figures"]
