package series

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"tendril/internal/observe/health"
)

// MaxQueues is the maximum number of queues with their own curves.
const MaxQueues = 64

const maxMarks = 100

// Counts are cumulative. They decrease if a counter is reset.
type Counts struct{ In, Out int64 }

// Reading is a snapshot of all counters.
type Reading struct {
	Total           Counts
	Queues          map[string]Counts
	InFlight, Limit int
	// Oldest, an age, is valid if HasOldest.
	Oldest    time.Duration
	HasOldest bool
	Latencies health.Latencies
}

// Recorder records time series. It is safe for concurrent use.
type Recorder struct {
	read func(now time.Time) Reading

	mu     sync.Mutex
	levels [len(ranges)]level
	last   Reading
	at     time.Time
	marks  []Mark
}

// New returns a recorder that calls read.
func New(read func(now time.Time) Reading) *Recorder {
	r := &Recorder{read: read}
	for i := range r.levels {
		r.levels[i] = newLevel(ranges[i].step)
	}
	return r
}

// Run calls read every five seconds until ctx is done.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.Tick(ranges[0].step)
	for {
		now := time.Now()
		reading := r.read(now)
		r.record(&reading, now)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// Mark adds a mark to the time axis.
func (r *Recorder) Mark(at time.Time, kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks[max(0, len(r.marks)-maxMarks+1):], Mark{at.Unix(), kind, text})
}

func (r *Recorder) record(now *Reading, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if elapsed := at.Sub(r.at); !r.at.IsZero() && elapsed > 0 {
		s := sample{took: elapsed, traffic: now.trafficSince(&r.last), reading: now,
			latencies: now.Latencies.Since(&r.last.Latencies)}
		for i := range r.levels {
			r.levels[i].add(&s, at)
		}
	}
	r.last, r.at = *now, at
}

const total = ""

func (r *Reading) trafficSince(earlier *Reading) map[string]Counts {
	traffic := map[string]Counts{total: r.Total.since(earlier.Total)}
	for name, counts := range r.Queues {
		if before, known := earlier.Queues[name]; known {
			traffic[name] = counts.since(before)
		}
	}
	return traffic
}

func (c Counts) since(earlier Counts) Counts {
	return Counts{max(c.In-earlier.In, 0), max(c.Out-earlier.Out, 0)}
}

