import unittest
from django.test import TestCase

class Orders(TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    def test_ships(self):
        self.assertEqual(1, 2)

    def test_crashes(self):
        raise RuntimeError("no stock")

    @unittest.skip("later")
    def test_returns(self):
        pass

class Carts(TestCase):
    def test_rejects_5_failed_logins(self):
        self.assertTrue(True)
