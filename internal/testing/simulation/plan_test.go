package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is derived from a seed, which also determines later random numbers. Failing plans are stored as JSON.
type plan struct {
	Seed uint64 `json:"seed"`
	// An Embedded queue is in the process of the only daemon. Otherwise, daemons share a server.
	FIFO     bool `json:"fifo"`
	Embedded bool `json:"embedded"`
	Daemons  int  `json:"daemons"`

	Connections int `json:"connections"`
	Messages    int `json:"messages"`
	Groups      int `json:"groups"`
	MaxReceives int `json:"max_receives"`

	Visibility time.Duration `json:"visibility"`
	// A negative ErrorVisibility means unset.
	ErrorVisibility time.Duration `json:"error_visibility"`
	Inactivity      time.Duration `json:"inactivity"`
	Shutdown        time.Duration `json:"shutdown"`
	Length          time.Duration `json:"length"` // until all faults end

	// These are the shares of messages that never succeed, fail at first, take longer than the visibility timeout, get
	// no response at first, and are delayed.
	Poison  float64 `json:"poison"`
	Failing float64 `json:"failing"`
	Slow    float64 `json:"slow"`
	Hanging float64 `json:"hanging"`
	Delayed float64 `json:"delayed"`

	Tasks bool `json:"tasks"`
	// Operations require a shared queue, and Tasks, whose leader announces changes.
	Operations []operation `json:"operations,omitempty"`

	Faults []fault `json:"faults"`
}

type fault struct {
	Kind kind          `json:"kind"`
	At   time.Duration `json:"at"`
	For  time.Duration `json:"for"`
	// The producer's Daemon is the number of daemons. It has only network faults.
	Daemon int     `json:"daemon"`
	Chance float64 `json:"chance,omitempty"` // per call
	// Keep is the probability that an unsynced write survives a power failure. Step is how far a clock is set ahead of
	// real time; it may be negative.
	Keep float64       `json:"keep,omitempty"`
	Step time.Duration `json:"step,omitempty"`
}

type kind string

const (
	killDaemon    kind = "daemon killed"
	stopDaemon    kind = "daemon stopped"
	pauseDaemon   kind = "daemon paused"
	reload        kind = "settings reloaded"
	stepClock     kind = "clock stepped"
	loseAnswers   kind = "answers lost"
	loseRequests  kind = "requests lost"
	slowCalls     kind = "calls slow"
	throttleCalls kind = "calls throttled"
	cutNetwork    kind = "network cut"
	cutRegistry   kind = "registry cut"
	repeatReceive kind = "delivered twice by the queue"
	appDown       kind = "app down"
	appFailing    kind = "app failing"
	appSlow       kind = "app slow"
	appThrottles  kind = "app throttles"
	appSilent     kind = "app's answers lost"
	powerFailure  kind = "power failure"
	killServer    kind = "queue killed"
	restartServer kind = "queue restarted"
	failDisk      kind = "disk errors"
	fillDisk      kind = "disk full"
	redrive       kind = "dead letters redriven"
)

var (
	kinds = []kind{killDaemon, stopDaemon, pauseDaemon, reload, stepClock, loseAnswers, loseRequests, slowCalls,
		throttleCalls, cutNetwork, cutRegistry, repeatReceive, appDown, appFailing, appSlow, appThrottles, appSilent,
		powerFailure, killServer, restartServer, failDisk, fillDisk, redrive}
	onNetwork = []kind{loseAnswers, loseRequests, slowCalls, throttleCalls, cutNetwork, cutRegistry, killServer,
		restartServer}
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// One plan in eight has no faults, so no message may be repeated.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 72))
	between := func(low, high int) int { return low + r.IntN(high-low+1) }
	choose := func(shares ...float64) float64 { return shares[r.IntN(len(shares))] }
	p := &plan{Seed: seed, FIFO: r.IntN(3) == 0, Embedded: r.IntN(4) == 0, Daemons: between(1, 4),
		Connections: between(1, 12), Messages: between(20, 80<<r.IntN(3)), Groups: between(1, 8), MaxReceives: between(4, 9),
		Visibility: seconds(between(15, 60)), ErrorVisibility: -1, Inactivity: seconds(between(20, 100)),
		Shutdown: seconds(between(5, 40)), Length: seconds(between(300, 1500)),
		Poison: choose(0, 0, 0.02, 0.1), Failing: choose(0, 0.1, 0.4), Slow: choose(0, 0.05, 0.2), Hanging: choose(0, 0.03),
		Delayed: choose(0, 0.2), Tasks: r.IntN(4) > 0}
	if p.Embedded {
		p.Daemons = 1
	}
	if r.IntN(3) > 0 {
		p.ErrorVisibility = seconds(between(0, 20))
	}
	if p.FIFO {
		p.Delayed = 0
	}
	for n := choose(0, 2, 4, 6, 8, 10, 14, 20); n > 0; n-- {
		p.Faults = append(p.Faults, drawFault(r, p))
	}
	slices.SortStableFunc(p.Faults, func(a, b fault) int { return int(a.At - b.At) })
	if p.Tasks && !p.Embedded {
		p.Operations = drawOperations(r, p, int(choose(0, 3, 8, 16)))
	}
	return p
}

func drawFault(r *rand.Rand, p *plan) fault {
	f := fault{Kind: kinds[r.IntN(len(kinds))]}
	for p.Embedded && slices.Contains(onNetwork, f.Kind) || p.FIFO && f.Kind == repeatReceive {
		f.Kind = kinds[r.IntN(len(kinds))]
	}
	f.At = time.Duration(r.Int64N(int64(p.Length) * 9 / 10)).Truncate(time.Millisecond)
	f.For = seconds(1 + r.IntN([]int{3, 30, 120, 240}[r.IntN(4)]))
	f.Chance = []float64{0.05, 0.3, 1}[r.IntN(3)]
	f.Daemon = r.IntN(p.Daemons)
	switch f.Kind {
	case loseAnswers, loseRequests, slowCalls, throttleCalls, cutNetwork:
		f.Daemon = r.IntN(p.Daemons + 1)
	case powerFailure:
		f.Keep = []float64{0, 0.1, 0.5}[r.IntN(3)]
	case stepClock:
		f.Step = time.Duration(r.Int64N(int64(6*time.Minute))).Truncate(time.Millisecond) - 3*time.Minute
	}
	return f
}

func (f *fault) during(at time.Duration, daemon int) bool {
	return f.Daemon == daemon && at >= f.At && at < f.At+f.For
}

func (p *plan) roll(what ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, p.Seed, what)
	r := rand.New(rand.NewPCG(h.Sum64(), p.Seed))
	return r.Float64()
}

func (p *plan) String() string {
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
