"""Every SDK's own tests, and that they ran each case of each family of vectors."""

import pytest

from tests.languages import sdks, table, vectors
from tests.languages.sdks import Sdk

SECONDS = 280.0


@pytest.mark.timeout(300)
def test_none_is_left_out(sdk: Sdk, session: str, request: pytest.FixtureRequest) -> None:
    environ = sdks.environ_of(sdk, session)
    said = sdks.run(sdk, sdk.vectors(session), seconds=SECONDS, **environ)
    ran = vectors.ran(said)
    assert ran == {sdk.name: vectors.expected(sdk.name)}, said
    table.said(request.node, table.VECTORS, f"{sdk.name} {sum(ran[sdk.name].values())}")
