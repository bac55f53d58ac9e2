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
	"tendril/internal/testing/losscheck"
	"tendril/internal/testing/testpeer"
)

const (
	faultsQueue       = "jobs"
	faultsReceives    = 60
	faultsConnections = 10
)

type faultKind struct {
	row, name string
	// harmless means that messages in flight during the fault must not be processed again.
	harmless bool
	// begin returns a function that performs the fault, or nil if all targets have a fault already.
	begin func(w *faultyWorld, k *faultKind, lasts time.Duration) func()
}

var faultKinds = []faultKind{
	{"A1", "kill -9 of a worker", false, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.during(w.worker(), k, func(s *server) { s.kill(w.t) })
	}},
	{"A3", "kill -9 of the queue", false, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.during(w.queue, k, func(s *server) { s.kill(w.t) })
	}},
	{"A4", "SIGSTOP of a worker", false, func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.during(w.worker(), k, func(s *server) { s.stopFor(lasts) })
	}},
	{"A5", "SIGSTOP of the queue", false, func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.during(w.queue, k, func(s *server) { s.stopFor(lasts) })
	}},
	{"A6", "TERM of a worker", true, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.during(w.worker(), k, func(s *server) { s.restart(w.t) })
	}},
	{"A6", "TERM of the queue", true, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.during(w.queue, k, func(s *server) { s.restart(w.t) })
	}},
	{"A7", "storm of SIGHUP", true, func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.during(w.worker(), k, func(s *server) {
			p, _ := s.process()
			for end := time.Now().Add(min(lasts, 2*time.Second)); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
				p.cmd.Process.Signal(syscall.SIGHUP)
			}
		})
	}},
	{"A8", "kill -9 of the app", false, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.during(w.bundled, k, func(*server) {
			for _, pid := range survivors("ACCEPTANCE_JOURNAL=" + w.journal) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGKILL)
			}
		})
	}},
	{"A10", "kill -9 of all workers at once", false, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		first, second := w.during(w.external, k, func(s *server) { s.kill(w.t) }), w.during(w.bundled, k,
			func(s *server) { s.kill(w.t) })
		if first == nil {
			return second
		} else if second == nil {
			return first
		}
		return func() {
			var both sync.WaitGroup
			both.Go(first)
			both.Go(second)
			both.Wait()
		}
	}},
	{"B1", "answers of receives lost", true, onQueue(faultPlan{fault: lostAnswer, share: 0.5, only: "ReceiveMessage"})},
	{"B2", "answers of deletes lost", true, onQueue(faultPlan{fault: lostAnswer, share: 0.5, only: "DeleteMessage"})},
	{"B3", "deletes lost", false, onQueue(faultPlan{fault: lostRequest, share: 0.5, only: "DeleteMessage"})},
	{"B6", "queue throttles", false, onQueue(faultPlan{fault: throttled, share: 0.8})},
	{"B9", "queue is silent", false, onQueue(faultPlan{fault: silence, share: 1})},
	{"B9", "connections closed", false, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		p := []*faultProxy{w.externalQueue, w.bundledQueue, w.externalApp}[w.random.IntN(3)]
		return func() {
			defer w.open(k)()
			p.CloseClientConnections()
		}
	}},
	{"B10", "queue hears, its answers are lost", false, onQueue(faultPlan{fault: lostAnswer, share: 1})},
	{"B10", "queue is not heard", false, onQueue(faultPlan{fault: lostRequest, share: 1})},
	{"B10", "answers of sends lost", true, onProducer(faultPlan{fault: lostAnswer, share: 0.5})},
	{"B10", "half answers of the queue", false, onQueue(faultPlan{fault: halfAnswer, share: 0.3})},
	{"B12", "queue is slow", false, onQueue(faultPlan{fault: slowAnswer, share: 1, pause: time.Second})},
	{"B13", "bodies damaged", false, onQueue(faultPlan{fault: wrongByte, share: 0.5, only: "ReceiveMessage"})},
	{"C4", "app closes connections", false, onApp(faultPlan{fault: lostAnswer, share: 0.1})},
	{"C4", "half answers of the app", false, onApp(faultPlan{fault: halfAnswer, share: 0.1})},
	{"C10", "app never answers", false, onApp(faultPlan{fault: silence, share: 1})},
	{"C12", "app is busy", false, onApp(faultPlan{fault: throttled, share: 0.5})},
	{"C16", "app is slow", false, onApp(faultPlan{fault: slowAnswer, share: 1, pause: 500 * time.Millisecond})},
	{"D4", "disk refuses writes", false, func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.during(w.queue, k, func(s *server) { w.limit(s, unix.RLIMIT_FSIZE, 4096, lasts) })
	}},
	{"F2", "no more descriptors", false, func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.during([]*server{w.queue, w.external, w.bundled}[w.random.IntN(3)], k, func(s *server) {
			p, _ := s.process()
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
			w.limit(s, unix.RLIMIT_NOFILE, uint64(len(fds)), lasts)
		})
	}},
	{"G8", "deployment", true, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.deployment(k, false)
	}},
	{"G8", "broken deployment", true, func(w *faultyWorld, k *faultKind, _ time.Duration) func() {
		return w.deployment(k, true)
	}},
}

