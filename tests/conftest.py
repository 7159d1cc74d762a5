"""What every test may rely on."""

import signal

# Whoever starts the tests in the background of a script has them ignore SIGINT, and all that they start: restored,
# since a test that interrupts a process would wait for its end in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
