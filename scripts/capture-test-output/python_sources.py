"""Tests for pytest, unittest, nose2 and Django."""

from cases import text

MIXED = text("""
    import pytest

    def test_adds():
        assert 1 + 1 == 2

    def test_rejects_5_failed_logins():
        assert True

    def test_subtracts():
        assert 3 - 1 == 2

    def test_multiplies():
        assert 2 * 2 == 5

    def test_divides():
        assert 4 / 2 == 3

    @pytest.fixture
    def broken():
        raise RuntimeError("no database")

    def test_reads(broken):
        assert True

    @pytest.mark.skip(reason="later")
    def test_writes():
        assert False
""")
IMITATING = text("""
    import sys

    def test_prints_a_summary():
        print("========= 7 failed, 2 passed in 0.12s =========")
        print("FAILED (failures=3)")
        print("Tests:       9 failed, 1 passed, 10 total")

    def test_fails_loudly():
        print("=================== 40 passed in 1.00s ===================")
        print("1 failed, 50 passed in 2.00s")
        assert 12 == 13
""")
PASSING = text("""
    import pytest

    @pytest.mark.parametrize("name", ["5 failed", "3 errors in 0.2s", "ok"])
    def test_name(name):
        assert name

    def test_last():
        assert True
""")
EXPECTED = text("""
    import pytest

    @pytest.mark.xfail
    def test_known_bug():
        assert False

    @pytest.mark.xfail
    def test_fixed_bug():
        assert True

    def test_plain():
        assert True
""")
TEARDOWN = text("""
    import pytest

    @pytest.fixture
    def leaky():
        yield
        raise RuntimeError("cannot clean up")

    def test_uses_it(leaky):
        assert True

    def test_other():
        assert True
""")
FLAKY = text("""
    from pathlib import Path

    def test_steady():
        assert True

    def test_second_time_lucky():
        marker = Path("tried")
        if not marker.exists():
            marker.touch()
            assert False, "first try"

    def test_never():
        assert False
""")
NESTED = text("""
    import subprocess
    import sys

    def test_runs_pytest_inside():
        done = subprocess.run([sys.executable, "-m", "pytest", "inner_cases.py"], capture_output=True, text=True)
        print(done.stdout)
        assert done.returncode == 0
""")
INNER = text("""
    def test_one():
        assert False

    def test_two():
        assert True
""")
UNIT = text("""
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
""")
UNIT_PASSING = text("""
    import unittest

    class Sums(unittest.TestCase):
        def test_adds(self):
            self.assertEqual(1 + 1, 2)

        def test_subtracts(self):
            self.assertEqual(1 - 1, 0)
""")
UNIT_SKIPPING = text("""
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
""")
UNIT_IMITATING = text("""
    import sys
    import unittest

    class Loud(unittest.TestCase):
        def test_prints(self):
            print("Ran 99 tests in 0.001s", file=sys.stderr)
            print("", file=sys.stderr)
            print("FAILED (failures=12, errors=3)", file=sys.stderr)

        def test_prints_ok(self):
            print("Ran 7 tests in 0.100s\\n\\nOK", file=sys.stderr)
            self.fail("on purpose")
""")
UNIT_SUBTESTS = text("""
    import unittest

    class Many(unittest.TestCase):
        def test_numbers(self):
            for number in range(4):
                with self.subTest(number=number):
                    self.assertEqual(number % 2, 0)

        def test_plain(self):
            pass
""")
UNIT_BROKEN = text("""
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
""")
SETTINGS = text("""
    SECRET_KEY = "x"
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    INSTALLED_APPS = ["shop"]
    USE_TZ = True
""")
MANAGE = text("""
    import os
    import sys
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
""")
SHOP = text("""
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
""")
DJANGO_PROJECT = {"settings.py": SETTINGS, "manage.py": MANAGE, "shop/__init__.py": "", "shop/tests.py": SHOP}
CALCULATOR = text("""
    def add(a, b):
        if a > 100:
            return None
        return a + b

    def unused():
        first = 1
        second = 2
        return first + second
""")
COVERED = text("""
    from calculator import add

    def test_add():
        assert add(1, 2) == 3
""")
