package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/broker"
	"tendril/internal/testing/faultfs"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type world struct {
	t    *testing.T
	plan *plan
	bug  bug
	fs   *faultfs.FS

	began   time.Time
	healed  atomic.Bool
	oracle  *oracle
	server  *server
	app     *app
	daemons []*daemon
	ending  sync.WaitGroup

	mu      sync.Mutex
	history []string
	faults  map[kind]int
}

type outcome struct {
	violations []string
	history    []string
	faults     map[kind]int
	figures    figures
	operations map[operationKind]int
	lasted     time.Duration
}

func run(t *testing.T, fs *faultfs.FS, p *plan, b bug) (out outcome) {
	root := testpeer.MemoryFolder(t)
	defer os.RemoveAll(root)
	defer watch(p)()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, plan: p, bug: b, fs: fs, began: time.Now(), faults: map[kind]int{}}
		w.oracle = &oracle{w: w, messages: map[string]*message{}, receipts: map[string]*message{},
			groups: map[string][]*message{}, since: map[string]time.Time{}, leaders: map[int64]*life{},
			followed: map[*daemon]int64{}, operations: map[operationKind]int{}, rollouts: map[string]*rollout{}}
		w.server = &server{w: w, root: root, dir: filepath.Join(root, "disk-0")}
		w.app = &app{w}
		fs.SetFail(w.server.fail)
		w.live()
		fs.SetFail(nil)
		fs.Forget(w.server.dir)
		out = outcome{w.oracle.violations, w.history, w.faults, w.oracle.figures, w.oracle.operations, w.now()}
	})
	return out
}

func watch(p *plan) (stop func()) {
	timer := time.AfterFunc(10*time.Minute, func() {
		fmt.Fprintf(os.Stderr, "this plan does not end:\n%s\n", p)
		panic("a simulation does not end")
	})
	return func() { timer.Stop() }
}

func (w *world) now() time.Duration { return time.Since(w.began) }

func (w *world) note(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), w.server.root, "")
	line := fmt.Sprintf("%12.6f  %s", w.now().Seconds(), text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, line)
}

func (w *world) injected(k kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[k]++
}

func (w *world) live() {
	w.startQueue()
	for i := range w.plan.Daemons {
		w.daemons = append(w.daemons, &daemon{w: w, index: i})
		w.daemons[i].start()
	}
	background, end := context.WithCancel(context.Background())
	var watching, producing sync.WaitGroup
	watching.Go(func() { w.oracle.watchLeaders(background) })
	w.produce(&producing)
	var operating sync.WaitGroup
	operating.Go(w.operate)
	w.disturb()
	operating.Wait()
	w.heal()
	healedAt := time.Now()
	producing.Wait()
	if w.plan.Tasks {
		if len(w.plan.Operations) > 0 {
			w.settleFleet()
		}
		time.Sleep(2*time.Minute + 137*time.Millisecond) // enough to elect a leader and catch up on missed runs
		for _, d := range w.daemons {
			d.running().stopTasks()
		}
		time.Sleep(time.Minute)
	}
	isDrained := w.drain()
	if w.bug == bugPurge {
		b, _ := w.server.current()
		_, _ = b.Queue(w.queueName(workQueue)).Send(context.Background(), []queue.Outgoing{{Body: "m1"}})
		_, _ = b.PurgeQueue(context.Background(), w.queueName(workQueue))
	}
	if isDrained {
		w.oracle.judge(healedAt)
	}
	end()
	watching.Wait()
	for _, d := range w.daemons {
		d.stopNow()
	}
	w.ending.Wait()
	if err := w.server.stop(); err != nil {
		w.oracle.violated("closing the queue: %v", err)
	}
}

func (w *world) produce(producing *sync.WaitGroup) {
	p := w.plan
	for g := range p.Groups {
		way := &link{w: w, daemon: p.Daemons}
		producing.Go(func() {
			r := rand.New(rand.NewPCG(p.Seed, uint64(g)))
			mean := p.Length * 9 / 10 * time.Duration(p.Groups) / time.Duration(p.Messages)
			for i := g; i < p.Messages; i += p.Groups {
				time.Sleep(time.Duration(r.Float64() * 2 * float64(mean)))
				w.sendOne(way, fmt.Sprintf("m%d", i), fmt.Sprintf("g%d", g))
			}
		})
	}
}

