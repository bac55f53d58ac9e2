package run

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// ballast is part of Go's heap but never touched, so it takes no physical memory. Go collects garbage whenever the
// heap has doubled; without the ballast, an environment's heap is so small that this would happen hundreds of times a
// second.
//
//lint:ignore U1000 it is held, and nobody reads it
var ballast []byte

// ballastSize is how much more garbage Go may accumulate between collections.
const ballastSize = 8 << 20

const (
	// leastMemory is the smallest memory limit of a control group with which tendril starts; see docs/deploy.md.
	leastMemory = 48 << 20
	// roomForBallast is the smallest memory budget that allows for a ballast.
	roomForBallast = 256 << 20
	// outsideGo is the memory used outside Go's heap, by SQLite and the kernel.
	outsideGo = 8 << 20
)

// memoryBudget returns the number of bytes that this process may use; 0 means no limit. goLimit is GOMEMLIMIT, which
// takes precedence, and group the limit of the control group; each is [math.MaxInt64] if unset. An app in the same
// group gets three quarters of the limit, unless that leaves less than tendril's minimum.
func memoryBudget(goLimit, group int64, hasApp bool) (int64, error) {
	if group < leastMemory {
		return 0, fmt.Errorf("the memory limit of this container or control group is %d MiB, but tendril needs at "+
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

// limitMemory sets Go's memory limit based on the control group. It returns this process's budget; 0 means no limit.
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

// startEnds is the time after which startup is certain to have finished.
const startEnds = time.Second

func releaseStart() {
	debug.FreeOSMemory()
	releaseProgram()
}
