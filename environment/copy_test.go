package environment

import (
	"testing"

	"tendril/config"
)

// TestNoTwoCopiesGetOneAddress, also where the first does not listen yet.
func TestNoTwoCopiesGetOneAddress(t *testing.T) {
	t.Parallel()
	e := &Environment{s: &config.Settings{Port: 5000}}
	for port := 20_000; port < 30_000; port += 2 { // half of all
		e.copies = append(e.copies, &appCopy{e: e, port: port})
	}
	seen := map[string]bool{}
	for range 30 {
		address, err := launcher{e}.Address(version{})
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] || e.copyAt(address) != e.copies[len(e.copies)-1] {
			t.Errorf("%s is given to a second copy", address)
		}
		seen[address] = true
	}
	if !seen["http://localhost:5000"] {
		t.Error("no copy has the port of the settings")
	}
}
