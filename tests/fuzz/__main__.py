"""`python -m tests.fuzz` (`make fuzz`): every target at length, on all processors, with a table at the end."""

import sys

from tests.fuzz.running import main

sys.exit(main(sys.argv[1:]))
