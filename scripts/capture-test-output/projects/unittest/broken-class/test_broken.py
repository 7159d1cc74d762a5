import unittest

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("no database")

    def test_never_runs(self):
        pass

class Fine(unittest.TestCase):
    def test_runs(self):
        pass
