package runtimeapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", maxResponse)
	type step struct {
		path, body string // ID in a path is replaced with the invocation's ID
		header     []string
		status     int
		says       string
	}
	for name, c := range map[string]struct {
		steps  []step
		kind   string
		answer string
	}{
		"response":        {[]step{{"invocation/ID/response", `{"a":1}`, nil, 202, `"OK"`}}, "", `{"a":1}`},
		"no JSON":         {[]step{{"invocation/ID/response", "<html>\xff", nil, 202, ""}}, "", "<html>\xff"},
		"empty":           {[]step{{"invocation/ID/response", "", nil, 202, ""}}, "", ""},
		"as large as can": {[]step{{"invocation/ID/response", big, nil, 202, ""}}, "", big},
		"too large": {[]step{{"invocation/ID/response", big + "x", nil, 413, "RequestEntityTooLarge"}},
			"Function.ResponseSizeTooLarge", "Response payload size exceeded maximum allowed payload size (6291556 bytes)."},
		"error": {[]step{{"invocation/ID/error", `{"errorType":"KeyError","errorMessage":"k","stackTrace":[]}`,
			nil, 202, "OK"}}, "KeyError", `"stackTrace":[]`},
		"error by name": {[]step{{"invocation/ID/error", `["odd"]`,
			[]string{"Lambda-Runtime-Function-Error-Type", "Odd.Form"}, 202, ""}}, "Odd.Form", `["odd"]`},
		"error in text": {[]step{{"invocation/ID/error", `boom "x"`,
			[]string{"Lambda-Runtime-Function-Error-Type", "Boom"}, 202, ""}}, "Boom",
			`{"errorType":"Boom","errorMessage":"boom \"x\""}`},
		"nameless error": {[]step{{"invocation/ID/error", ``, nil, 202, ""}}, "Runtime.UnknownReason", `"errorMessage":""`},
		"a sentence for a type": {[]step{{"invocation/ID/error", `{"errorType":"customer 17 has no card"}`, nil, 202, ""}},
			"Runtime.UnknownReason", "customer 17"},
		"error too large": {[]step{{"invocation/ID/error", big + "x", []string{"Lambda-Runtime-Function-Error-Type", "Big"},
			202, ""}}, "Big", "too large to be shown"},
		"streamed": {[]step{{"invocation/ID/response", `{"a":1}`,
			[]string{"Lambda-Runtime-Function-Response-Mode", "streaming"}, 400, "InvalidFunctionResponseMode"}},
			"Runtime.InvalidResponseModeHeader", "return it as a whole"},
		"twice": {[]step{{"invocation/ID/response", "first", nil, 202, ""},
			{"invocation/ID/response", "second", nil, 400, "InvalidRequestID"},
			{"invocation/ID/error", "third", nil, 400, "InvalidRequestID"}}, "", "first"},
		"of another": {[]step{{"invocation/other/response", "1", nil, 400, "InvalidRequestID"},
			{"invocation/other/error", "1", nil, 400, "InvalidRequestID"},
			{"invocation/ID/response", "2", nil, 202, ""}}, "", "2"},
		"too late for init": {[]step{{"init/error", "{}", nil, 403, "InvalidStateTransition"},
			{"invocation/ID/response", "2", nil, 202, ""}}, "", "2"},
		"not of this API": {[]step{{"restore/error", "{}", nil, 404, ""}, {"invocation/next", "", nil, 405, ""},
			{"invocation/ID/response", "2", nil, 202, ""}}, "", "2"},
		"from a browser": {[]step{{"invocation/ID/response", "1", []string{"Origin", "https://example.com"}, 403,
			"only the function"},
			{"invocation/ID/response", "1", []string{"Sec-Fetch-Site", "cross-site"}, 403, "only the function"},
			{"invocation/ID/response", "2", nil, 202, ""}}, "", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, h := newFakePool(t, Options{}, func(f *function) Exit {
					e, err := f.next()
					if err != nil {
						return Exit{}
					}
					for _, s := range c.steps {
						status, text := f.post(strings.ReplaceAll(s.path, "ID", e.id), s.body, s.header...)
						if status != s.status || !strings.Contains(text, s.says) {
							t.Errorf("POST %s: %d %s, want %d %s", s.path, status, text, s.status, s.says)
						}
					}
					return echo(f)
				})
				defer stop(t, p, h)
				a := invoke(t, p, "x")
				if c.kind != "" {
					wantError(t, a, c.kind)
				} else if a.Status != 200 || a.FunctionError != "" || a.Reason != "" {
					t.Errorf("answer %+v", a)
				}
				if !strings.Contains(string(a.Payload), c.answer) || c.kind == "" && len(a.Payload) != len(c.answer) {
					t.Errorf("payload %.200q, want %.200q", a.Payload, c.answer)
				}
				synctest.Wait()
				if a := invoke(t, p, "y"); string(a.Payload) != "y" || h.started() != 1 {
					t.Errorf("the next answer is %+v, of process %d", a, h.started())
				}
			})
		})
	}
}

