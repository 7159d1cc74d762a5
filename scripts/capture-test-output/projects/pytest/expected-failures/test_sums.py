import pytest

@pytest.mark.xfail
def test_known_bug():
    assert False

@pytest.mark.xfail
def test_fixed_bug():
    assert True

def test_plain():
    assert True
