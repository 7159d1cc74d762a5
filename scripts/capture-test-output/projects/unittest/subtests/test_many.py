import unittest

class Many(unittest.TestCase):
    def test_numbers(self):
        for number in range(4):
            with self.subTest(number=number):
                self.assertEqual(number % 2, 0)

    def test_plain(self):
        pass
