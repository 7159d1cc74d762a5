"""Small programs that start others confined, by a Python without site-packages; they import nothing else of Zelda."""
