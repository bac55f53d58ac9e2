//go:build !linux

package run

import "math"

func releaseProgram() {}

// HideMemory does nothing: only Linux lets a process choose.
func HideMemory() {}

func groupMemory() int64 { return math.MaxInt64 }
