package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// Limiter decides whether the app may be given one more message. Its methods
// must be safe for concurrent use and quick: they are called under a lock. Workers
// of a pool may have the same one; it must be comparable, as a pointer is.
type Limiter interface {
	// Acquire takes the right to begin one delivery of n messages at now. release is
	// called once, when the delivery has ended, with the results of its messages. It
	// is nil for a refusal, which took nothing; wait says when to ask again (0: after
	// the next release) and reason why in a word ("rate", "concurrency", "breaker").
	Acquire(now time.Time, n int) (release func(now time.Time, results ...queue.Result), wait time.Duration,
		reason string)
	// Room returns how many deliveries may begin within the next d, as far as
	// it knows: receiving asks for no more. 0 stops receiving; reason is then why,
	// as in Acquire.
	Room(now time.Time, d time.Duration) (n int, reason string)
}

const (
	// brakeAgain is how soon a limiter is asked again that named no time.
	brakeAgain = 100 * time.Millisecond
	// brakeCalm is how long no refusal must come until a time of limiting
	// counts as over, so that a rate which refuses now and then is one time
	// and not thousands. For as long the first of several reasons stands.
	brakeCalm = time.Second
	// breakerReason is the reason that stands for an app which is not asked at
	// all. Any other one comes and goes with each message.
	breakerReason = "breaker"
)

// bound is a limiter together with what it said last. Workers of a pool that have
// the same limiter share it: what it refused one it refuses the others, so that
// the pool's order decides, and not who asks first.
type bound struct {
	limiter Limiter
	// askAt: nothing begins before, since the limiter refused; zero when it did
	// not. onDone: it wants to be asked after the next end of a delivery.
	askAt  time.Time
	onDone bool
	// changes counts what makes an answer of Room old.
	changes int
}

// brake is what a worker, or a pool, knows of its limiter.
type brake struct {
	*bound
	desk   *desk
	listen func(Limited) // nil for nobody

	// limiting is a time of refusals, from since until the latest one is over;
	// it ends when none comes until calmAt.
	limiting             bool
	reason               string
	since, until, calmAt time.Time
	periods              int64

	// roomAt, roomLeft and roomWhy are the latest answer of Room, roomSince the
	// changes of the limiter until then.
	roomAt    time.Time
	roomSince int
	roomLeft  int
	roomWhy   string
}

func newBrake(l Limiter, d *desk, listen func(Limited)) *brake {
	if l == nil {
		return nil
	}
	return &brake{bound: &bound{limiter: l}, desk: d, listen: listen}
}

// shares reports whether two brakes are of the same limiter.
func (b *brake) shares(other *brake) bool {
	return b != nil && other != nil && b.bound == other.bound
}

// refusing reports whether nothing may begin and the limiter need not be asked.
func (b *brake) refusing(now time.Time) bool {
	return b != nil && !b.askAt.IsZero() && now.Before(b.askAt)
}

// permit is the right to one delivery of so many messages, 0 for a refusal.
type permit struct {
	messages int
	release  func(now time.Time, results ...queue.Result) // nil where nothing limits
}

// acquire asks for the right to begin a delivery of up to n messages.
func (b *brake) acquire(now time.Time, n int) permit {
	if b == nil {
		return permit{messages: n}
	}
	if b.refusing(now) {
		return permit{}
	}
	if n > 1 {
		room, _ := b.limiter.Room(now, 0)
		n = clamp(room, 1, n)
	}
	b.changes++
	release, wait, reason := b.limiter.Acquire(now, n)
	if release == nil {
		b.refuse(now, wait, reason)
		return permit{}
	}
	b.askAt, b.onDone = time.Time{}, false
	b.calm(now)
	return permit{n, release}
}

// room returns how many messages receiving may ask for at the most, so that
// those can begin within d.
func (b *brake) room(now time.Time, d time.Duration) int {
	if b == nil {
		return maxPrefetch
	}
	if !b.roomAt.Equal(now) || b.roomAt.IsZero() || b.roomSince != b.changes {
		b.roomAt, b.roomSince = now, b.changes
		b.roomLeft, b.roomWhy = b.limiter.Room(now, d)
	}
	return max(b.roomLeft, 0)
}

// refuse notes a refusal; wait 0 until the next end of a delivery.
func (b *brake) refuse(now time.Time, wait time.Duration, reason string) {
	b.onDone = wait <= 0
	if b.onDone {
		wait = brakeAgain
	}
	b.askAt = now.Add(wait)
	b.keepBack(now, wait, reason)
}

// keepBack notes that nothing more may come for a while.
func (b *brake) keepBack(now time.Time, wait time.Duration, reason string) {
	b.until, b.calmAt = now.Add(wait), now.Add(wait+brakeCalm)
	if b.limiting && (b.reason == reason || now.Sub(b.since) < brakeCalm) {
		return
	}
	if b.limiting {
		b.over(now)
	}
	b.limiting, b.reason, b.since = true, reason, now
	b.periods++
	b.tell(Limited{Reason: reason})
}

