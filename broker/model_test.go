package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestModel(t *testing.T) {
	for _, c := range []struct {
		name string
		fifo bool
		tiny bool // keeps most messages only on disk
	}{{"standard", false, false}, {"fifo", true, false}, {"standard-tiny", false, true}, {"fifo-tiny", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var steps int
			defer func() { t.Logf("%d steps, no difference unless one is reported above", steps) }()
			rapid.Check(t, func(rt *rapid.T) {
				dir := testpeer.MemoryFolder(rt)
				rapid.SyncTest(rt, func(rt *rapid.T) {
					m := newModel(rt, dir, c.fifo, c.tiny)
					defer func() { m.b.Close() }()
					defer m.checkNoOrphans()
					rt.Repeat(map[string]func(*rapid.T){
						"send": m.send, "receive": m.receive, "delete": m.delete, "visibility": m.visibility,
						"tick": m.tick, "restart": m.restart, "kill": m.kill, "purge": m.purge,
						"redrive": m.redrive, "remove": m.remove, "start move": m.startMove, "cancel move": m.cancelMove,
						"flood": m.flood, "attempt": m.attempt,
						"": func(rt *rapid.T) { steps++; m.check(rt) },
					})
				})
			})
		})
	}
}

const (
	modelMax       = 3
	modelRetention = 60 * time.Second
	modelWork      = "work"
	modelDead      = "dead"
	modelOther     = "other"
)

var modelPlaces = []string{modelWork, modelDead, modelOther}

type model struct {
	t        *rapid.T
	b        *Broker
	dir      string
	fifo     bool
	tiny     bool
	suffix   string
	messages []*modelled
	receipts []modelReceipt
	sent     int
	arrivals int
	ledgers  map[string]*Ledger
	copies   int
	turns    map[string]*modelTurn
	given    int
	task     *modelTask
	tenants  map[string]*modelTenants
}

// modelTurn places a FIFO group after the groups whose first message arrived no later than behind.
type modelTurn struct {
	behind, given int
	lastGiven     int // given at the last delivery, until behind is known
}

type modelled struct {
	id, body, group string
	place           string
	arrival         int
	sentAt          time.Time
	due             time.Time
	until           time.Time // visibility deadline; zero if not in flight
	since           time.Time
	received        time.Time
	count, base     int
	handle          string
	deadAt          time.Time
	dead            bool
	flightForgotten bool // a kill lost the visibility deadline
	attempts        []string
	attemptedAt     time.Time
}

type modelReceipt struct {
	handle  string
	m       *modelled
	place   string
	arrival int
}

func (r *modelReceipt) there() bool { return r.m.place == r.place && r.m.arrival == r.arrival }

func newModel(t *rapid.T, dir string, fifo, tiny bool) *model {
	m := &model{t: t, dir: dir, fifo: fifo, tiny: tiny, ledgers: map[string]*Ledger{}, turns: map[string]*modelTurn{},
		tenants: map[string]*modelTenants{}}
	for _, place := range modelPlaces {
		m.ledgers[place] = &Ledger{}
		m.tenants[place] = newModelTenants()
	}
	m.open()
	attrs := map[string]string{"MessageRetentionPeriod": "60", "VisibilityTimeout": "5"}
	if fifo {
		m.suffix = ".fifo"
		attrs["FifoQueue"], attrs["ContentBasedDeduplication"] = "true", "true"
	}
	m.must(m.b.CreateQueue(context.Background(), modelDead+m.suffix, attrs, nil))
	m.must(m.b.CreateQueue(context.Background(), modelOther+m.suffix, attrs, nil))
	attrs["RedrivePolicy"] = policy(m.b, modelDead+m.suffix, modelMax)
	m.must(m.b.CreateQueue(context.Background(), modelWork+m.suffix, attrs, nil))
	return m
}

func (m *model) open() {
	opts := quiet()
	if m.tiny {
		opts.limits = &memoryLimits{total: 8, least: 2, standard: 4, fifo: 4, fill: 3, cache: 700, inFlight: 1000, queues: 10}
	}
	b, err := Open(m.dir, opts)
	m.must(err)
	m.b = b
	synctest.Wait()
}

