"""The nouns: values without behaviour beyond their own consistency. No disk, clock, network or process."""
