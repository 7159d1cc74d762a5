package broken

import "testing"

func TestA(t *testing.T) { missing() }