func (m *model) must(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) settle() {
	now := time.Now()
	m.endFlights(now)
	m.messages = slices.DeleteFunc(m.messages, func(x *modelled) bool {
		if !x.until.IsZero() && !x.until.After(now) {
			x.until = time.Time{}
		}
		if x.sentAt.Add(modelRetention).After(now) {
			return false
		}
		if x.visible(now) {
			m.tenants[x.place].known = false // the message may still be in memory
		}
		m.ledgers[x.place].Expired++
		x.place = ""
		return true
	})
}

func (x *modelled) visible(now time.Time) bool { return x.until.IsZero() && !x.due.After(now) }

func (m *model) in(place string) (list []*modelled) {
	for _, x := range m.messages {
		if x.place == place {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, byArrival)
	return list
}

func byArrival(a, b *modelled) int { return cmp.Compare(a.arrival, b.arrival) }

func (m *model) send(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "n")
	var out []queue.Outgoing
	for range n {
		o := queue.Outgoing{Body: m.nextBody()}
		if m.fifo {
			o.GroupID = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "group")
		} else if o.GroupID = rapid.SampledFrom(modelGroups).Draw(t, "tenant"); rapid.Bool().Draw(t, "delayed") {
			o.Delay = new(time.Duration(rapid.IntRange(1, 30).Draw(t, "delay")) * 500 * time.Millisecond)
		}
		if ahead := rapid.SampledFrom([]int{0, 0, 0, -5, 5, 30, 90, 1000}).Draw(t, "ahead"); !m.fifo && ahead != 0 {
			o.NotBefore = time.Now().Add(time.Duration(ahead) * time.Second)
		}
		out = append(out, o)
	}
	place := rapid.SampledFrom([]string{modelWork, modelWork, modelWork, modelDead}).Draw(t, "queue")
	m.sendTo(t, place, out)
}

func (m *model) nextBody() string {
	m.sent++
	return fmt.Sprint("m", m.sent)
}

func (m *model) sendTo(t *rapid.T, place string, out []queue.Outgoing) {
	sent, err := m.b.Queue(place+m.suffix).Send(context.Background(), out)
	m.must(err)
	m.tenants[place].arrive(out)
	for i, s := range sent {
		m.must(s.Err)
		m.arrivals++
		x := &modelled{id: s.ID, body: out[i].Body, group: out[i].GroupID, place: place, arrival: m.arrivals,
			sentAt: time.Now()}
		if out[i].Delay != nil {
			x.due = time.Now().Add(*out[i].Delay)
		}
		if at := out[i].NotBefore; at.After(time.Now()) {
			if at.After(x.due) {
				x.due = at
			}
			x.sentAt = x.due // its age and retention period start then
		}
		m.messages = append(m.messages, x)
		m.ledgers[place].Sent++
	}
}

func (m *model) receive(t *rapid.T) {
	some := []string{modelWork, modelWork, modelWork, modelDead, modelDead, modelOther}
	place := rapid.SampledFrom(some).Draw(t, "queue")
	limit := rapid.IntRange(1, 10).Draw(t, "max")
	visibility := time.Duration(rapid.SampledFrom([]int{0, 1, 5, 20}).Draw(t, "visibility")) * time.Second
	m.receiveFrom(t, place, limit, visibility)
}

func (m *model) receiveFrom(t *rapid.T, place string, limit int, visibility time.Duration) {
	msgs, err := m.b.Queue(place+m.suffix).Receive(context.Background(),
		queue.ReceiveRequest{Max: limit, Visibility: &visibility})
	m.must(err)
	switch {
	case m.fifo && m.tiny:
		m.acceptFIFO(t, place, msgs)
	case m.fifo:
		m.expectFIFO(t, place, limit, msgs)
	default:
		before := m.beginFair(place)
		m.expectStandard(t, place, limit, msgs)
		m.expectFair(t, place, before, msgs)
	}
	for i, got := range msgs {
		if m.fifo && (i == 0 || msgs[i-1].GroupID != got.GroupID) {
			m.gaveOut(place, got.GroupID)
		}
		m.received(t, place, &got, visibility)
	}
}

