import unittest

from shop.cart import Cart
from shop.receipt import receipt


class ReceiptTest(unittest.TestCase):
    def test_a_receipt_lists_lines_total_and_tax(self) -> None:
        cart = Cart()
        cart.add("bread", 249)
        self.assertEqual(receipt(cart), "1 x bread: 2.49\ntotal: 2.49\ntax: 0.40")
