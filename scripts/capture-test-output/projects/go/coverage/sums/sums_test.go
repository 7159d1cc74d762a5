package sums

import "testing"

func TestA(t *testing.T) { Add(1, 2) }