func (m *model) gaveOut(place, group string) {
	turn := m.turns[place+"/"+group]
	if turn == nil {
		turn = &modelTurn{}
		m.turns[place+"/"+group] = turn
	}
	m.given++
	turn.lastGiven = m.given
}

func (x *modelled) over() bool { return x.place == modelWork && x.count-x.base >= modelMax }

func (m *model) expectStandard(t *rapid.T, place string, limit int, msgs []queue.Message) {
	good, over := 0, 0
	for _, x := range m.in(place) {
		switch {
		case !x.visible(time.Now()):
		case x.over():
			over++
		default:
			good++
		}
	}
	if len(msgs) != min(limit, good) && !(m.tiny && min(limit, good, len(msgs)) > 0) {
		t.Fatalf("received %d messages of %d visible ones and %d over, want %d", len(msgs), good, over, min(limit, good))
	}
	if place != modelWork {
		return
	}
	moved := m.newlyDead()
	if !m.tiny && !slices.IsSortedFunc(moved, byArrival) {
		t.Fatal("messages were dead-lettered in another order than they arrived in")
	}
	for _, x := range moved {
		if !x.visible(time.Now()) || !x.over() {
			t.Fatalf("%s was dead-lettered too early", x.body)
		}
		m.dead(x)
	}
	for _, x := range m.in(place) {
		if x.visible(time.Now()) && x.over() && len(msgs) < limit && !m.tiny {
			t.Fatalf("%s has used up its receives, and was passed over", x.body)
		}
	}
}

func (m *model) newlyDead() (moved []*modelled) {
	for _, s := range browsed(m.t, m.b, modelDead+m.suffix, BrowseRequest{}) {
		for _, x := range m.messages {
			if x.place == modelWork && x.id == s.ID {
				moved = append(moved, x)
			}
		}
	}
	return moved
}

func (m *model) dead(x *modelled) {
	m.arrivals++
	x.place, x.base, x.deadAt, x.arrival, x.due, x.handle = modelDead, x.count, time.Now(), m.arrivals, time.Time{}, ""
	x.dead = true
	if m.fifo {
		x.sentAt = time.Now()
	}
	m.ledgers[modelWork].DeadLettered++
	m.ledgers[modelDead].MovedIn++
}

func (m *model) expectFIFO(t *rapid.T, place string, limit int, msgs []queue.Message) {
	var want []string
	for {
		diverted := m.passFIFO(place, limit, &want)
		for _, x := range diverted {
			m.dead(x)
		}
		if len(want) > 0 || len(diverted) == 0 {
			break
		}
	}
	if got := texts(msgs); got != strings.Join(want, " ") {
		t.Fatalf("received %q, want %q", got, strings.Join(want, " "))
	}
}

// acceptFIFO checks that messages of a group come in order from the first one, and only while none is in flight.
func (m *model) acceptFIFO(t *rapid.T, place string, msgs []queue.Message) {
	if place == modelWork {
		for _, x := range m.newlyDead() {
			if !x.over() {
				t.Fatalf("%s was dead-lettered too early", x.body)
			}
			if list := m.in(place); list[slices.IndexFunc(list, func(y *modelled) bool { return y.group == x.group })] != x {
				t.Fatalf("%s was dead-lettered before an earlier message of its group", x.body)
			}
			m.dead(x)
		}
	}
	if list := m.in(place); len(msgs) == 0 && len(list) > 0 && list[0].visible(time.Now()) {
		t.Fatalf("%s is the first of all, and was passed over", list[0].body)
	}
	next := map[string][]*modelled{}
	for _, got := range msgs {
		list, known := next[got.GroupID]
		if !known {
			list = m.deliverable(place, got.GroupID)
		}
		if len(list) == 0 || list[0].id != got.ID {
			t.Fatalf("received %s out of order", got.Body)
		}
		next[got.GroupID] = list[1:]
	}
}

