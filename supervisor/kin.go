package supervisor

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"tendril/procgroup"
)

// kin finds all that one run of a process started, also what has left its
// process group. It is tied in one of two ways: by a control group, which
// nothing leaves by itself, or by a mark in the environment, which children
// inherit. Where neither works, the process group is all there is.
type kin struct {
	// pid is the leader of the run; 0 before it is born.
	pid atomic.Int64
	// cgroup is set for the first way, mark for the second.
	cgroup *cgroup
	mark   string
	// doomed is set once all kin got KILL.
	doomed atomic.Bool

	// seen are the living processes that were found last, by number and time of
	// start: they remain kin when they wipe their environment later.
	mu   sync.Mutex
	seen map[processID]bool
}

// processID names one process for ever: numbers are used again.
type processID struct {
	pid int
	// start is the time of the start in clock ticks since boot.
	start uint64
}

func newMarkedKin() *kin {
	return &kin{mark: randomName(), seen: map[processID]bool{}}
}

// randomName returns 32 characters that nobody can guess or choose again.
func randomName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

// born notes the leader.
func (k *kin) born(leader int) { k.pid.Store(int64(leader)) }

// environment is what the process needs in its environment.
func (k *kin) environment() []string {
	if k.mark == "" {
		return nil
	}
	return []string{procgroup.MarkVariable + "=" + k.mark}
}

// tie is how the guard finds the kin: the folder of the control group, which
// begins with a slash, or the mark.
func (k *kin) tie() string {
	if k.cgroup != nil {
		return k.cgroup.folder
	}
	return k.mark
}