func TestResponseWithBothContentLengthAndChunkedIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			e, err := f.next()
			if err != nil {
				return Exit{}
			}
			conn, err := f.client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", f.address)
			if err != nil {
				t.Error(err)
				return Exit{}
			}
			defer conn.Close()
			go fmt.Fprintf(conn, "POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\r\nHost: %s\r\nContent-Length: 6\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n", e.id, f.address)
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("answered %+v, %v", resp, err)
			}
			f.post("invocation/"+e.id+"/response", "2")
			return echo(f)
		})
		defer stop(t, p, h)
		if a := invoke(t, p, "x"); string(a.Payload) != "2" {
			t.Errorf("the response is %q", a.Payload)
		}
	})
}

// aws-lambda-go reports a failure while it writes the response in a trailer.
func TestFailureInTheMiddleOfTheResponse(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"whole":      base64.StdEncoding.EncodeToString([]byte(`{"errorType":"ReadError","errorMessage":"lost"}`)),
		"not base64": "?",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, h := newFakePool(t, Options{}, func(f *function) Exit {
					e, err := f.next()
					if err != nil {
						return Exit{}
					}
					req, _ := http.NewRequest("POST", "http://"+f.address+"/2018-06-01/runtime/invocation/"+e.id+"/response",
						io.MultiReader(strings.NewReader("half")))
					req.Trailer = http.Header{"Lambda-Runtime-Function-Error-Type": {"ReadError"},
						"Lambda-Runtime-Function-Error-Body": {text}}
					resp, err := f.client.Do(req)
					if err != nil || resp.StatusCode != 202 {
						t.Errorf("%v, %v", resp, err)
					}
					resp.Body.Close()
					return echo(f)
				})
				defer stop(t, p, h)
				wantError(t, invoke(t, p, "x"), "ReadError")
			})
		})
	}
}

func TestPayloadTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, echo)
		defer stop(t, p, h)
		a, err := p.Invoke(context.Background(), make([]byte, maxRequest+1), nil)
		if err != nil || a.Status != 413 || a.Code != "RequestTooLargeException" ||
			!strings.Contains(a.Message, "6291457 bytes") {
			t.Errorf("%+v, %v", a, err)
		}
		if a := invoke(t, p, string(make([]byte, maxRequest))); a.Status != 200 || len(a.Payload) != maxRequest {
			t.Errorf("the largest: %d, %d bytes", a.Status, len(a.Payload))
		}
	})
}

func TestNextWhileOwing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			e, _ := f.next()
			if _, err := f.next(); err == nil || !strings.Contains(err.Error(), "403") {
				t.Errorf("a second next: %v", err)
			}
			f.post("invocation/"+e.id+"/response", "first")
			return echo(f)
		})
		defer stop(t, p, h)
		if a := invoke(t, p, "x"); string(a.Payload) != "first" {
			t.Errorf("%+v", a)
		}
	})
}

