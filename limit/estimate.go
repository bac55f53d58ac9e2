package limit

import "time"

// memory is over how many deliveries, roughly, an average is taken.
const averageOver = 32

// pace is how fast the app works and in what portions, learnt from deliveries.
type estimate struct {
	// took is the mean time that a delivery takes; 0 until one was answered.
	took float64
	// batch is the most messages that a delivery may have. It is no mean: batches
	// are cut to the room there is, and a mean would shrink with what it causes.
	batch int
}

// answered takes in one delivery that is done.
func (p *estimate) recordDuration(took time.Duration) {
	t := max(float64(took), 1)
	if p.took == 0 {
		p.took = t
		return
	}
	p.took += (t - p.took) / averageOver
}

// begun takes in the size of one delivery.
func (p *estimate) begun(n int) { p.batch = max(p.batch, n) }

// telling reports whether a delivery that is not done says something about the
// app's speed. What failed sooner than others succeed was not worked on: an app
// that turns requests away at once must not pass for a fast one.
func (p *estimate) showsSpeed(took time.Duration) bool { return p.took > 0 && float64(took) >= p.took }

// room returns how many messages of deliveries may begin within d where limit
// deliveries are allowed at once and used are in work.
func (p *estimate) room(limit, used int, d time.Duration) int {
	deliveries := float64(max(limit-used, 0))
	if p.took > 0 {
		deliveries += float64(limit) * max(float64(d), 0) / p.took
	}
	return p.messagesIn(deliveries)
}

// inMessages says how many messages so many deliveries may carry.
func (p *estimate) messagesIn(deliveries float64) int {
	return int(min(deliveries*float64(p.batch), unlimited))
}
