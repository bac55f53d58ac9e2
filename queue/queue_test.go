package queue

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrorsCompareByCode(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("sending to jobs: %w", Errorf(CodeQueueDoesNotExist, "The specified queue does not exist."))
	if !errors.Is(err, ErrNoQueue) {
		t.Errorf("errors.Is(%v, ErrNoQueue) = false", err)
	}
	if errors.Is(err, ErrDenied) {
		t.Errorf("errors.Is(%v, ErrDenied) = true", err)
	}
}

func TestErrorfKeepsTheCause(t *testing.T) {
	t.Parallel()
	err := Errorf(CodeUnreachable, "reading from the queue: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cause lost from %v", err)
	}
	if got, want := err.Error(), "reading from the queue: unexpected EOF"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got := (&Error{Code: CodeOverLimit}).Error(); got != CodeOverLimit {
		t.Errorf("Error() without a message = %q, want the code", got)
	}
}

func TestAttributeKinds(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]bool{
		"String": false, "Number": false, "Number.int": false, "String.Binary": false,
		"Binary": true, "Binary.png": true, "Binaryish": false,
	} {
		if got := (Attribute{Type: typ}).IsBinary(); got != want {
			t.Errorf("Attribute{Type: %q}.IsBinary() = %v, want %v", typ, got, want)
		}
	}
	m := Message{Attributes: []Attribute{{Name: "a", Type: "String", Value: "1"}, {Name: "b", Type: "Number", Value: "2"}}}
	if got := m.Attribute("b"); got != "2" {
		t.Errorf(`Attribute("b") = %q, want "2"`, got)
	}
	if got := m.Attribute("c"); got != "" {
		t.Errorf(`Attribute("c") = %q, want ""`, got)
	}
}

func TestOutcomeZeroValueIsFailed(t *testing.T) {
	t.Parallel()
	var r Result
	if r.Outcome != Failed || r.Outcome.String() != "failed" || Done.String() != "done" ||
		Unreached.String() != "unreached" {
		t.Errorf("outcomes read %v %v %v", r.Outcome, Done, Unreached)
	}
}

func TestParseRedrivePolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct {
		name string
		max  int
	}{
		``:   {"", 0},
		`{}`: {"", 0},
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}`:         {"dead", 3},
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":"10"}`: {"dead.fifo", 10},
		`nonsense`: {"", 0},
	} {
		if name, n := ParseRedrivePolicy(policy); name != want.name || n != want.max {
			t.Errorf("ParseRedrivePolicy(%s) = %q, %d; want %+v", policy, name, n, want)
		}
	}
}
