package loud

import "testing"

func TestA(t *testing.T) {}

func TestB(t *testing.T) { panic("no") }