func (m *model) deliverable(place, group string) (list []*modelled) {
	for _, x := range m.in(place) {
		switch {
		case x.group != group:
		case !x.visible(time.Now()):
			return list
		default:
			list = append(list, x)
		}
	}
	return list
}

func (m *model) groups(place string) (groups []string) {
	at := func(group string) (behind, given int) {
		if turn := m.turns[place+"/"+group]; turn != nil && turn.given > 0 {
			return turn.behind, turn.given
		}
		return m.deliverable(place, group)[0].arrival, 0
	}
	for _, x := range m.in(place) {
		if !slices.Contains(groups, x.group) && len(m.deliverable(place, x.group)) > 0 {
			groups = append(groups, x.group)
		}
	}
	slices.SortFunc(groups, func(a, b string) int {
		aBehind, aGiven := at(a)
		bBehind, bGiven := at(b)
		return cmp.Or(cmp.Compare(aBehind, bBehind), cmp.Compare(aGiven, bGiven))
	})
	return groups
}

func (m *model) takeTurns() {
	for _, place := range modelPlaces {
		for _, group := range []string{"a", "b", "c"} {
			turn := m.turns[place+"/"+group]
			if turn == nil {
				continue
			}
			if !slices.ContainsFunc(m.in(place), func(x *modelled) bool { return x.group == group }) {
				delete(m.turns, place+"/"+group)
			} else if turn.lastGiven > 0 && len(m.deliverable(place, group)) > 0 {
				*turn = modelTurn{behind: m.arrivals, given: turn.lastGiven}
			}
		}
	}
}

func (m *model) passFIFO(place string, limit int, want *[]string) (diverted []*modelled) {
	for _, group := range m.groups(place) {
		for _, x := range m.deliverable(place, group) {
			if len(*want) == limit {
				break
			}
			if x.over() {
				diverted = append(diverted, x)
				break
			}
			*want = append(*want, x.body)
		}
	}
	return diverted
}

func (m *model) received(t *rapid.T, place string, got *queue.Message, visibility time.Duration) {
	i := slices.IndexFunc(m.messages, func(x *modelled) bool { return x.id == got.ID })
	if i < 0 {
		t.Fatalf("received %s, which is not there", got.Body)
	}
	x := m.messages[i]
	if x.place != place || x.body != got.Body || x.group != got.GroupID || !x.visible(time.Now()) {
		t.Fatalf("received %+v, the model has %+v", got, x)
	}
	x.count++
	if place == modelDead && m.task.running() {
		m.task.touched[x.group] = true
	}
	if x.received = time.Now(); got.ReceiveCount != x.count {
		t.Fatalf("%s: receive count %d, want %d", x.body, got.ReceiveCount, x.count)
	}
	x.since, x.handle = time.Now(), got.ReceiptHandle
	if visibility > 0 {
		x.until = time.Now().Add(visibility)
		m.beganFlight(x)
	}
	m.receipts = append(m.receipts, modelReceipt{got.ReceiptHandle, x, place, x.arrival})
}

func (m *model) receipt(t *rapid.T) modelReceipt {
	if len(m.receipts) == 0 {
		t.Skip("nothing was received yet")
	}
	return m.receipts[rapid.IntRange(0, len(m.receipts)-1).Draw(t, "receipt")]
}

func (m *model) delete(t *rapid.T) {
	r := m.receipt(t)
	errs := m.b.Queue(r.place+m.suffix).Delete(context.Background(), []string{r.handle})
	there := r.there()
	if m.fifo && there && (r.m.handle != r.handle || r.m.until.IsZero()) {
		if errs == nil {
			t.Fatalf("an expired receipt deleted %s", r.m.body)
		}
		return
	}
	if errs != nil {
		t.Fatalf("deleting %s: %v", r.m.body, errs)
	}
	if there {
		m.endFlightsOf(r.m)
		m.gone(r.m)
		m.ledgers[r.place].Done++
	}
}

