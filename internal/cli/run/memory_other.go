//go:build !linux

package run

import "math"

func releaseProgram() {}

// HideMemory does nothing: only Linux supports it.
func HideMemory() {}

func groupMemory() int64 { return math.MaxInt64 }