// A web page whose domain resolves to this machine sends the domain as the Host header.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			req, _ := http.NewRequestWithContext(f.ctx, "GET", "http://"+f.address+"/2018-06-01/runtime/invocation/next", nil)
			req.Host = "rebound.example.com"
			if resp, err := f.client.Do(req); err != nil || resp.StatusCode != 403 {
				t.Errorf("%v, %v", resp, err)
			} else {
				resp.Body.Close()
			}
			return echo(f)
		})
		defer stop(t, p, h)
		invoke(t, p, "x")
	})
}

func TestHangUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			if f.number > 1 {
				return echo(f)
			}
			for range 2 {
				ctx, cancel := context.WithTimeout(f.ctx, time.Second)
				if resp, err := f.get(ctx); err == nil {
					resp.Body.Close()
					t.Error("nothing was invoked, but it got something")
				}
				cancel()
			}
			f.sleep(time.Hour)
			return Exit{}
		})
		defer stop(t, p, h)
		time.Sleep(2500 * time.Millisecond)
		began := time.Now()
		if a := invoke(t, p, "x"); a.Status != 429 || a.RetryAfter != 500*time.Millisecond ||
			time.Since(began) != 59500*time.Millisecond {
			t.Errorf("after %s %+v: it left at 2 s and had until 62 s to come back", time.Since(began), a)
		}
		time.Sleep(time.Second)
		if a := invoke(t, p, "x"); string(a.Payload) != "x" || h.started() != 2 {
			t.Errorf("%+v of process %d", a, h.started())
		}
	})
}

func TestHangUpAndComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			ctx, cancel := context.WithTimeout(f.ctx, time.Second)
			defer cancel()
			if resp, err := f.get(ctx); err == nil {
				resp.Body.Close()
				t.Error("nothing was invoked, but it got something")
			}
			f.sleep(time.Second)
			return echo(f)
		})
		defer stop(t, p, h)
		time.Sleep(1500 * time.Millisecond)
		if a := invoke(t, p, "x"); string(a.Payload) != "x" || h.started() != 1 {
			t.Errorf("%+v of process %d", a, h.started())
		}
	})
}

func TestSecondWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			go f.next()
			f.sleep(time.Second)
			return echo(f)
		})
		defer stop(t, p, h)
		time.Sleep(2 * time.Second)
		for range 3 {
			if a := invoke(t, p, "x"); string(a.Payload) != "x" {
				t.Errorf("%+v", a)
			}
		}
	})
}

func assigned(t *testing.T) (*Pool, *instance, *invocation) {
	t.Helper()
	p := newPool(Options{Instances: 1, Timeout: time.Minute}, (&fakeHost{}).host())
	inst := &instance{pool: p, number: 1, phase: idle, initialized: true, gone: make(chan struct{}),
		offer: make(chan *invocation, 1)}
	p.slots[0], p.idle = inst, []*instance{inst}
	for _, id := range []string{"first", "second"} {
		p.waiting = append(p.waiting, &invocation{id: id, outcome: make(chan outcome, 1), limit: time.Minute})
	}
	inv := p.waiting[0]
	p.dispatch() // starts no process, because the pool is not started
	if inst.current != inv || inst.phase != busy || len(p.waiting) != 1 {
		t.Fatalf("assigned %+v", inst.current)
	}
	t.Cleanup(func() { inst.disarm(); p.endPause() })
	return p, inst, inv
}

func TestAssignedToADeadProcess(t *testing.T) {
	t.Parallel()
	p, inst, inv := assigned(t)
	p.cleanUp(inst, Exit{Code: 1})
	if len(p.waiting) != 2 || p.waiting[0] != inv || inv.at != nil || len(inv.outcome) != 0 {
		t.Errorf("waiting %v, outcomes %d", p.waiting, len(inv.outcome))
	}
}

