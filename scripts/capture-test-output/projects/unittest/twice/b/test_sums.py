import unittest

class Sums(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    def test_subtracts(self):
        self.assertEqual(1 - 1, 0)