// calm ends a time of limiting after which nothing was refused for a while.
func (b *brake) calm(now time.Time) {
	if b != nil && b.limiting && !now.Before(b.calmAt) {
		b.over(b.until)
	}
}

// over ends a time of limiting.
func (b *brake) over(at time.Time) {
	b.limiting = false
	b.tell(Limited{Reason: b.reason, Over: true, For: at.Sub(b.since)})
}

func (b *brake) tell(l Limited) {
	if f := b.listen; f != nil {
		b.desk.note(func() { f(l) })
	}
}

// release tells the limiter about the end of a delivery.
func (b *brake) release(now time.Time, p permit, results ...queue.Result) {
	if b == nil {
		return
	}
	p.release(now, results...)
	b.changes++
	if b.onDone {
		b.askAt, b.onDone = time.Time{}, false
	}
}

// brakeAhead is how far the limiter is asked to look when the worker is about
// to receive, besides what the messages need to come: far enough to receive
// ten at a time from 40 a second on.
const brakeAhead = 250 * time.Millisecond

// roomAhead returns how many deliveries the limiter lets begin soon, beyond those
// for which others that share it have slots reserved.
func (w *Worker) roomAhead(now time.Time) int {
	room := w.roomOf(now)
	if _, reserved := w.heldByOthers(room); reserved > 0 {
		room -= reserved
	}
	return max(room, 0)
}

// roomOf returns how many deliveries the limiter lets begin soon, of whichever
// queue.
func (w *Worker) roomOf(now time.Time) int {
	return w.brake.room(now, brakeAhead+3*w.pace.roundTrip/2)
}

// heldByOthers returns how much of a limiter's room the other workers of the pool
// that share it have in use: by messages in hand or expected of receives under
// way, and reserved by the slots that they were granted. Both are 0 where the
// room is larger than anybody's use.
func (w *Worker) heldByOthers(room int) (used, reserved int) {
	if w.pool == nil || room >= maxPrefetch {
		return 0, 0
	}
	for _, m := range w.pool.members {
		if m == w || !m.brake.shares(w.brake) {
			continue
		}
		near := m.ready.len() + m.polls.hope
		slots := m.share.granted
		slots = min(slots*m.batch.Size, max(slots, near))
		used, reserved = used+max(near, slots), reserved+slots
	}
	return used, reserved
}

// tripped reports whether the breaker keeps the worker from receiving.
func (w *Worker) tripped(now time.Time) bool {
	return w.brake != nil && w.roomOf(now) == 0 && w.brake.roomWhy == breakerReason
}

// cramped reports whether the limiter has room for fewer messages than queues
// share it.
func (w *Worker) cramped(now time.Time) bool {
	if w.brake == nil || w.pool == nil {
		return false
	}
	queues := 0
	for _, m := range w.pool.members {
		if m.brake.shares(w.brake) {
			queues++
		}
	}
	return w.roomOf(now) < queues
}

// permitted returns how many messages the next receive may ask for as far as
// the limiter is concerned: what has room beyond those that are on their way
// to a slot, and that ten at a time if so many have room at all.
func (w *Worker) permitted(now time.Time) int {
	if w.brake == nil {
		return queue.MaxBatch
	}
	room := w.roomOf(now)
	if room == 0 {
		w.brake.keepBack(now, brakeAgain, or(w.brake.roomWhy, "limit"))
		return 0
	}
	if w.pool != nil {
		return w.permittedOf(room, now)
	}
	return inTens(room, w.ready.len()+w.polls.asked)
}

// permittedOf is permitted in a pool: each queue may use its share of the room
// that the others leave, and what it has reserved slots for. A queue that seems
// empty waits for no more than an equal part, since messages may come to
// all of them at once, and what has no room then costs a receive for nothing.
func (w *Worker) permittedOf(room int, now time.Time) int {
	near := w.ready.len() + w.polls.hope
	used, reserved := w.heldByOthers(room)
	need := min(w.needed(), room-reserved)
	share := int(math.Ceil(float64(room) * w.pool.shareOfRoom(w, now)))
	return max(min(inTens(share, near), room-used-near), need)
}

// inTens returns how much of a room is left by what is near, but nothing as long
// as that is less than a whole receive.
func inTens(room, near int) int {
	left := room - near
	if near > 0 && left < min(queue.MaxBatch, room) {
		return 0
	}
	return left
}

// lookAgain asks for a round soon, since a limiter does not say by itself when
// it has room again.
func (w *Worker) lookAgain(now time.Time) {
	if !now.Before(w.lookAt) {
		w.lookAt = now.Add(brakeAgain)
	}
	w.wakeAt(w.lookAt)
}

// askAt returns when to ask the limiter again, zero when nothing waits for it.
func (w *Worker) askAt() time.Time {
	if w.brake == nil || w.ready.len() == 0 {
		return time.Time{}
	}
	return w.brake.askAt
}
