package sums

import (
	"fmt"
	"testing"
)

func TestAdds(t *testing.T) {}

func TestTable(t *testing.T) {
	for _, name := range []string{"rejects 5 failed logins", "ok", "bad"} {
		t.Run(name, func(t *testing.T) {
			if name == "bad" {
				t.Error("FAIL: 9 failed")
			}
		})
	}
}

func TestPrints(t *testing.T) {
	fmt.Println("--- FAIL: TestImaginary (0.00s)")
	fmt.Println("ok  \texample.com/imaginary\t0.001s")
	fmt.Print("no newline at the end")
}

func TestLater(t *testing.T) { t.Skip("later") }
