package broker

import (
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"tendril/queue"
)

var modelGroups = []string{"", "a", "b", "c"}

type modelTenants struct {
	// known is false if the set of noisy tenants depends on the order of simultaneous events or the broker's memory.
	known bool
	seen  bool
	noisy map[string]bool
	done  []modelFlight
	row   int // consecutive messages of quiet tenants while a noisy one waited
}

type modelFlight struct {
	tenant string
	at     time.Time
	took   time.Duration
}

func newModelTenants() *modelTenants { return &modelTenants{known: true, noisy: map[string]bool{}} }

func (f *modelTenants) arrive(out []queue.Outgoing) {
	f.seen = f.seen || slices.ContainsFunc(out, func(o queue.Outgoing) bool { return o.GroupID != "" })
}

func (f *modelTenants) busy(now time.Time, which func(modelFlight) bool) (sum float64) {
	for _, d := range f.done {
		if which(d) {
			sum += float64(d.took) * math.Exp2(-float64(now.Sub(d.at))/float64(busyHalfLife))
		}
	}
	return sum
}

func (f *modelTenants) ended(m *model, at time.Time, flights []*modelled) {
	if !f.seen {
		f.known = f.known && !slices.ContainsFunc(m.in(flights[0].place), func(x *modelled) bool { return x.group != "" })
		return
	}
	earlier := f.busy(at, func(modelFlight) bool { return true })
	for _, x := range flights {
		f.done = append(f.done, modelFlight{x.group, at, max(time.Millisecond, at.Sub(x.received))})
		f.known = f.known && !x.flightForgotten
	}
	all := f.busy(at, func(modelFlight) bool { return true })
	for _, x := range flights {
		own := f.busy(at, func(d modelFlight) bool { return d.tenant == x.group })
		now := f.busy(at, func(d modelFlight) bool { return d.tenant == x.group && d.at.Equal(at) })
		const sure = 1 + 1e-9
		switch {
		case x.group == "":
		case own > 0.1*all*sure:
			f.noisy[x.group] = true
		case own*sure > 0.1*(earlier+now) && !f.noisy[x.group]:
			f.known = false
		}
	}
}

func (m *model) endFlights(now time.Time) {
	end := func(x *modelled) time.Time {
		if expires := x.sentAt.Add(modelRetention); expires.Before(x.until) {
			return expires
		}
		return x.until
	}
	for _, place := range modelPlaces {
		list := slices.DeleteFunc(m.in(place), func(x *modelled) bool { return x.until.IsZero() || end(x).After(now) })
		slices.SortStableFunc(list, func(a, b *modelled) int { return end(a).Compare(end(b)) })
		for len(list) > 0 {
			n := 1
			for n < len(list) && end(list[n]).Equal(end(list[0])) {
				n++
			}
			m.tenants[place].ended(m, end(list[0]), list[:n])
			list = list[n:]
		}
	}
}

func (m *model) endFlightsOf(list ...*modelled) {
	inFlight := slices.DeleteFunc(slices.Clone(list), func(x *modelled) bool { return x.until.IsZero() })
	if len(inFlight) > 0 {
		m.tenants[inFlight[0].place].ended(m, time.Now(), inFlight)
	}
}

func (m *model) inFlight(place, tenant string) (own, all int) {
	for _, x := range m.in(place) {
		if !x.until.IsZero() {
			all++
			if x.group == tenant {
				own++
			}
		}
	}
	return own, all
}

func (m *model) beganFlight(x *modelled) {
	f := m.tenants[x.place]
	if own, all := m.inFlight(x.place, x.group); x.group != "" {
		f.seen = true
		f.noisy[x.group] = f.noisy[x.group] || own >= 30 && 10*own > all
	}
}

func (m *model) beginFair(place string) (visible []*modelled) {
	f := m.tenants[place]
	for _, x := range m.in(place) {
		if x.visible(time.Now()) {
			visible = append(visible, x)
		}
	}
	for tenant := range f.noisy {
		if !slices.ContainsFunc(visible, func(x *modelled) bool { return x.group == tenant }) {
			delete(f.noisy, tenant)
		}
	}
	return visible
}

// expectFair checks that messages of noisy tenants come last, except for every tenth message, and that the noisy
// tenant with the fewest messages in flight comes first.
func (m *model) expectFair(t *rapid.T, place string, waiting []*modelled, msgs []queue.Message) {
	f := m.tenants[place]
	if m.tiny || !f.known {
		f.known = false
		return
	}
	noisy := func(x *modelled) bool { return f.noisy[x.group] }
	waiting = slices.DeleteFunc(waiting, func(x *modelled) bool {
		moved := x.place != place
		f.known = f.known && !(moved && noisy(x))
		return moved
	})
	given := map[string]int{}
	for _, got := range msgs {
		i := slices.IndexFunc(waiting, func(x *modelled) bool { return x.id == got.ID })
		if i < 0 {
			return
		}
		x := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		loud := slices.ContainsFunc(waiting, noisy)
		switch {
		case !f.known:
		case noisy(x):
			if f.row < 9 && slices.ContainsFunc(waiting, func(x *modelled) bool { return !noisy(x) }) {
				t.Fatalf("received %s of the noisy tenant %s before those of others, %d after the last one",
					x.body, x.group, f.row)
			}
			m.expectFewest(t, x, waiting, given)
			given[x.group]++
			f.row = 0
		case loud && f.row >= 9:
			t.Fatalf("received %s, and %d before it, while messages of noisy tenants wait", x.body, f.row)
		case loud:
			f.row++
		default:
			f.row = 0
		}
	}
}

func (m *model) expectFewest(t *rapid.T, x *modelled, waiting []*modelled, given map[string]int) {
	own, _ := m.inFlight(x.place, x.group)
	for _, other := range waiting {
		others, _ := m.inFlight(x.place, other.group)
		if m.tenants[x.place].noisy[other.group] && others+given[other.group] < own+given[x.group] {
			t.Fatalf("received %s of tenant %s with %d in flight before one of %s with %d", x.body, x.group,
				own+given[x.group], other.group, others+given[other.group])
		}
	}
}

func (m *model) flood(t *rapid.T) {
	if m.fifo || rapid.IntRange(0, 3).Draw(t, "not now") > 0 {
		t.Skip("no flood")
	}
	tenant := rapid.SampledFrom(modelGroups[1:]).Draw(t, "tenant")
	for range 4 {
		var out []queue.Outgoing
		for range queue.MaxBatch {
			out = append(out, queue.Outgoing{Body: m.nextBody(), GroupID: tenant})
		}
		m.sendTo(t, modelWork, out)
	}
	for range rapid.IntRange(1, 4).Draw(t, "receives") {
		m.receiveFrom(t, modelWork, queue.MaxBatch, 20*time.Second)
	}
}
