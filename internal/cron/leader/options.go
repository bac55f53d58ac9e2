package leader

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// Options configure [New]. Only Name is required. Instances that share a lease should use the same durations.
type Options struct {
	Name string
	// Owner is this instance's display name; "" means the host name and process ID.
	Owner string
	// Data is visible to other instances, for example the console's address.
	Data string
	// Revision returns a number for other instances, written with each renewal.
	Revision func() int64
	// Announce returns a short text for other instances, without # and @, written with each renewal.
	Announce func() string
	// Lease defaults to 15 s. A dead leader is replaced within Lease + Renew, unless Watch is longer.
	Lease time.Duration
	// Renew is the interval between renewals, and between reads unless Watch is longer; 0 means a third of Lease.
	Renew time.Duration
	// Watch is the interval between reads of another instance's lease, if longer than Renew. If it exceeds Lease, a dead
	// leader is replaced within twice the interval.
	Watch func() time.Duration
	// CallTimeout limits each call to the store; 0 means two fifteenths of Lease (2 s).
	CallTimeout time.Duration
	// Margin is the time before the expiry when an instance stops trusting its lease, because clock rates differ; 0
	// means a fifth of Lease (3 s).
	Margin time.Duration
	// Standstill is the longest suspension, and the largest difference between the wall clock and the monotonic clock,
	// that does not end the term; 0 means 1 s.
	Standstill time.Duration
	// Wall defaults to time.Now.
	Wall func() time.Time
	// Random returns numbers in [0,1) that spread reads and retries; nil means math/rand/v2.
	Random func() float64
	Events *Events
}

func (o Options) complete() (Options, error) {
	if o.Name == "" {
		return o, errors.New("a lease needs a name: all instances that share it use the same one")
	}

	o.Lease = cmp.Or(o.Lease, 15*time.Second).Round(time.Millisecond)
	o.Renew = cmp.Or(o.Renew, o.Lease/3)
	o.CallTimeout = cmp.Or(o.CallTimeout, o.Lease*2/15)
	o.Margin = cmp.Or(o.Margin, o.Lease/5)
	o.Standstill = cmp.Or(o.Standstill, time.Second)

	if trust := o.Lease - o.Margin; o.Renew+o.CallTimeout > trust {
		return o, fmt.Errorf("lease %s cannot be kept: renewal %s + call limit %s is more than lease %s - margin %s: "+
			"use a lease of at least %s", o.Name, o.Renew, o.CallTimeout, o.Lease, o.Margin, o.Renew+o.CallTimeout+o.Margin)
	}

	if o.Owner == "" {
		o.Owner = ProcessName()
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Events == nil {
		o.Events = &Events{}
	}
	return o, nil
}

// ProcessName returns the host and process ID, for display.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s (%d)", host, os.Getpid())
}
