package environment

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestStepsUnwindInReverseAndPassFailures(t *testing.T) {
	t.Parallel()
	var s lifecycle
	var order []string
	s.onStop("first", func(context.Context) error { order = append(order, "first"); return nil })
	s.onStop("second", func(context.Context) error { order = append(order, "second"); return errors.New("stuck") })
	s.onStop("third", func(context.Context) error { order = append(order, "third"); return nil })
	err := s.stopAll(t.Context(), slog.New(slog.DiscardHandler))
	if got, want := strings.Join(order, " "), "third second first"; got != want {
		t.Errorf("order = %q, want %q", got, want)
	}
	if err == nil || err.Error() != "stopping second: stuck" {
		t.Errorf("error = %v", err)
	}
	order = nil
	if err := s.stopAll(t.Context(), slog.New(slog.DiscardHandler)); err != nil || order != nil {
		t.Errorf("a second unwind ran %v, %v: each step runs once", order, err)
	}
}
