package main

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestWorthSaying: that nobody reads needs no word, and hides none.
func TestWorthSaying(t *testing.T) {
	t.Parallel()
	gone, other := written(fmt.Errorf("write: %w", syscall.EPIPE)), errors.New("not given back")
	for _, err := range []error{nil, gone, errors.Join(gone, nil), errors.Join(errors.Join(gone), gone)} {
		if said := worthSaying(err); said != nil {
			t.Errorf("%v: said %v", err, said)
		}
	}
	both := errors.Join(errors.Join(gone, other), gone)
	if said := worthSaying(both); said == nil || said.Error() != other.Error() ||
		exitCode(both) != exitSignal+int(syscall.SIGPIPE) {
		t.Errorf("said %v, status %d", said, exitCode(both))
	}
	if said := worthSaying(fmt.Errorf("%w: %w", other, other)); said.Error() != "not given back: not given back" {
		t.Errorf("a wrapped error was taken apart: %v", said)
	}
	if said := worthSaying(other); said != other || written(other) != other || written(nil) != nil {
		t.Errorf("said %v", said)
	}
}
