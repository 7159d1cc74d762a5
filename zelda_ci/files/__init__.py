"""Files where somebody hostile, a second process or a full disk may be."""
