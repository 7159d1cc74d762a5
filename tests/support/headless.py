"""A program whose first thread ends while another goes on: the kernel shows such a process like a dead one."""

CODE = """
import ctypes, os, threading, time
def go_on():
    time.sleep(0.1)
    {work}
    time.sleep(60)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)
"""


def headless(work: str) -> str:
    """The program, which does some work after its first thread has ended."""
    return CODE.format(work=work)


def headless_that_writes_its_number(file: object) -> str:
    return headless(f"print(os.getpid(), file=open('{file}', 'w'), flush=True)")