func (w *world) sendOne(way *link, key, group string) {
	out := queue.Outgoing{Body: key}
	var delay time.Duration
	if w.plan.FIFO {
		out.GroupID, out.DedupID = group, key
	} else if w.plan.roll("delayed", key) < w.plan.Delayed {
		delay = time.Duration(1+int(w.plan.roll("delay", key)*60)) * time.Second
		out.Delay = &delay
	}
	w.oracle.send(key, group, delay)
	full := &queue.Error{Code: queue.CodeStorageFull}
	for began := time.Now(); ; time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		sent, err := way.Send(ctx, []queue.Outgoing{out})
		cancel()
		if err == nil && len(sent) > 0 {
			err = sent[0].Err
		}
		isRefused := errors.Is(err, full) || errors.Is(err, queue.ErrThrottled)
		switch {
		case err == nil:
			w.oracle.sent(key, accepted)
		case w.plan.FIFO && time.Since(began) < 4*time.Minute:
			continue
		case isRefused && !w.plan.FIFO:
			w.oracle.sent(key, refused)
		default:
			w.oracle.sent(key, sending)
		}
		return
	}
}

func (w *world) disturb() {
	type event struct {
		at  time.Duration
		act func()
	}
	var events []event
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		events = append(events, event{f.At, func() { w.begin(i, f) }},
			event{min(f.At+f.For, w.plan.Length), func() { w.finish(f) }})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range events {
		time.Sleep(e.at - w.now())
		e.act()
	}
	time.Sleep(w.plan.Length - w.now())
}

func (w *world) begin(i int, f *fault) {
	w.note("%s begins at %d for %v", f.Kind, f.Daemon, f.For)
	happened := true
	var d *daemon
	if f.Daemon < len(w.daemons) {
		d = w.daemons[f.Daemon]
	}
	switch f.Kind {
	case killDaemon:
		if happened = d.killNow(); w.plan.Embedded {
			w.crash(false, 0)
		}
	case stopDaemon:
		if l := d.running(); l != nil {
			w.oracle.chargeHeld(l)
		}
		happened = d.stopNow()
	case pauseDaemon:
		d.pause()
	case reload:
		happened = d.reload(i)
	case stepClock:
		d.setClock(f.Step)
	case powerFailure:
		if w.plan.Embedded {
			d.killNow()
		}
		happened = w.crash(true, f.Keep)
	case killServer:
		happened = w.crash(false, 0)
	case restartServer:
		if since := w.server.diskFailing(); !since.IsZero() {
			w.oracle.forgetReceives(since.Add(-forgetful))
		}
		if err := w.server.stop(); err != nil {
			w.oracle.violated("closing the queue: %v", err)
		}
	case failDisk, fillDisk:
		w.server.setDisk(f.Kind, i)
		return
	case repeatReceive:
		happened = w.redeliver(i)
	case redrive:
		happened = w.redrive()
	case appDown, appThrottles:
		if l := d.running(); l != nil {
			w.oracle.chargeHeld(l)
		}
		return
	default:
		return
	}
	if happened {
		w.injected(f.Kind)
	}
}

func (w *world) finish(f *fault) {
	w.note("%s ends at %d", f.Kind, f.Daemon)
	switch f.Kind {
	case killDaemon, stopDaemon, powerFailure, killServer, restartServer:
		w.startAll()
	case pauseDaemon:
		w.daemons[f.Daemon].resume()
	case stepClock:
		w.daemons[f.Daemon].setClock(0)
	case failDisk, fillDisk:
		w.server.setDisk("", 0)
	}
}

func (w *world) crash(isPower bool, keep float64) bool {
	syncs := w.fs.Syncs(walName)
	if !w.server.crash(isPower, keep) {
		return false
	}
	since := time.Now()
	if failing := w.server.diskFailing(); !failing.IsZero() {
		since = failing
	}
	if isPower {
		w.oracle.powerFailed(syncs)
	} else {
		w.oracle.forgetReceives(since.Add(-forgetful))
	}
	return true
}

