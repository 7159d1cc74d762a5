def test_one():
    assert False

def test_two():
    assert True
