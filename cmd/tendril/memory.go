package main

import (
	"math"
	"runtime/debug"
	"time"
)

// ballast counts as memory in use, but is never touched, so the system gives no pages for it. Go collects garbage when
// the heap has doubled: that of an environment is so small that it would be collected hundreds of times a second.
//
//lint:ignore U1000 it is held, and nobody reads it
var ballast []byte

// ballastSize adds as much to the garbage that may lie between two collections.
const ballastSize = 8 << 20

// limitCollections makes collections rarer, unless somebody limits the memory: that includes the ballast.
func limitCollections() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		ballast = make([]byte, ballastSize)
	}
}

// startEnds is how long after it was announced an environment has surely read its code and tables.
const startEnds = time.Second

// releaseStart gives memory back that only the start needed.
func releaseStart() {
	debug.FreeOSMemory()
	releaseProgram()
}
