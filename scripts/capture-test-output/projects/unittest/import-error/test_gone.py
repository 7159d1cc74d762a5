import nowhere
