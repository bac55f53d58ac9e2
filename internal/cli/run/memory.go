package run

import (
	"cmp"
	"fmt"
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

const (
	// leastMemory is the smallest memory limit of a control group under which tendril starts; docs/deploy.md names it.
	leastMemory = 48 << 20
	// roomForBallast is the smallest budget of which the ballast is a small part.
	roomForBallast = 256 << 20
	// outsideGo is what is used outside of Go's heap: by SQLite and the kernel.
	outsideGo = 8 << 20
)

// memoryBudget is how many bytes this process may use, 0 for any number. goLimit is GOMEMLIMIT and decides where it is
// set, group the limit of the control group; math.MaxInt64 means that there is none. An app in the same group is left
// three quarters of it, as far as tendril's own least allows.
func memoryBudget(goLimit, group int64, hasApp bool) (int64, error) {
	if group < leastMemory {
		return 0, fmt.Errorf("the memory limit of this container or control group is %d MiB, and tendril needs at "+
			"least %d MiB", group>>20, leastMemory>>20)
	}
	switch {
	case goLimit < math.MaxInt64:
		return max(goLimit, leastMemory), nil
	case group == math.MaxInt64:
		return 0, nil
	case hasApp:
		return max(group/4, leastMemory*9/10), nil
	}
	return group / 10 * 9, nil
}

// limitMemory fits Go's memory limit to the control group, and returns the budget of this process, 0 for no bound.
func limitMemory(hasApp bool) (budget int64, err error) {
	goLimit := debug.SetMemoryLimit(-1)
	if budget, err = memoryBudget(goLimit, groupMemory(), hasApp); err != nil {
		return 0, err
	}
	if budget > 0 && goLimit == math.MaxInt64 {
		debug.SetMemoryLimit(budget - outsideGo)
	}
	if cmp.Or(budget, math.MaxInt64) >= roomForBallast {
		ballast = make([]byte, ballastSize)
	}
	return budget, nil
}

// startEnds is how long after it was announced an environment has surely read its code and tables.
const startEnds = time.Second

// releaseStart gives memory back that only the start needed.
func releaseStart() {
	debug.FreeOSMemory()
	releaseProgram()
}
