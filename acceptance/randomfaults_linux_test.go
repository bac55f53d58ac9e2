package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sys/unix"

	"tendril/broker"
	"tendril/testpeer"
)

const (
	faultsQueue       = "jobs"
	faultsReceives    = 60 // of a message before it is dead-lettered
	faultsConnections = 10 // of each worker
	faultsVisibility  = 10 * time.Second
	longestFault      = 15 * time.Second // longer than the visibility timeout
)

// TestRandomFaultsKeepTheLedger runs a `tendril serve`, two `tendril up` that share its queue, their apps and a producer
// under random faults: kills and standstills of any process, every fault of the network between them, deployments and
// reloads, a disk that refuses writes and a lack of descriptors, several at once. At the end each message that was
// sent is done, dead-lettered or in the queue, and nothing was worked on twice but what was in flight at a fault.
// TENDRIL_SEED repeats the choices of a run, and TENDRIL_RANDOM_FAULTS sets how long it takes.
func TestRandomFaultsKeepTheLedger(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("TENDRIL_SEED"), 10, 64); err == nil {
		seed = n
	}
	length := testpeer.Size(20*time.Second, time.Hour)
	if d, err := time.ParseDuration(os.Getenv("TENDRIL_RANDOM_FAULTS")); err == nil {
		length = d
	}
	t.Logf("seed %d, for %s", seed, length)
	w := newFaultyWorld(t, seed)
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { w.produce(ctx) })
	all.Go(func() { w.sampleInFlight(t.Context(), ctx.Done()) })
	all.Go(func() { w.progress(ctx) })
	w.injectFaults(ctx)
	all.Wait()
	w.check(seed)
}

// faultyWorld is a queue, two workers with their apps, a producer, and what befalls them.
type faultyWorld struct {
	t      *testing.T
	random *rand.Rand
	began  time.Time

	queue    *server // tendril serve
	external *server // tendril up, with an app of the test
	bundled  *server // tendril up, with an app of its own
	url      string  // of the queue, without a fault
	// Between the workers, the producer and the queue, and between a worker and the external app.
	externalQueue, bundledQueue, producerQueue, externalApp *faultProxy
	journal                                                 string // of the app of the bundle

	version int // of the bundle, the last one that was deployed

	mu       sync.Mutex
	done     map[string]int // by the external app: message id -> times
	corrupt  int            // bodies that are not as sent
	acked    map[string]string
	attempts int // sends of which the outcome is unknown
	refused  int // sends that were refused
	inFlight int // the last known number
	open     map[*faultWindow]bool
	windows  []*faultWindow
	counts   map[string]int // faults by name
}

// faultWindow is the time of a fault.
type faultWindow struct{ mostInFlight int }

// server is a process that is started again with the same arguments after it was killed.
type server struct {
	name string
	args []string
	busy sync.Mutex // held during a fault of this process

	mu      sync.Mutex
	p       *process
	started event
}

func (s *server) process() (*process, event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p, s.started
}

