import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self) -> None:
        self.assertEqual(Cart().total_cents(), 0)

    def test_the_total_is_the_sum_of_the_lines(self) -> None:
        cart = Cart()
        cart.add("apple", 35, 4)
        cart.add("bread", 249)
        self.assertEqual(cart.total_cents(), 389)

    def test_a_quantity_below_one_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            Cart().add("apple", 35, 0)
