package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

type networkFault string

const (
	lostRequest networkFault = "lost request"
	lostAnswer  networkFault = "lost answer"
	// halfAnswer closes the connection in the middle of the response's body.
	halfAnswer networkFault = "half answer"
	// slowAnswer delays the request and the response by the plan's pause each.
	slowAnswer networkFault = "slow answer"
	// throttled responds with status 503 or the SQS error for too many requests.
	throttled networkFault = "throttled"
	silence   networkFault = "silence"
	wrongByte networkFault = "wrong byte"
)

// faultPlan selects the requests to disturb, and how. The zero value selects none.
type faultPlan struct {
	fault networkFault
	share float64
	only  string // part of the names of affected actions
	pause time.Duration
	// then reports whether to lose a request (with a nil answer) or a response; nil means always.
	then func(answer []byte) bool
}

func (p faultPlan) happens(answer []byte) bool { return p.then == nil || p.then(answer) }

type faultProxy struct {
	*httptest.Server
	to        string
	transport *http.Transport
	busy      sync.Mutex

	mu       sync.Mutex
	random   *rand.Rand
	plan     faultPlan
	changed  chan struct{}
	injected map[networkFault]int
}

func newFaultProxy(t testing.TB, to string, seed uint64) *faultProxy {
	p := &faultProxy{
		to: to, transport: &http.Transport{MaxIdleConnsPerHost: 100}, random: rand.New(rand.NewPCG(seed, 1)),
		changed: make(chan struct{}), injected: map[networkFault]int{},
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.inject(faultPlan{})
		p.CloseClientConnections()
		p.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

func (p *faultProxy) inject(plan faultPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *faultProxy) count() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, each := range p.injected {
		n += each
	}
	return n
}

func (p *faultProxy) draw(action string) (plan faultPlan, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan.fault == "" || !strings.Contains(action, p.plan.only) || p.random.Float64() >= p.plan.share {
		return faultPlan{}, p.changed
	}
	if p.plan.fault != wrongByte { // counted later, if the response contains a message
		p.injected[p.plan.fault]++
	}
	return p.plan, p.changed
}

// duringWait is for requests that started under an earlier plan, such as long polls. It returns only plans with a then
// function.
func (p *faultProxy) duringWait(action string) faultPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan.then == nil || !strings.Contains(action, p.plan.only) {
		return faultPlan{}
	}
	return p.plan
}

func (p *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	plan, changed := p.draw(action)
	switch plan.fault {
	case lostRequest:
		if plan.happens(nil) {
			panic(http.ErrAbortHandler)
		}
	case silence:
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case throttled:
		p.throttle(w, action)
		return
	case slowAnswer:
		p.pause(r, plan.pause, changed)
	}
	resp, answer := p.pass(r, body)
	if late := p.duringWait(action); plan.fault == "" && late.fault == lostAnswer {
		plan = late
	}
	switch plan.fault {
	case lostAnswer:
		if plan.happens(answer) {
			panic(http.ErrAbortHandler)
		}
	case slowAnswer:
		p.pause(r, plan.pause, changed)
	case wrongByte:
		if p.changeBody(answer) {
			p.mu.Lock()
			p.injected[wrongByte]++
			p.mu.Unlock()
		}
	}
	maps.Copy(w.Header(), resp.Header)
	w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
	w.WriteHeader(resp.StatusCode)
	if plan.fault == halfAnswer {
		_, _ = w.Write(answer[:len(answer)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(answer)
}

// If the server does not respond, neither does the proxy.
func (p *faultProxy) pass(r *http.Request, body []byte) (*http.Response, []byte) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.GetBody = nil // the transport must not repeat the request
	out.Header = r.Header.Clone()
	if r.Host == p.Listener.Addr().String() { // the server may expect another host name
		out.Host = r.Host
	}
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return resp, answer
}

func (p *faultProxy) pause(r *http.Request, d time.Duration, changed <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-changed:
	case <-r.Context().Done():
	}
}

func (p *faultProxy) throttle(w http.ResponseWriter, action string) {
	p.mu.Lock()
	named := action != "" && p.random.IntN(2) == 0
	p.mu.Unlock()
	if !named {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"Rate exceeded"}`)
}

func (p *faultProxy) changeBody(answer []byte) bool {
	const key = `"Body":"`
	at := bytes.Index(answer, []byte(key))
	if at < 0 {
		return false
	}
	at += len(key)
	length := bytes.IndexByte(answer[at:], '"')
	if length <= 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at += p.random.IntN(length)
	if answer[at] == 'x' {
		answer[at] = 'y'
	} else {
		answer[at] = 'x'
	}
	return true
}

func faultCounts(proxies ...*faultProxy) string {
	sum := map[networkFault]int{}
	for _, p := range proxies {
		p.mu.Lock()
		for f, n := range p.injected {
			sum[f] += n
		}
		p.mu.Unlock()
	}
	var parts []string
	for _, f := range slices.Sorted(maps.Keys(sum)) {
		parts = append(parts, fmt.Sprintf("%s %d", f, sum[f]))
	}
	return strings.Join(parts, ", ")
}
