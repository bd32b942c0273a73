"""`python -m controlplane.cli` is the `holdshort` command."""

from controlplane.cli import main

main()
