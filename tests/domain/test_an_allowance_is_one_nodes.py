import pytest

from controlplane.domain import allow_list
from controlplane.domain.errors import FieldFault
from controlplane.domain.keys import allowance, check_allow


def test_entries_are_kept_as_written_each_once():
    assert check_allow(["10.1.0.0/16:8001, a.internal", "a.internal"], "worker") == ("10.1.0.0/16:8001", "a.internal")
    assert check_allow([], None) == ()


def test_it_needs_a_node():
    with pytest.raises(FieldFault, match="bound to a node"):
        check_allow(["10.1.2.3"], None)


@pytest.mark.parametrize("wide", ["0.0.0.0/0", "10.0.0.0/7", "fc00::/7"])
def test_a_wide_network_needs_the_dangerous_setting(wide: str):
    with pytest.raises(FieldFault, match="HOLDSHORT_DANGEROUS_CALLBACK_ALLOW"):
        check_allow([wide], "worker")
    assert allowance(check_allow([wide], "worker", dangerous=True)) == allow_list.parse(wide, dangerous=True)


@pytest.mark.parametrize("never", ["169.254.169.254", "fe80::/64", "224.0.0.1", "0.0.0.0", "fd00:ec2::254"])
def test_what_is_never_called_is_no_entry_of_it(never: str):
    with pytest.raises(FieldFault, match="never called"):
        check_allow([never], "worker", dangerous=True)


def test_entries_that_cannot_be_read_allow_nothing():
    assert allowance(("10.1.0.0/16:8001",)) == allow_list.parse("10.1.0.0/16:8001")
    assert allowance(("10.1.0.0/16:8001", "no network/99")) == ()
    assert allowance(()) == ()
