package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// ballast is part of the heap but never touched, so it takes no physical memory. Go collects garbage whenever the heap
// has doubled, which without ballast would happen hundreds of times per second, because an environment's heap is small.
//
//lint:ignore U1000 it is held, and nobody reads it
var ballast []byte

// ballastSize is the additional garbage between collections, in bytes.
const ballastSize = 8 << 20

const (
	// leastMemory is the smallest control group limit with which tendril starts; see docs/deploy.md.
	leastMemory    = 48 << 20
	roomForBallast = 256 << 20
	// outsideGo is the memory of SQLite and the kernel.
	outsideGo = 8 << 20
)

// memoryBudget returns the bytes that tendril may use, or 0 if there is no limit. group is the limit of the control
// group. goLimit is GOMEMLIMIT, which takes precedence but counts as at least leastMemory. Each is [math.MaxInt64] if
// unset. An app in the same group gets three quarters of the limit, unless that leaves too little for tendril.
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
		return max(group/4, withReserve(leastMemory)), nil
	}
	return withReserve(group), nil
}

// withReserve leaves a tenth of a limit for the kernel, which counts its own memory and the page cache towards it.
func withReserve(limit int64) int64 { return limit / 10 * 9 }

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

const startupTail = time.Second // afterwards, its memory is unused

func returnFreeMemory() {
	debug.FreeOSMemory()
	releaseProgram()
}

const (
	releaseEvery = 10 * time.Second
	leastRelease = 16 << 20 // above rest
)

// load detects the end of a load, to release its memory, which Go itself returns only minutes later: an idle process
// collects garbage every two minutes, and the buffers of ended connections survive one collection.
type load struct {
	rest        uint64 // bytes at rest
	collections uint64 // at the last call of hasEnded
}

// hasEnded reports whether there was no collection since the last call, but far more memory is held than at rest.
func (l *load) hasEnded(held, collections uint64) bool {
	idle := collections == l.collections
	l.rest, l.collections = min(l.rest, held), collections
	return idle && held > l.rest+max(l.rest/2, leastRelease)
}

func (l *load) release() {
	if !l.hasEnded(heldMemory()) {
		return
	}
	runtime.GC() // the first of two collections for buffers; returnFreeMemory runs the second
	returnFreeMemory()
	l.rest, l.collections = heldMemory()
}

func heldMemory() (held, collections uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64(), samples[2].Value.Uint64()
}

func releaseMemory(ctx context.Context) {
	returnFreeMemory()
	var l load
	l.rest, l.collections = heldMemory()
	ticks := time.NewTicker(releaseEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			l.release()
		case <-ctx.Done():
			return
		}
	}
}