func onQueue(plan faultPlan) func(*faultyWorld, *faultKind, time.Duration) func() {
	return func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.network([]*faultProxy{w.externalQueue, w.bundledQueue}[w.random.IntN(2)], k, plan, lasts)
	}
}

func onProducer(plan faultPlan) func(*faultyWorld, *faultKind, time.Duration) func() {
	return func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.network(w.producerQueue, k, plan, lasts)
	}
}

func onApp(plan faultPlan) func(*faultyWorld, *faultKind, time.Duration) func() {
	return func(w *faultyWorld, k *faultKind, lasts time.Duration) func() {
		return w.network(w.externalApp, k, plan, lasts)
	}
}

// Only messages in flight during a fault may be processed twice. TENDRIL_SEED repeats the choices of an earlier run,
// and TENDRIL_RANDOM_FAULTS sets the duration of the long form.
func TestRandomFaultsKeepTheLedger(t *testing.T) {
	long(t)
	t.Parallel()
	resume(t)
	length := testpeer.Size(0, time.Hour)
	if d, err := time.ParseDuration(os.Getenv("TENDRIL_RANDOM_FAULTS")); err == nil {
		length = d
	}
	if length == 0 {
		w := newFaultyWorld(t, 3*time.Second)
		w.run(func(ctx context.Context) { w.injectEach(ctx) })
		return
	}
	w := newFaultyWorld(t, 10*time.Second)
	w.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		w.injectRandom(ctx)
	})
}

// TENDRIL_EACH_FAULT sets the duration per fault. By default, the test runs only at night.
func TestEachFaultKeepsTheLedger(t *testing.T) {
	t.Parallel()
	length := testpeer.Size(0, 2*time.Minute)
	if d, err := time.ParseDuration(os.Getenv("TENDRIL_EACH_FAULT")); err == nil {
		length = d
	}
	if length == 0 {
		t.Skip("takes an hour: set TENDRIL_NIGHTLY, or TENDRIL_EACH_FAULT to the time for each fault")
	}
	for _, k := range faultKinds {
		t.Run(k.row+" "+k.name, func(t *testing.T) {
			resume(t)
			visibility := 4 * time.Second
			if k.harmless {
				visibility = 20 * time.Second
			}
			w := newFaultyWorld(t, visibility)
			w.run(func(ctx context.Context) {
				ctx, cancel := context.WithTimeout(ctx, length)
				defer cancel()
				w.injectOne(ctx, &k)
			})
		})
	}
}

