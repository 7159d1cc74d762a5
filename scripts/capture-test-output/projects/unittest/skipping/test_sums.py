import unittest

class Sums(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    @unittest.skip("later")
    def test_one(self):
        pass

    @unittest.skip("FAILED (failures=4)")
    def test_two(self):
        pass