func TestAssignedToAProcessThatHungUp(t *testing.T) {
	t.Parallel()
	p, inst, inv := assigned(t)
	p.hangUp(inst, inst.offer)
	if len(p.waiting) != 2 || p.waiting[0] != inv || inst.phase != away {
		t.Errorf("waiting %v, phase %v", p.waiting, inst.phase)
	}
}

func TestAssignedToAProcessThatAsksAgain(t *testing.T) {
	t.Parallel()
	p, inst, inv := assigned(t)
	old := inst.offer
	request, ok := p.poll(inst)
	if !ok || len(request.offer) != 1 || inst.current != inv || inst.phase != busy {
		t.Errorf("allowed %v, phase %v, current %+v", ok, inst.phase, inst.current)
	}
	p.hangUp(inst, old) // the end of the first request is noticed late
	if inst.phase != busy || <-request.offer != inv {
		t.Errorf("phase %v", inst.phase)
	}
}

func TestAssignedWhileStopping(t *testing.T) {
	t.Parallel()
	p, inst, inv := assigned(t)
	p.stopping = true
	p.sendBack(inst, <-inst.offer)
	o := <-inv.outcome
	var unsent interface{ Unsent() bool }
	if !errors.Is(o.err, errNotInvoked) || !errors.As(o.err, &unsent) || !unsent.Unsent() {
		t.Errorf("%+v", o)
	}
}

func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
	}
}

func chaos(t *testing.T, seed uint64) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	seen := map[string]int{}
	p, h := newFakePool(t, Options{Instances: 3, Timeout: 5 * time.Second},
		func(f *function) Exit {
			switch draw(12) {
			case 0:
				return Exit{Code: 1}
			case 1:
				f.post("init/error", "{}")
			case 2:
				f.sleep(time.Hour)
				return Exit{}
			}
			for {
				e, err := f.next()
				if err != nil {
					return Exit{}
				}
				mu.Lock()
				seen[e.id]++
				mu.Unlock()
				f.sleep(time.Duration(draw(3000)) * time.Millisecond)
				if exit, ended := misbehave(f, e, draw(10)); ended {
					return exit
				}
			}
		})
	var calls sync.WaitGroup
	for i := range 60 {
		calls.Go(func() {
			time.Sleep(time.Duration(draw(30_000)) * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+draw(20))*time.Second)
			defer cancel()
			a, err := p.Invoke(ctx, []byte(fmt.Sprint(i)), nil)
			if err == nil && a.Status == 200 && a.FunctionError == "" && string(a.Payload) != fmt.Sprint(i) {
				t.Errorf("seed %d: invocation %d got the answer %s", seed, i, a.Payload)
			}
		})
	}
	if seed%2 == 0 {
		calls.Wait()
	} else {
		time.Sleep(15 * time.Second)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	calls.Wait()
	if h.mostAlive > 3 || h.alive != 0 {
		t.Errorf("seed %d: %d processes at once, %d left", seed, h.mostAlive, h.alive)
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("seed %d: %s was handed out %d times", seed, id, n)
		}
	}
}

func misbehave(f *function, e event, how int) (exit Exit, ended bool) {
	switch how {
	case 0:
		return Exit{Code: 2}, true
	case 1:
		f.sleep(time.Hour)
	case 2:
		f.post("invocation/"+e.id+"/error", `{"errorType":"E"}`)
	case 3:
		f.post("invocation/"+e.id+"/response", string(e.body))
		return Exit{}, true
	case 4:
		f.post("invocation/"+e.id+"/response", string(bytes.Repeat([]byte("x"), maxResponse+1)))
	default:
		f.post("invocation/"+e.id+"/response", string(e.body))
	}
	return Exit{}, f.ctx.Err() != nil
}
