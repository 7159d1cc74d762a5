import pytest

def test_adds():
    assert 1 + 1 == 2

def test_rejects_5_failed_logins():
    assert True

def test_subtracts():
    assert 3 - 1 == 2

def test_multiplies():
    assert 2 * 2 == 5

def test_divides():
    assert 4 / 2 == 3

@pytest.fixture
def broken():
    raise RuntimeError("no database")

def test_reads(broken):
    assert True

@pytest.mark.skip(reason="later")
def test_writes():
    assert False