func (m *model) gone(x *modelled) {
	x.place = ""
	m.messages = slices.DeleteFunc(m.messages, func(y *modelled) bool { return x == y })
}

func (m *model) visibility(t *rapid.T) {
	r := m.receipt(t)
	visibility := time.Duration(rapid.SampledFrom([]int{0, 1, 10}).Draw(t, "visibility")) * time.Second
	errs := m.b.Queue(r.place+m.suffix).ChangeVisibility(context.Background(),
		[]queue.VisibilityChange{{ReceiptHandle: r.handle, Visibility: visibility}})
	there := r.there()
	works := there && (!m.fifo || r.m.handle == r.handle) && !r.m.until.IsZero()
	if (errs != nil) != (!there || m.fifo && !works) {
		t.Fatalf("%s: %v", r.m.body, errs)
	}
	if works {
		r.m.since, r.m.until = time.Now(), time.Now().Add(visibility)
		if visibility == 0 {
			m.endFlightsOf(r.m)
			r.m.until = time.Time{}
		}
	}
}

func (m *model) tick(t *rapid.T) {
	m.sleep(t, time.Duration(rapid.SampledFrom([]int{10, 100, 250, 1000, 5000, 20000}).Draw(t, "ms"))*time.Millisecond)
}

func (m *model) sleep(t *rapid.T, d time.Duration) {
	for d > 0 {
		step := d
		if m.task.running() {
			step = min(d, delayGrid*time.Millisecond)
		}
		time.Sleep(step)
		synctest.Wait()
		m.lookAtMove(t, false)
		m.settle()
		m.takeTurns()
		d -= step
	}
}

func (m *model) restart(t *rapid.T) {
	m.must(m.b.Close())
	m.open()
	m.forgetOrder()
	m.lookAtMove(t, false)
}

func (m *model) forgetOrder() {
	clear(m.turns)
	for place := range m.tenants {
		m.tenants[place] = newModelTenants()
	}
}

// No receive may be lost, but recently received messages may be visible at once.
func (m *model) kill(t *rapid.T) {
	synctest.Wait()
	m.copies++
	next := fmt.Sprintf("%s/%d", m.dir, m.copies)
	copyDir(t, m.dir, next)
	m.must(m.b.Close())
	m.dir = next
	m.open()
	m.forgetOrder()
	m.lookAtMove(t, true)
	for _, x := range m.messages {
		m.forget(t, x)
	}
}

func (m *model) forget(t *rapid.T, x *modelled) {
	s, err := m.b.Message(context.Background(), x.place+m.suffix, x.id)
	m.must(err)
	if n := len(s.Attempts); n < len(x.attempts) && time.Since(x.attemptedAt) <= 2*attemptLinger {
		x.attempts = x.attempts[:n]
	}
	inFlight := s.State == InFlight
	if s.ReceiveCount != x.count {
		t.Fatalf("%s: received %d times after the kill, want %d", x.body, s.ReceiveCount, x.count)
	}
	if inFlight == !x.until.IsZero() && (!inFlight || s.Until.Equal(x.until)) {
		return
	}
	if time.Since(x.since) > 2*storeAfter {
		t.Fatalf("%s: the kill forgot until when it is in flight, of %v ago: %+v, want %+v", x.body, time.Since(x.since), s, x)
	}
	x.until, x.flightForgotten = time.Time{}, true
	if inFlight {
		x.until = s.Until
	}
}

func (m *model) attempt(t *rapid.T) {
	r := m.receipt(t)
	m.copies++
	said := fmt.Sprint("answer ", m.copies)
	m.b.RecordAttempt(r.place+m.suffix, r.m.id, Attempt{At: time.Now(), Outcome: "failed", Status: 500, Answer: said})
	if x := r.m; x.place != "" {
		x.attemptedAt = time.Now()
		x.attempts = append(x.attempts, said)
	}
}

