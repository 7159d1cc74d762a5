package sums

import "testing"

func TestA(t *testing.T) {}

func TestB(t *testing.T) { t.Fail() }
