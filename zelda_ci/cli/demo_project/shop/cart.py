"""A cart of goods. Amounts are whole cents."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    name: str
    unit_cents: int
    quantity: int = 1

    @property
    def cents(self) -> int:
        return self.unit_cents * self.quantity


class Cart:
    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, name: str, unit_cents: int, quantity: int = 1) -> None:
        if quantity < 1:
            raise ValueError(f"quantity must be at least 1, not {quantity}")
        self.lines.append(Line(name, unit_cents, quantity))

    def total_cents(self) -> int:
        return sum(line.cents for line in self.lines)
