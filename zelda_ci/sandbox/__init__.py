"""How a run is confined: what the machine offers, and the programs that apply it."""
