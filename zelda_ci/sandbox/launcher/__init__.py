"""Small programs that start others confined; run by a Python without site-packages."""
