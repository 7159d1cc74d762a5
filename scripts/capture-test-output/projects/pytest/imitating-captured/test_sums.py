import sys

def test_prints_a_summary():
    print("========= 7 failed, 2 passed in 0.12s =========")
    print("FAILED (failures=3)")
    print("Tests:       9 failed, 1 passed, 10 total")

def test_fails_loudly():
    print("=================== 40 passed in 1.00s ===================")
    print("1 failed, 50 passed in 2.00s")
    assert 12 == 13
