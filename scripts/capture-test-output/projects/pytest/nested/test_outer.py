import subprocess
import sys

def test_runs_pytest_inside():
    done = subprocess.run([sys.executable, "-m", "pytest", "inner_cases.py"], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0
