package worker

import "sync"

// desk is a lock, and the listeners to call once it is released. A worker has
// one of its own; those of a pool share the pool's, so that a slot that one of
// them leaves can be given to another at once.
type desk struct {
	sync.Mutex
	notes []func()
}

// note keeps a listener's call for after the lock.
func (d *desk) note(f func()) { d.notes = append(d.notes, f) }

// unlock releases the lock and then calls the listeners that were noted.
func (d *desk) unlock() {
	notes := d.notes
	d.notes = nil
	d.Unlock()
	for _, f := range notes {
		f()
	}
}
