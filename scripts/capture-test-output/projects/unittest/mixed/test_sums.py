import unittest

class Sums(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    def test_rejects_5_failed_logins(self):
        pass

    def test_multiplies(self):
        self.assertEqual(2 * 2, 5)

    def test_crashes(self):
        raise RuntimeError("no database")

    @unittest.skip("later")
    def test_writes(self):
        pass

    @unittest.expectedFailure
    def test_known_bug(self):
        self.fail()

    @unittest.expectedFailure
    def test_fixed_bug(self):
        pass

if __name__ == "__main__":
    unittest.main()
