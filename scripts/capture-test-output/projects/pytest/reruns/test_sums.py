from pathlib import Path

def test_steady():
    assert True

def test_second_time_lucky():
    marker = Path("tried")
    if not marker.exists():
        marker.touch()
        assert False, "first try"

def test_never():
    assert False
