package poison

import (
	"sync"
	"sync/atomic"
	"time"
)

// enough is how many different messages must kill the app in a row, with none
// that it lives through, until it is the app.
const enough = 10

// Options configure a [Finder]. The zero value, and a nil *Options, are valid.
type Options struct {
	// Most is how many suspects are remembered; 0 means 10,000.
	Most int
	// Events are the listeners.
	Events Events
}

// Events are a finder's listeners; every field may be nil.
type Events struct {
	// Suspected: messages were in work on a copy of the app when it died.
	Quarantined func(ids []string)
	// Cleared: a suspect was tried alone, and the app lived.
	Cleared func(id string)
	// Found: a message killed the app while it was alone with it, for the
	// times-th time.
	Detected func(id string, times int)
	// Broken: one message after the other kills the app, so it is the app; or,
	// with false, it lives again.
	Broken func(broken bool)
}

// Finder remembers which messages are suspected. Make it with [New]; its methods
// are safe for concurrent use.
type Detector struct {
	opts Options

	mu       sync.Mutex
	suspects map[string]*suspect
	streak   int // messages found to kill since the app last lived through one
	broken   bool
	// quiet is set while nothing is suspected and the streak is 0: then most
	// deliveries need no lock.
	quiet atomic.Bool
}

type suspect struct {
	since time.Time
	kills int
}

// New returns a finder that suspects nobody. opts may be nil.
func New(opts *Options) *Detector {
	f := &Detector{suspects: map[string]*suspect{}}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Most <= 0 {
		f.opts.Most = 10_000
	}
	f.quiet.Store(true)
	return f
}

// Alone reports whether a message must be delivered alone.
func (f *Detector) Quarantined(id string) bool {
	if f.quiet.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.suspects[id] != nil
}

// Kills returns how often a message killed the app while alone with it.
func (f *Detector) Kills(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.suspects[id]; s != nil {
		return s.kills
	}
	return 0
}

// Broken reports whether it is the app that dies, whatever it is given.
func (f *Detector) Broken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// Status is a snapshot for people.
type Status struct {
	// Suspects counts the messages to be tried alone, Killers those of them
	// that were found to kill.
	Quarantined, Poison int
	// Broken is as [Finder.Broken] says.
	Broken bool
}

// Status returns how many messages are suspected now.
func (f *Detector) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Quarantined: len(f.suspects), Broken: f.broken}
	for _, x := range f.suspects {
		if x.kills > 0 {
			s.Poison++
		}
	}
	return s
}

// Died tells that a copy of the app died by itself at now, with these messages
// in work. Exactly one message is found out; several become suspects; none
// tells nothing.
func (f *Detector) Crashed(ids []string, now time.Time) {
	f.mu.Lock()
	var tell []func()
	switch {
	case len(ids) == 1:
		tell = f.killed(ids[0], now)
	case len(ids) > 1:
		for _, id := range ids {
			f.suspect(id, now)
		}
		if on := f.opts.Events.Quarantined; on != nil {
			tell = append(tell, func() { on(ids) })
		}
	}
	f.settle()
	f.mu.Unlock()
	for _, t := range tell {
		t()
	}
}

func (f *Detector) killed(id string, now time.Time) (tell []func()) {
	s := f.suspect(id, now)
	s.kills++
	kills := s.kills
	if on := f.opts.Events.Detected; on != nil {
		tell = append(tell, func() { on(id, kills) })
	}
	if kills == 1 {
		f.streak++
	}
	return append(tell, f.judge()...)
}

// Lived tells that the app lived through a delivery. alone tells that it had
// nothing else to do: then the message is not suspected any more.
func (f *Detector) Survived(id string, alone bool) {
	if f.quiet.Load() {
		return
	}
	f.mu.Lock()
	cleared := alone && f.suspects[id] != nil
	if cleared {
		delete(f.suspects, id)
	}
	f.streak = 0
	tell := f.judge()
	f.settle()
	f.mu.Unlock()
	if on := f.opts.Events.Cleared; on != nil && cleared {
		on(id)
	}
	for _, t := range tell {
		t()
	}
}

// settle notes whether there is anything to look out for.
func (f *Detector) settle() { f.quiet.Store(len(f.suspects) == 0 && f.streak == 0 && !f.broken) }

// Forget drops a message that is gone from its queue.
func (f *Detector) Forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.suspects, id)
	f.settle()
}

func (f *Detector) suspect(id string, now time.Time) *suspect {
	s := f.suspects[id]
	if s == nil {
		if len(f.suspects) >= f.opts.Most {
			f.forgetOldest()
		}
		s = &suspect{since: now}
		f.suspects[id] = s
	}
	return s
}

func (f *Detector) forgetOldest() {
	oldest := ""
	for id, s := range f.suspects {
		if oldest == "" || s.since.Before(f.suspects[oldest].since) {
			oldest = id
		}
	}
	delete(f.suspects, oldest)
}

// judge says whether it is the app.
func (f *Detector) judge() (tell []func()) {
	broken := f.streak >= enough
	if broken == f.broken {
		return nil
	}
	f.broken = broken
	if on := f.opts.Events.Broken; on != nil {
		tell = append(tell, func() { on(broken) })
	}
	return tell
}
