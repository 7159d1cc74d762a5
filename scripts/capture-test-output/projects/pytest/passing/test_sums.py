import pytest

@pytest.mark.parametrize("name", ["5 failed", "3 errors in 0.2s", "ok"])
def test_name(name):
    assert name

def test_last():
    assert True