// Curves returns the named range, or the shortest for "". It returns false for an unknown name.
func (r *Recorder) Curves(name string, now time.Time) (Curves, bool) {
	i := slices.IndexFunc(ranges[:], func(r timeRange) bool { return name == "" || name == r.name })
	if i < 0 {
		return Curves{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.levels[i].curves(now)
	start := c.At[0] - int64(ranges[i].step/time.Second)
	c.Marks = []Mark{}
	for _, m := range r.marks {
		if m.At > start {
			c.Marks = append(c.Marks, m)
		}
	}
	return c, true
}

// Rate is a queue's messages per second.
type Rate struct{ In, Out float64 }

// Rates returns each queue's average rate in the last minute. The rate of all queues has the key "".
func (r *Recorder) Rates(now time.Time) map[string]Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := int64(time.Minute / ranges[0].step)
	rates := map[string]Rate{}
	for name, q := range r.levels[0].traffic {
		rates[name] = Rate{In: r.levels[0].average(q.in, minute, now), Out: r.levels[0].average(q.out, minute, now)}
	}
	return rates
}

func (l *level) average(c *curve, n int64, now time.Time) float64 {
	sum, known := 0.0, 0
	first := max(now.UnixNano()/int64(l.step)-n+1, l.slot-points+1, 0)
	for slot := first; slot <= l.slot; slot++ {
		if v := c[slot%points]; !isNone(v) {
			sum += float64(v)
			known++
		}
	}
	return sum / float64(max(known, 1))
}

type sample struct {
	took      time.Duration
	traffic   map[string]Counts
	reading   *Reading
	latencies health.Latencies
}

const (
	inFlight = iota
	limit
	p50
	p95
	p99
	oldest
	gauges
)

type curve [points]float32

type queueCurves struct{ in, out *curve }

type level struct {
	step    time.Duration
	slot    int64 // steps since 1970; 0 before the first point
	traffic map[string]queueCurves
	gauges  [gauges]curve
	open    period
}

type period struct {
	took      time.Duration
	traffic   map[string]Counts
	inFlight  float64 // messages times seconds
	limit     int
	oldest    time.Duration
	hasOldest bool
	latencies health.Latencies
}

func newLevel(step time.Duration) level {
	l := level{step: step, traffic: map[string]queueCurves{}}
	for i := range l.gauges {
		l.gauges[i].clear(0, points)
	}
	l.addQueue(total)
	return l
}

func (c *curve) clear(from, n int64) {
	for i := range n {
		c[(from+i)%points] = none
	}
}

func (l *level) addQueue(name string) {
	q := queueCurves{new(curve), new(curve)}
	q.in.clear(0, points)
	q.out.clear(0, points)
	l.traffic[name] = q
}

func (l *level) add(s *sample, at time.Time) {
	slot := at.UnixNano() / int64(l.step)
	if slot < l.slot-points {
		*l = newLevel(l.step)
	}
	if slot < l.slot {
		return
	}
	if slot > l.slot {
		l.moveTo(slot)
	}
	l.open.add(s)
	l.writePoint()
}

func (l *level) moveTo(slot int64) {
	skipped := min(slot-l.slot, points)
	for _, c := range l.allCurves() {
		c.clear(slot-skipped+1, skipped)
	}
	l.slot = slot
	l.open = period{traffic: map[string]Counts{}}
	l.forgetIdleQueues()
}

func (l *level) allCurves() (curves []*curve) {
	for i := range l.gauges {
		curves = append(curves, &l.gauges[i])
	}
	for _, q := range l.traffic {
		curves = append(curves, q.in, q.out)
	}
	return curves
}

func (l *level) forgetIdleQueues() {
	maps.DeleteFunc(l.traffic, func(name string, q queueCurves) bool {
		return name != total && !slices.ContainsFunc(q.in[:], func(v float32) bool { return !isNone(v) })
	})
}

func (p *period) add(s *sample) {
	p.took += s.took
	for name, counts := range s.traffic {
		sum := p.traffic[name]
		p.traffic[name] = Counts{sum.In + counts.In, sum.Out + counts.Out}
	}
	p.inFlight += float64(s.reading.InFlight) * s.took.Seconds()
	p.limit = s.reading.Limit
	if s.reading.HasOldest {
		p.oldest, p.hasOldest = max(p.oldest, s.reading.Oldest), true
	}
	p.latencies.Add(&s.latencies)
}

func (l *level) writePoint() {
	at, took := l.slot%points, l.open.took.Seconds()
	for name, counts := range l.open.traffic {
		if _, known := l.traffic[name]; !known {
			if len(l.traffic) > MaxQueues {
				continue
			}
			l.addQueue(name)
		}
		l.traffic[name].in[at] = float32(float64(counts.In) / took)
		l.traffic[name].out[at] = float32(float64(counts.Out) / took)
	}

	l.gauges[inFlight][at] = float32(l.open.inFlight / took)
	l.gauges[limit][at] = float32(l.open.limit)
	if l.open.hasOldest {
		l.gauges[oldest][at] = float32(l.open.oldest.Seconds())
	}

	for gauge, share := range map[int]float64{p50: 0.5, p95: 0.95, p99: 0.99} {
		if d := l.open.latencies.Percentile(share); d > 0 {
			l.gauges[gauge][at] = float32(d.Seconds() * 1000)
		}
	}
}

func (l *level) curves(now time.Time) Curves {
	// The current period has no point before its first reading.
	newest := max(now.UnixNano()/int64(l.step)-1, l.slot)
	gauge := func(i int) Values { return l.values(&l.gauges[i], newest) }
	c := Curves{At: make([]int64, points), Queues: map[string]Traffic{}, Series: Environment{
		InFlight: gauge(inFlight), Limit: gauge(limit), P50MS: gauge(p50), P95MS: gauge(p95), P99MS: gauge(p99),
		OldestSeconds: gauge(oldest),
	}}

	for i := range c.At {
		c.At[i] = (newest - points + 2 + int64(i)) * int64(l.step/time.Second)
	}
	c.At[points-1] = min(c.At[points-1], now.Unix())

	for name, q := range l.traffic {
		traffic := Traffic{l.values(q.in, newest), l.values(q.out, newest)}
		if name == total {
			c.Series.Traffic = traffic
		} else {
			c.Queues[name] = traffic
		}
	}
	return c
}

func (l *level) values(c *curve, newest int64) Values {
	v := make(Values, points)
	for i := range v {
		slot := newest - points + 1 + int64(i)
		v[i] = none
		if slot <= l.slot && slot > l.slot-points {
			v[i] = c[slot%points]
		}
	}
	return v
}