// start starts the process, again and again while it cannot reach the queue, as a service manager does.
func (s *server) start(t *testing.T) {
	const queueUnreachable = 4 // the exit status
	for {
		p := launch(t, s.args...)
		if started, ok := p.awaitStart(t); ok {
			s.mu.Lock()
			s.p, s.started = p, started
			s.mu.Unlock()
			return
		}
		if code := p.cmd.ProcessState.ExitCode(); code != queueUnreachable {
			t.Errorf("%s: exit status %d before it started\n%s", s.name, code, p.stderr)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// awaitStart waits until the process has started; false when it ends before.
func (p *process) awaitStart(t *testing.T) (started event, ok bool) {
	for {
		p.mu.Lock()
		seen, news := p.events, p.news
		p.mu.Unlock()
		for _, e := range seen {
			if e.Msg == "started" {
				return e, true
			}
		}
		select {
		case <-news:
		case <-p.exited:
			return event{}, false
		case <-t.Context().Done():
			return event{}, false
		}
	}
}

func newFaultyWorld(t *testing.T, seed uint64) *faultyWorld {
	w := &faultyWorld{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), began: time.Now(), journal: filepath.Join(t.TempDir(), "journal"),
		done: map[string]int{}, acked: map[string]string{}, open: map[*faultWindow]bool{}, counts: map[string]int{},
	}
	w.queue = &server{name: "queue", args: []string{"serve", "--data-dir", t.TempDir(), "--console", "off",
		"--listen", "127.0.0.1:" + testpeer.FreePort(t)}}
	w.queue.start(t)
	endpoint := w.queue.started.Endpoint
	c := client(endpoint)
	dead := createQueue(t, c, faultsQueue+"-dead", nil)
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`,
		attributes(t.Context(), t, c, dead)["QueueArn"], faultsReceives)
	w.url = createQueue(t, c, faultsQueue, map[string]string{"RedrivePolicy": policy})
	app := httptest.NewServer(http.HandlerFunc(w.work))
	t.Cleanup(app.Close)
	w.externalQueue, w.bundledQueue = newFaultProxy(t, endpoint, seed+1), newFaultProxy(t, endpoint, seed+2)
	w.producerQueue, w.externalApp = newFaultProxy(t, endpoint, seed+3), newFaultProxy(t, app.URL, seed+4)
	worker := func(name string, through *faultProxy, args ...string) *server {
		s := &server{name: name, args: append([]string{"up", "--name", name, "--data-dir", t.TempDir(),
			"--queue-url", through.URL + "/000000000000/" + faultsQueue, "--console", "127.0.0.1:0", "--log-sample", "1",
			"--http-connections", fmt.Sprint(faultsConnections), "--visibility-timeout", faultsVisibility.String(),
			"--error-visibility-timeout", "1s", "--inactivity-timeout", "8s", "--wait-time", "2s"}, args...)}
		s.start(t)
		return s
	}
	w.external = worker("external", w.externalQueue, "--target", w.externalApp.URL)
	w.bundled = worker("bundled", w.bundledQueue, "--port", testpeer.FreePort(t), "--restart-limit", "1000", "--restart-window", "1s",
		"--deploy-timeout", "5s", w.bundle(false))
	return w
}

// bundle returns the next version of the app.
func (w *faultyWorld) bundle(broken bool) string {
	w.version++
	files := map[string]string{"Procfile": appLine(w.journal, strconv.Itoa(w.version))}
	if broken {
		files["Procfile"] = "web: exit 1\n"
	}
	return writeBundle(w.t, files)
}

// work is the external app. Its messages say how long they take, or that they always fail.
func (w *faultyWorld) work(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id := r.Header.Get("X-Aws-Sqsd-Msgid")
	word, _, _ := strings.Cut(string(body), " ")
	work, err := time.ParseDuration(word)
	if word != "refuse" && err != nil {
		w.mu.Lock()
		w.corrupt++
		w.mu.Unlock()
	}
	time.Sleep(work) // also when the connection is gone: the work is done then, and nobody learns of it
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent, known := w.acked[id]; known && sent != string(body) {
		w.corrupt++
	}
	if word == "refuse" {
		rw.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	w.done[id]++
}

// fails reports whether the apps refuse a message always.
func fails(body string) bool { return strings.HasPrefix(body, "refuse ") }

// produce sends at a steady rate. What is neither accepted nor refused may or may not be in the queue.
func (w *faultyWorld) produce(ctx context.Context) {
	const perSecond = 60
	c := client(w.producerQueue.URL)
	url := w.producerQueue.URL + "/000000000000/" + faultsQueue
	var sends sync.WaitGroup
	defer sends.Wait()
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	limit := make(chan struct{}, 50)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		body := fmt.Sprintf("%dms message %d", 1+n%20, n)
		if n%200 == 42 {
			body = fmt.Sprintf("refuse message %d", n)
		}
		limit <- struct{}{}
		sends.Go(func() {
			defer func() { <-limit }()
			sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			out, err := c.SendMessage(sending, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
			w.mu.Lock()
			defer w.mu.Unlock()
			var answered interface{ ErrorCode() string }
			switch {
			case err == nil:
				w.acked[*out.MessageId] = body
			case errors.As(err, &answered) && answered.ErrorCode() == "RequestThrottled":
				w.refused++
			default:
				w.attempts++
			}
		})
	}
}

// sampleInFlight notes how many messages are in flight, for the faults that are open, until stop is closed.
func (w *faultyWorld) sampleInFlight(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		n, err := w.numberInFlight(ctx)
		if err != nil {
			continue
		}
		w.mu.Lock()
		w.inFlight = n
		for window := range w.open {
			window.mostInFlight = max(window.mostInFlight, n)
		}
		w.mu.Unlock()
	}
}

// numberInFlight asks the queue itself.
func (w *faultyWorld) numberInFlight(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	const inFlight = "ApproximateNumberOfMessagesNotVisible"
	_, started := w.queue.process()
	out, err := client(started.Endpoint).GetQueueAttributes(ctx,
		&sqs.GetQueueAttributesInput{QueueUrl: &w.url, AttributeNames: []sqsAttribute{inFlight}})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out.Attributes[inFlight])
}

// harmless begin the names of faults that have nothing worked on twice: what is in flight at one of them is not counted.
var harmless = []string{"TERM ", "SIGHUP ", "producer, ", "deployment", "broken deployment"}

// begin opens the window of a fault; the returned function closes it.
func (w *faultyWorld) begin(name string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[name]++
	window := &faultWindow{mostInFlight: w.inFlight}
	w.windows = append(w.windows, window)
	if slices.ContainsFunc(harmless, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		window.mostInFlight = 0
		return func() {}
	}
	w.open[window] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, window)
	}
}

func (w *faultyWorld) progress(ctx context.Context) {
	every := time.NewTicker(testpeer.Size(10*time.Second, time.Minute))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			w.mu.Lock()
			fmt.Printf("%s random faults: %d faults, %d sends accepted, %d unknown, %d refused, %d in flight, %d done by one "+
				"app\n", time.Since(w.began).Round(time.Second), len(w.windows), len(w.acked), w.attempts, w.refused,
				w.inFlight, len(w.done))
			w.mu.Unlock()
		}
	}
}

// injectFaults begins a fault every two seconds or so, until the context ends, and returns when all have ended.
func (w *faultyWorld) injectFaults(ctx context.Context) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		pause := time.Duration(w.random.ExpFloat64() * float64(2*time.Second))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		lasts := time.Duration(w.random.Float64() * float64(longestFault))
		if w.random.IntN(2) == 0 {
			lasts /= 10
		}
		if f := w.draw(lasts); f != nil {
			open.Go(f)
		}
	}
}

// draw chooses a fault; nil when what it would befall has one already.
func (w *faultyWorld) draw(lasts time.Duration) func() {
	servers := []*server{w.queue, w.external, w.bundled}
	proxies := []*faultProxy{w.externalQueue, w.bundledQueue, w.producerQueue, w.externalApp}
	s, p := servers[w.random.IntN(len(servers))], proxies[w.random.IntN(len(proxies))]
	switch kind := w.random.IntN(20); {
	case kind < 4:
		return w.during(s, "kill -9 "+s.name, func(*process) { s.kill(w.t) })
	case kind < 6:
		return w.during(s, "SIGSTOP "+s.name, func(now *process) {
			now.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(lasts)
			now.cmd.Process.Signal(syscall.SIGCONT)
		})
	case kind < 12:
		plan := faultPlan{fault: networkFaults[w.random.IntN(len(networkFaults))], share: 0.05,
			pause: time.Duration(w.random.Int64N(int64(3 * time.Second)))}
		if w.random.IntN(3) == 0 {
			plan.share = 1
		}
		if (p == w.externalQueue || p == w.bundledQueue) && w.random.IntN(6) == 0 {
			plan = faultPlan{fault: wrongByte, share: 0.2, only: "ReceiveMessage"}
		}
		return w.network(p, plan, lasts)
	case kind < 13:
		return func() {
			defer w.begin("connections closed")()
			p.CloseClientConnections()
		}
	case kind < 14:
		return w.during(w.bundled, "kill -9 app", func(*process) {
			for _, pid := range survivors("ACCEPTANCE_JOURNAL=" + w.journal) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGKILL)
			}
		})
	case kind < 15:
		return w.during(s, "TERM "+s.name, func(*process) { s.restart(w.t) })
	case kind < 16:
		s = servers[1+w.random.IntN(2)]
		return w.during(s, "SIGHUP "+s.name, func(now *process) { now.cmd.Process.Signal(syscall.SIGHUP) })
	case kind < 18:
		return w.deployment(w.random.IntN(3) == 0)
	case kind < 19:
		return w.during(w.queue, "writes refused", func(now *process) { w.limit(now, unix.RLIMIT_FSIZE, 4096, lasts) })
	default:
		return w.during(s, "descriptors exhausted "+s.name, func(now *process) {
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", now.cmd.Process.Pid))
			w.limit(now, unix.RLIMIT_NOFILE, uint64(len(fds)), lasts)
		})
	}
}

// during returns a fault of a process.
func (w *faultyWorld) during(s *server, name string, fault func(*process)) func() {
	if !s.busy.TryLock() {
		return nil
	}
	return func() {
		defer s.busy.Unlock()
		defer w.begin(name)()
		p, _ := s.process()
		select {
		case <-p.exited:
			w.t.Errorf("%s had ended by itself: %v\n%s", s.name, p.cmd.ProcessState, p.stderr)
			s.start(w.t)
		default:
			fault(p)
		}
	}
}

// network returns a fault between two processes.
func (w *faultyWorld) network(p *faultProxy, plan faultPlan, lasts time.Duration) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan.fault != "" {
		return nil
	}
	name := map[*faultProxy]string{w.externalQueue: "queue", w.bundledQueue: "queue", w.producerQueue: "producer",
		w.externalApp: "app"}[p]
	return func() {
		defer w.begin(fmt.Sprintf("%s, %s", name, plan.fault))()
		p.inject(plan)
		time.Sleep(lasts)
		p.inject(faultPlan{})
	}
}

// limit lowers a limit of a process for a time.
func (w *faultyWorld) limit(p *process, resource int, to uint64, lasts time.Duration) {
	var before unix.Rlimit
	if err := unix.Prlimit(p.cmd.Process.Pid, resource, nil, &before); err != nil {
		w.t.Errorf("reading a limit: %v", err)
		return
	}
	if err := unix.Prlimit(p.cmd.Process.Pid, resource, &unix.Rlimit{Cur: to, Max: before.Max}, nil); err != nil {
		w.t.Errorf("setting a limit: %v", err)
		return
	}
	time.Sleep(lasts)
	if err := unix.Prlimit(p.cmd.Process.Pid, resource, &before, nil); err != nil {
		w.t.Errorf("restoring a limit: %v", err)
	}
}

// deployment returns the deployment of a new version, which may be a broken one.
func (w *faultyWorld) deployment(broken bool) func() {
	if !w.bundled.busy.TryLock() {
		return nil
	}
	dir := w.bundle(broken)
	return func() {
		defer w.bundled.busy.Unlock()
		_, started := w.bundled.process()
		name, want := "deployment", http.StatusOK
		if broken {
			name, want = "broken deployment", http.StatusUnprocessableEntity
		}
		defer w.begin(name)()
		status, answer, err := tryDeploy(w.t.Context(), w.bundled.args[4], started, dir)
		if err != nil || status != want {
			w.t.Errorf("%s: status %d, %s, %v", name, status, answer, err)
		}
	}
}

func (s *server) kill(t *testing.T) {
	p, _ := s.process()
	p.kill()
	s.start(t)
}

func (s *server) restart(t *testing.T) {
	p, _ := s.process()
	if code := p.terminate(t); code != 0 && code != 3 { // 3: work that hung was given up
		t.Errorf("%s: exit status %d after TERM\n%s", s.name, code, p.stderr)
	}
	s.start(t)
}

// check waits until everything is done, and holds the ledger against what was sent.
func (w *faultyWorld) check(seed uint64) {
	t := w.t
	healed := time.Now()
	var missing []string
	for {
		missing = w.notDone()
		if len(missing) == 0 || time.Since(healed) > 2*time.Minute {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	recovered := time.Since(healed)
	if testpeer.Nightly() { // then those that always fail get all their receives
		w.awaitEmpty()
	}
	for _, s := range []*server{w.external, w.bundled, w.queue} {
		p, _ := s.process()
		if code := p.terminate(t); code != 0 {
			t.Errorf("%s: exit status %d after TERM\n%s", s.name, code, p.stderr)
		}
	}
	dir := w.queue.args[2]
	store, err := broker.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Ledger(faultsQueue)
	store.Close()
	if err != nil {
		t.Fatal(err)
	}
	times := w.timesDone()
	dead, innocent, live, lost, repeated := map[string]bool{}, 0, map[string]bool{}, 0, 0
	for _, m := range stored(t, dir, faultsQueue+"-dead") {
		dead[m.ID] = true
		if !fails(m.Body) {
			innocent++
		}
	}
	for _, m := range stored(t, dir, faultsQueue) {
		live[m.ID] = true
		if !fails(m.Body) {
			t.Errorf("message %s, %q, is still in the queue", m.ID, m.Body)
		}
	}
	for id, body := range w.acked {
		if !(dead[id] || live[id] || times[id] > 0 && !fails(body)) {
			lost++
		}
	}
	unknown := 0
	for id, n := range times {
		repeated += n - 1
		if _, ok := w.acked[id]; !ok {
			unknown++
		}
	}
	bound := 0
	for _, window := range w.windows {
		bound += window.mostInFlight
	}
	for _, f := range networkFaults {
		bound += w.externalApp.count(f)
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(w.counts)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, w.counts[name]))
	}
	t.Logf("seed %d: %d faults in %s: %s; requests: %s", seed, len(w.windows), time.Since(w.began).Round(time.Second),
		strings.Join(faults, ", "), faultCounts(w.externalQueue, w.bundledQueue, w.producerQueue, w.externalApp))
	t.Logf("%d sends accepted, %d refused, %d unknown, of which %d arrived: lost %d, dead-lettered %d (without cause %d), "+
		"worked on again %d (in flight at the faults: %d), corrupt %d; all done %s after the last fault; ledger %+v",
		len(w.acked), w.refused, w.attempts, unknown, lost, len(dead), innocent, repeated, bound, w.corrupt,
		recovered.Round(100*time.Millisecond), ledger)
	if lost > 0 || innocent > 0 || w.corrupt > 0 || len(missing) > 0 {
		t.Errorf("lost %d, dead-lettered without cause %d, corrupt %d, not done in time %d: all should be 0", lost, innocent,
			w.corrupt, len(missing))
	}
	if repeated > bound {
		t.Errorf("%d messages were worked on again, and %d were in flight at the faults", repeated, bound)
	}
	if l := ledger; l.Sent != l.Done+l.DeadLettered+l.Live || l.Expired+l.Purged > 0 ||
		l.Done != int64(len(times)) || l.DeadLettered != int64(len(dead)) || l.Live != int64(len(live)) ||
		l.Sent < int64(len(w.acked)) || l.Sent > int64(len(w.acked)+w.attempts) {
		t.Errorf("the ledger does not balance: done %d, dead %d, live %d; %+v", len(times), len(dead), len(live), l)
	}
	if len(w.windows) < 3 || len(times) == 0 {
		t.Errorf("%d faults, %d messages done: nothing was shown", len(w.windows), len(times))
	}
}

// timesDone returns how often each message was worked on to its end, by both apps.
func (w *faultyWorld) timesDone() map[string]int {
	times, _ := readJournal(w.t, w.journal)
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, n := range w.done {
		times[id] += n
	}
	return times
}

// notDone returns the messages that were accepted and should be done.
func (w *faultyWorld) notDone() (missing []string) {
	times := w.timesDone()
	for id, body := range w.acked {
		if times[id] == 0 && !fails(body) {
			missing = append(missing, id)
		}
	}
	return missing
}

func (w *faultyWorld) awaitEmpty() {
	_, started := w.queue.process()
	started.QueueURL = w.url
	awaitQuiet(w.t, started)
}
