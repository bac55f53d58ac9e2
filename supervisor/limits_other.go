//go:build !linux

package supervisor

import "errors"

// limitNumbers: none can be set here without a moment in which they do not hold.
func limitNumbers() map[string]int { return nil }

// setLimit is not reached: no limit has a name here.
func setLimit(int, rlimit, *identity) error { return errors.New("limits can be set on Linux only") }
