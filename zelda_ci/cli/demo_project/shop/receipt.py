"""The receipt of a cart, with the tax that is contained in it."""

from shop.cart import Cart

TAX_PERCENT = 19


def tax_cents(cart: Cart) -> int:
    """Tax contained in the total, in cents."""
    return sum(round(line.cents * TAX_PERCENT / (100 + TAX_PERCENT)) for line in cart.lines)


def amount(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def receipt(cart: Cart) -> str:
    lines = [f"{line.quantity} x {line.name}: {amount(line.cents)}" for line in cart.lines]
    return "\n".join([*lines, f"total: {amount(cart.total_cents())}", f"tax: {amount(tax_cents(cart))}"])
