package leader

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// Options configure [New]. Name is required; for the rest the zero value works.
// All instances that share a lease should have the same times; each is judged
// by its own when they differ.
type Options struct {
	// Name is the lease's name in the store.
	Name string
	// Owner names this instance for people; "" means host name and process id.
	// Two instances of one name are still two.
	Owner string
	// Data is shown to the other instances, such as the address of the
	// console; "" for nothing.
	Data string
	// Lease is for how long the others leave a lease alone that is not renewed;
	// 0 means 15 s. A dead leader is replaced within Lease + Renew.
	Lease time.Duration
	// Renew is the time between two renewals, and at most that between two
	// looks at another's lease; 0 means a third of Lease.
	Renew time.Duration
	// CallTimeout limits one call of the store; 0 means two fifteenths of Lease
	// (2 s).
	CallTimeout time.Duration
	// Margin is by how much this instance stops trusting its lease before the
	// others do, for clocks of different rates; 0 means a fifth of Lease (3 s).
	Margin time.Duration
	// Standstill is how long this process may stand still, or its wall clock
	// part from the monotonic one, before it gives up its term; 0 means 1 s.
	Standstill time.Duration
	// Wall tells the time of day, for noticing that the machine was suspended;
	// nil means time.Now.
	Wall func() time.Time
	// Random returns numbers in [0,1), which spread the retries; nil means math/rand/v2.
	Random func() float64
	// Events are the listeners; it may be nil.
	Events *Events
}

// complete fills in the defaults and refuses times that cannot work.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		return o, errors.New("a lease needs a name: all instances that share it use the same one")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"lease", o.Lease}, {"renewal", o.Renew}, {"call limit", o.CallTimeout}, {"margin", o.Margin},
		{"standstill", o.Standstill}} {
		if d.value < 0 {
			return o, fmt.Errorf("the %s of lease %s is %s: give a positive time, or 0 for the default", d.name, o.Name, d.value)
		}
	}

	o.Lease = cmp.Or(o.Lease, 15*time.Second).Round(time.Millisecond)
	o.Renew = cmp.Or(o.Renew, o.Lease/3)
	o.CallTimeout = cmp.Or(o.CallTimeout, o.Lease*2/15)
	o.Margin = cmp.Or(o.Margin, o.Lease/5)
	o.Standstill = cmp.Or(o.Standstill, time.Second)

	if trust := o.Lease - o.Margin; o.Renew+o.CallTimeout > trust {
		return o, fmt.Errorf("lease %s cannot be kept: renewal %s + call limit %s is more than lease %s - margin %s: "+
			"give a lease of at least %s", o.Name, o.Renew, o.CallTimeout, o.Lease, o.Margin, o.Renew+o.CallTimeout+o.Margin)
	}

	if o.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		o.Owner = fmt.Sprintf("%s (%d)", host, os.Getpid())
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
