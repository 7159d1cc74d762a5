import sys
import unittest

class Loud(unittest.TestCase):
    def test_prints(self):
        print("Ran 99 tests in 0.001s", file=sys.stderr)
        print("", file=sys.stderr)
        print("FAILED (failures=12, errors=3)", file=sys.stderr)

    def test_prints_ok(self):
        print("Ran 7 tests in 0.100s\n\nOK", file=sys.stderr)
        self.fail("on purpose")
