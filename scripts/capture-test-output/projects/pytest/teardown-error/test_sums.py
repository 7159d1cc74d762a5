import pytest

@pytest.fixture
def leaky():
    yield
    raise RuntimeError("cannot clean up")

def test_uses_it(leaky):
    assert True

def test_other():
    assert True