type faultyWorld struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	began  time.Time

	visibility                                              time.Duration
	queue                                                   *server
	external                                                *server
	bundled                                                 *server
	url                                                     string
	externalQueue, bundledQueue, producerQueue, externalApp *faultProxy
	journal                                                 string
	version                                                 int

	mu                         sync.Mutex
	done                       map[string]int
	corrupt                    int
	acked                      map[string]string
	unknown                    int
	refused                    int
	inFlight                   int
	opened                     map[*faultWindow]bool
	windows                    []*faultWindow
	counts                     map[string]int
	networkFaults, requestsHit int
}

type faultWindow struct{ mostInFlight int }

type server struct {
	name string
	args []string
	busy sync.Mutex

	mu      sync.Mutex
	p       *process
	started event
}

func (s *server) process() (*process, event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p, s.started
}

// start retries like a service manager while the queue is unreachable.
func (s *server) start(t *testing.T) {
	const queueUnreachable = 4
	for {
		p := launch(t, s.args...)
		if started, ok := p.awaitStart(t); ok {
			s.mu.Lock()
			s.p, s.started = p, started
			s.mu.Unlock()
			return
		}
		if code := p.cmd.ProcessState.ExitCode(); code != queueUnreachable {
			t.Errorf("%s: exit status %d before it started", s.name, code)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

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

func newFaultyWorld(t *testing.T, visibility time.Duration) *faultyWorld {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("TENDRIL_SEED"), 10, 64); err == nil {
		seed = n
	}
	w := &faultyWorld{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), began: time.Now(), visibility: visibility,
		journal: filepath.Join(t.TempDir(), "journal"),
		done:    map[string]int{}, acked: map[string]string{}, opened: map[*faultWindow]bool{}, counts: map[string]int{},
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
			"--http-connections", fmt.Sprint(faultsConnections), "--visibility-timeout", visibility.String(),
			"--error-visibility-timeout", "1s", "--inactivity-timeout", (visibility * 4 / 5).String(), "--wait-time", "2s"},
			args...)}
		s.start(t)
		return s
	}
	w.external = worker("external", w.externalQueue, "--target", w.externalApp.URL)
	w.bundled = worker("bundled", w.bundledQueue, "--port", testpeer.FreePort(t), "--restart-limit", "1000",
		"--restart-window", "1s", "--deploy-timeout", "15s", w.bundle(false))
	return w
}

func (w *faultyWorld) run(inject func(context.Context)) {
	w.t.Logf("seed %d", w.seed)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { w.produce(ctx) })
	all.Go(func() { w.sampleInFlight(ctx) })
	all.Go(func() { w.progress(ctx) })
	inject(ctx)
	cancel()
	all.Wait()
	w.check()
}

func (w *faultyWorld) worker() *server { return []*server{w.external, w.bundled}[w.random.IntN(2)] }

func (w *faultyWorld) bundle(broken bool) string {
	w.version++
	files := map[string]string{"Procfile": appLine(w.journal, strconv.Itoa(w.version))}
	if broken {
		files["Procfile"] = "web: exit 1\n"
	}
	return writeBundle(w.t, files)
}

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
	time.Sleep(work) // even if the connection is closed
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
	fmt.Fprintln(rw, "done")
}

func fails(body string) bool { return strings.HasPrefix(body, "refuse ") }

// If a send was neither accepted nor refused, its message may be in the queue.
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
				w.unknown++
			}
		})
	}
}

func (w *faultyWorld) sampleInFlight(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		n, err := w.numberInFlight(ctx)
		if err != nil {
			continue
		}
		w.mu.Lock()
		w.inFlight = n
		for window := range w.opened {
			window.mostInFlight = max(window.mostInFlight, n)
		}
		w.mu.Unlock()
	}
}

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

// end must be called once the fault can have no further effects.
func (w *faultyWorld) open(k *faultKind) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[k.name]++
	window := &faultWindow{}
	w.windows = append(w.windows, window)
	if k.harmless {
		return func() {}
	}
	window.mostInFlight = w.inFlight
	w.opened[window] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.opened, window)
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
			fmt.Printf("%s: %d faults in %s, %d sends accepted, %d unknown, %d refused, %d in flight\n", w.t.Name(),
				len(w.windows), time.Since(w.began).Round(time.Second), len(w.acked), w.unknown, w.refused, w.inFlight)
			w.mu.Unlock()
		}
	}
}