func (m *model) checkNoOrphans() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
	checkAttempts(m.t, m.b)
}

func (m *model) purge(t *rapid.T) {
	place := rapid.SampledFrom(modelPlaces).Draw(t, "queue")
	n, err := m.b.PurgeQueue(context.Background(), place+m.suffix)
	m.must(err)
	list := m.in(place)
	if n != len(list) {
		t.Fatalf("purged %d, want %d", n, len(list))
	}
	if n > 0 {
		m.tenants[place] = newModelTenants()
	}
	m.ledgers[place].Purged += int64(n)
	for _, x := range list {
		m.gone(x)
	}
}

func (m *model) some(t *rapid.T, place string) (list []*modelled, ids []string) {
	for _, x := range m.in(place) {
		if rapid.Bool().Draw(t, "take "+x.body) {
			list, ids = append(list, x), append(ids, x.id)
		}
	}
	if len(list) == 0 {
		t.Skip("nothing chosen")
	}
	return list, ids
}

func (m *model) redrive(t *rapid.T) {
	list, ids := m.some(t, modelDead)
	list = slices.DeleteFunc(list, func(x *modelled) bool { return !x.dead })
	n, err := m.b.Move(context.Background(), modelDead+m.suffix, "", ids)
	m.must(err)
	if n != len(list) {
		t.Fatalf("moved %d, want %d", n, len(list))
	}
	m.endFlightsOf(list...)
	for _, x := range list {
		m.moved(x, modelWork, time.Now())
	}
}

func (m *model) moved(x *modelled, to string, at time.Time) {
	m.arrivals++
	x.place, x.base, x.sentAt, x.arrival, x.until, x.handle = to, x.count, at, m.arrivals, time.Time{}, ""
	x.due, x.deadAt = time.Time{}, time.Time{}
	m.ledgers[modelDead].MovedOut++
	m.ledgers[to].MovedIn++
}

func (m *model) remove(t *rapid.T) {
	place := rapid.SampledFrom(modelPlaces).Draw(t, "queue")
	list, ids := m.some(t, place)
	n, err := m.b.DeleteMessages(context.Background(), place+m.suffix, ids)
	m.must(err)
	if n != len(list) {
		t.Fatalf("removed %d, want %d", n, len(list))
	}
	m.endFlightsOf(list...)
	m.ledgers[place].Purged += int64(n)
	for _, x := range list {
		m.gone(x)
	}
}

func (m *model) check(t *rapid.T) {
	m.takeTurns()
	m.checkMove(t)
	now := time.Now()
	for place, want := range m.ledgers {
		want.Live, want.Visible, want.Delayed, want.InFlight = 0, 0, 0, 0
		list := m.in(place)
		for _, x := range list {
			want.Live++
			switch {
			case !x.until.IsZero():
				want.InFlight++
			case x.due.After(now):
				want.Delayed++
			default:
				want.Visible++
			}
		}
		got, err := m.b.Ledger(place + m.suffix)
		m.must(err)
		if got != *want {
			t.Fatalf("%s: ledger %+v, want %+v", place, got, *want)
		}
		m.checkBrowse(t, place, list)
	}
	if total := m.b.TotalLedger(); total.MovedIn != total.DeadLettered+total.MovedOut {
		t.Fatalf("total %+v", total)
	}
}

func (m *model) checkBrowse(t *rapid.T, place string, list []*modelled) {
	var got, want []string
	for _, s := range browsed(t, m.b, place+m.suffix, BrowseRequest{Limit: max(3, len(list)/3)}) {
		got = append(got, fmt.Sprint(s.Body, s.ReceiveCount, !s.DeadAt.IsZero(), answersOf(s)))
	}
	for _, x := range list {
		x.attempts = x.attempts[max(0, len(x.attempts)-keptAttempts):]
		want = append(want, fmt.Sprint(x.body, x.count, !x.deadAt.IsZero(), x.attempts))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: browsing shows %v, want %v", place, got, want)
	}
}
