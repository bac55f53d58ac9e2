package environment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tendril/app"
)

// The pauses after an attempt to start more copies that failed.
const (
	firstGrowthPause = 30 * time.Second
	lastGrowthPause  = 10 * time.Minute
)

// resizer is what has copies.
type resizer interface {
	// Size is how many there are.
	Size() int
	// Scale brings their number to n and returns when new ones are ready, or when
	// old ones get no more work.
	Scale(ctx context.Context, n int) error
}

// copies let package autoscale choose the number of copies of the app on this
// machine. A change takes as long as an app takes to be ready, so that it is made in
// the background; one at a time.
type copies struct {
	resizer resizer
	// ready counts those that can work now.
	ready func() int
	// failed hears of changes that went wrong.
	failed func(n int, err error)
	// run ends when nothing is to be changed any more.
	run context.Context

	mu sync.Mutex
	// wanted is the number that a change under way leads to; 0 when there is none.
	wanted int
	// pause is how long nothing grows after the last failure, until notBefore.
	pause     time.Duration
	notBefore time.Time
	all       sync.WaitGroup
}

// Size returns how many copies can work now, and how many are wanted.
func (c *copies) Size(context.Context) (current, desired int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if desired = c.wanted; desired == 0 {
		desired = c.resizer.Size()
	}
	return c.ready(), desired, nil
}

// SetSize begins to bring their number to n, at least 1. While a change is under
// way the next one waits for its end. For a while after copies that did not come
// up it refuses to start more.
func (c *copies) SetSize(_ context.Context, n int) error {
	n = max(n, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run.Err() != nil {
		return app.ErrStopped
	}
	has := c.resizer.Size()
	if wait := time.Until(c.notBefore); n > has && wait > 0 {
		return fmt.Errorf("the last copies did not come up: none is started for another %s", short(wait))
	}
	if c.wanted != 0 {
		c.wanted = n
		return nil
	}
	if n != has {
		c.wanted = n
		c.all.Go(c.change)
	}
	return nil
}

// change makes changes until there is what is wanted.
func (c *copies) change() {
	for {
		c.mu.Lock()
		n := c.wanted
		c.mu.Unlock()
		err := c.resizer.Scale(c.run, n)
		if c.settle(n, err) {
			return
		}
	}
}

// settle notes how a change ended, and reports whether there is no other.
func (c *copies) settle(n int, err error) (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.pause = 0
		if c.wanted != n {
			return false
		}
	case c.run.Err() != nil:
	case errors.Is(err, app.ErrBusy), errors.Is(err, app.ErrStopped):
		// A deployment came first. The next reading decides anew.
	default:
		c.pause = min(max(2*c.pause, firstGrowthPause), lastGrowthPause)
		c.notBefore = time.Now().Add(c.pause)
		c.failed(n, err)
	}
	c.wanted = 0
	return true
}