func (w *faultyWorld) injectRandom(ctx context.Context) {
	var faults sync.WaitGroup
	defer faults.Wait()
	for w.wait(ctx, 2*time.Second) {
		lasts := time.Duration(w.random.Float64() * float64(w.visibility) * 3 / 2)
		if w.random.IntN(2) == 0 {
			lasts /= 10
		}
		k := &faultKinds[w.random.IntN(len(faultKinds))]
		if f := k.begin(w, k, lasts); f != nil {
			faults.Go(f)
		}
	}
}

func (w *faultyWorld) injectEach(ctx context.Context) {
	var faults sync.WaitGroup
	defer faults.Wait()
	for left := w.random.Perm(len(faultKinds)); len(left) > 0 && w.wait(ctx, 300*time.Millisecond); {
		k := &faultKinds[left[0]]
		lasts := time.Duration(w.random.Float64() * float64(2*time.Second))
		if f := k.begin(w, k, lasts); f != nil {
			left = left[1:]
			faults.Go(f)
		} else {
			left = append(left[1:], left[0])
		}
	}
}

func (w *faultyWorld) injectOne(ctx context.Context, k *faultKind) {
	for w.wait(ctx, time.Second) {
		lasts := time.Duration(w.random.Float64() * float64(2*time.Second))
		if k.row == "A4" || k.row == "A5" {
			lasts = w.visibility * 3 / 2
		}
		if f := k.begin(w, k, lasts); f != nil {
			f()
		}
	}
}

func (w *faultyWorld) wait(ctx context.Context, mean time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(w.random.ExpFloat64() * float64(mean))):
		return true
	}
}

func (w *faultyWorld) during(s *server, k *faultKind, fault func(*server)) func() {
	if !s.busy.TryLock() {
		return nil
	}
	return func() {
		defer s.busy.Unlock()
		defer w.open(k)()
		p, _ := s.process()
		select {
		case <-p.exited:
			w.t.Errorf("%s had ended by itself: %v", s.name, p.cmd.ProcessState)
			s.start(w.t)
		default:
			fault(s)
		}
	}
}

func (w *faultyWorld) network(p *faultProxy, k *faultKind, plan faultPlan, lasts time.Duration) func() {
	if !p.busy.TryLock() {
		return nil
	}
	return func() {
		defer p.busy.Unlock()
		defer w.open(k)()
		before := p.count()
		p.inject(plan)
		time.Sleep(lasts)
		p.inject(faultPlan{})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.networkFaults++
		w.requestsHit += p.count() - before
	}
}