func (w *world) startAll() {
	w.server.run()
	for _, d := range w.daemons {
		d.start()
	}
}

func (w *world) startQueue() {
	w.server.run()
	for b, _ := w.server.current(); b == nil; b, _ = w.server.current() {
		time.Sleep(time.Millisecond)
	}
}

// redeliver makes messages in flight visible, because a standard queue on Amazon SQS may deliver a message twice.
func (w *world) redeliver(i int) (any bool) {
	b, _ := w.server.current()
	if b == nil {
		return false
	}
	w.oracle.mu.Lock()
	var changes []queue.VisibilityChange
	for _, key := range slices.Sorted(maps.Keys(w.oracle.messages)) {
		m := w.oracle.messages[key]
		if m.holder != nil && !m.deleted && w.plan.roll("redeliver", i, key) < 0.3 && len(changes) < queue.MaxBatch {
			w.oracle.grant(m, "the queue delivered it twice")
			changes = append(changes, queue.VisibilityChange{ReceiptHandle: m.receipt})
		}
	}
	w.oracle.mu.Unlock()
	if len(changes) == 0 {
		return false
	}
	_ = b.Queue(w.queueName(workQueue)).ChangeVisibility(context.Background(), changes)
	return true
}

func (w *world) redrive() bool {
	b, _ := w.server.current()
	dead, err := w.server.stored(deadQueue)
	if err != nil || len(dead) == 0 {
		return false
	}
	ids := make([]string, len(dead))
	w.oracle.mu.Lock()
	for i := range dead {
		ids[i] = dead[i].ID
		w.oracle.get(keyOf(&dead[i].Message)).redriven++
	}
	w.oracle.mu.Unlock()
	_, err = b.Move(context.Background(), w.queueName(deadQueue), w.queueName(workQueue), ids)
	return err == nil
}

func (w *world) heal() {
	w.note("everything is healed")
	w.healed.Store(true)
	w.server.setDisk("", 0)
	for _, d := range w.daemons {
		d.resume()
		d.setClock(0)
	}
	w.startQueue()
	w.startAll()
}

func (w *world) drain() bool {
	p := w.plan
	each := p.Visibility + p.Inactivity + max(p.ErrorVisibility, 0)
	longest := time.Duration(p.MaxReceives+1)*each + 10*time.Minute
	if p.FIFO {
		bad := 0
		for i := range p.Messages {
			if n := p.nature(fmt.Sprintf("m%d", i)); n != plain {
				bad++
			}
		}
		longest += time.Duration(bad) * longest
	}
	if b, _ := w.server.current(); b != nil { // twice the time in which all messages time out
		l, _ := b.Ledger(w.queueName(workQueue))
		longest += 2 * time.Duration(l.Live) * p.Inactivity / time.Duration(p.Connections*p.Daemons)
	}
	for began := time.Now(); ; time.Sleep(time.Second) {
		b, _ := w.server.current()
		l, err := b.Ledger(w.queueName(workQueue))
		if err == nil && l.Live == 0 {
			w.note("drained after %v", time.Since(began))
			return true
		}
		if time.Since(began) > longest {
			w.oracle.violated("%d messages are not drained %v after the healing: %s", l.Live, longest, w.stuck(b))
			return false
		}
	}
}

func (w *world) stuck(b *broker.Broker) string {
	var text []string
	stored, _ := w.server.stored(workQueue)
	for _, m := range stored[:min(len(stored), 3)] {
		text = append(text, fmt.Sprintf("%s %s until %v after %d receives", keyOf(&m.Message), m.State, m.Until,
			m.ReceiveCount))
	}
	for _, d := range w.daemons {
		if l := d.running(); l != nil {
			st := l.worker.Status()
			text = append(text, fmt.Sprintf("daemon %d: %d in work, reasons %v", d.index, st.InWork, st.Reasons))
		}
	}
	return strings.Join(text, "; ")
}

// digest sorts lines with the same time, because goroutines that wake together run in any order.
func digest(history []string) uint64 {
	h := fnv.New64a()
	for _, line := range slices.Sorted(slices.Values(history)) {
		fmt.Fprintln(h, line)
	}
	return h.Sum64()
}