func (w *faultyWorld) limit(s *server, resource int, to uint64, lasts time.Duration) {
	p, _ := s.process()
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

func (w *faultyWorld) deployment(k *faultKind, broken bool) func() {
	dir, want := w.bundle(broken), http.StatusOK
	if broken {
		want = http.StatusUnprocessableEntity
	}
	return w.during(w.bundled, k, func(s *server) {
		_, started := s.process()
		status, answer, err := tryDeploy(w.t.Context(), s.args[4], started, dir)
		for began := time.Now(); status == http.StatusConflict && time.Since(began) < 30*time.Second; {
			time.Sleep(200 * time.Millisecond)
			status, answer, err = tryDeploy(w.t.Context(), s.args[4], started, dir)
		}
		if err != nil || status != want {
			w.t.Errorf("%s: status %d, %s, %v", k.name, status, answer, err)
		}
	})
}

func (s *server) stopFor(d time.Duration) {
	p, _ := s.process()
	p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	p.cmd.Process.Signal(syscall.SIGCONT)
}

func (s *server) kill(t *testing.T) {
	p, _ := s.process()
	p.kill()
	s.start(t)
}

func (s *server) restart(t *testing.T) {
	p, _ := s.process()
	if code := p.terminate(t); code != 0 && code != 3 { // 3 means that hanging work was abandoned
		t.Errorf("%s: exit status %d after TERM", s.name, code)
	}
	s.start(t)
}

func (w *faultyWorld) check() {
	t := w.t
	healed := time.Now()
	var missing []string
	var recovered time.Duration
	for {
		missing = w.notDone()
		if len(missing) > 0 {
			recovered = time.Since(healed)
		}
		// Messages in a lost response are received again after their visibility timeout.
		if len(missing) == 0 && time.Since(healed) > w.visibility+3*time.Second || time.Since(healed) > 2*time.Minute {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if testpeer.Nightly() {
		w.awaitEmpty()
	}
	for _, s := range []*server{w.external, w.bundled, w.queue} {
		p, _ := s.process()
		if code := p.terminate(t); code != 0 {
			t.Errorf("%s: exit status %d after TERM", s.name, code)
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
	dead := map[string]bool{}
	innocent := 0
	live := map[string]bool{}
	lost := 0
	repeated := 0
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
	var log losscheck.Log
	for id, body := range w.acked {
		log.Sent(id)
		if times[id] > 0 && !fails(body) {
			log.Deleting(id)
		}
	}
	copies := map[string]int{}
	for _, place := range []map[string]bool{dead, live} {
		for id := range place {
			copies[id]++
		}
	}
	for _, problem := range log.Check(copies) {
		lost++
		t.Log(problem)
	}
	arrived := 0
	for id, n := range times {
		repeated += n - 1
		if _, ok := w.acked[id]; !ok {
			arrived++
		}
	}
	bound := 0
	for _, window := range w.windows {
		bound += window.mostInFlight
	}
	bound += w.externalApp.count() // each of these faults may have lost a response
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(w.counts)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, w.counts[name]))
	}
	requests := faultCounts(w.externalQueue, w.bundledQueue, w.producerQueue, w.externalApp)
	report(t, "%d faults in %s with seed %d: %d messages accepted, lost %d of them; dead-lettered without cause %d; "+
		"worked on again %d, in flight at the faults %d; damaged bodies delivered %d", len(w.windows),
		time.Since(w.began).Round(time.Second), w.seed, len(w.acked), lost, innocent, repeated, bound, w.corrupt)
	t.Logf("faults: %s; requests with a fault: %s", strings.Join(faults, ", "), requests)
	t.Logf("%d sends refused, %d unknown, of which %d arrived; %d dead-lettered; all done %s after the last fault; "+
		"ledger %+v", w.refused, w.unknown, arrived, len(dead), recovered.Round(100*time.Millisecond), ledger)
	if lost > 0 || innocent > 0 || w.corrupt > 0 || len(missing) > 0 {
		t.Errorf("lost %d, dead-lettered without cause %d, corrupt %d, not done in time %d: all should be 0", lost,
			innocent, w.corrupt, len(missing))
	}
	if repeated > bound {
		t.Errorf("%d messages were worked on again, and %d were in flight at the faults", repeated, bound)
	}
	if l := ledger; l.Sent != l.Done+l.DeadLettered+l.Live || l.Expired+l.Purged > 0 ||
		l.Done != int64(len(times)) || l.DeadLettered != int64(len(dead)) || l.Live != int64(len(live)) ||
		l.Sent < int64(len(w.acked)) || l.Sent > int64(len(w.acked)+w.unknown) {
		t.Errorf("the ledger does not balance: done %d, dead %d, live %d; %+v", len(times), len(dead), len(live), l)
	}
	if len(w.windows) == 0 || len(times) == 0 || w.networkFaults > 0 && w.requestsHit == 0 {
		t.Errorf("%d faults, %d of them of the network, which hit %d requests, %d messages done: nothing was shown",
			len(w.windows), w.networkFaults, w.requestsHit, len(times))
	}
}

func (w *faultyWorld) timesDone() map[string]int {
	times, _ := readJournal(w.t, w.journal)
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, n := range w.done {
		times[id] += n
	}
	return times
}

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
