package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func stop(t *testing.T, p *Pool, h *fakeHost) {
	t.Helper()
	if err := p.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alive != 0 || !h.closed {
		t.Errorf("after the stop %d processes are alive, host closed: %v", h.alive, h.closed)
	}
}

func invoke(t *testing.T, p *Pool, payload string) queue.Invocation {
	t.Helper()
	answer, err := p.Invoke(context.Background(), []byte(payload), nil)
	if err != nil {
		t.Error(err)
	}
	return answer
}

func wantError(t *testing.T, a queue.Invocation, kind string, words ...string) {
	t.Helper()
	if a.Status != 200 || a.FunctionError != "Unhandled" || a.Reason != kind || a.RequestID == "" {
		t.Errorf("answer %+v (%s), want an unhandled %s", a, a.Payload, kind)
	}
	for _, word := range words {
		if !strings.Contains(string(a.Payload), word) {
			t.Errorf("payload %s, want it to contain %s", a.Payload, word)
		}
	}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen event
		p, h := newFakePool(t, Options{Name: "resize", Region: "eu-west-1", Timeout: 3 * time.Second},
			func(f *function) Exit {
				return f.serve(func(e event) string { seen = e; return "answer to " + string(e.body) })
			})
		defer stop(t, p, h)
		now := time.Now()
		a := invoke(t, p, `{"n":1}`)
		if a.Status != 200 || a.FunctionError != "" || a.Reason != "" || string(a.Payload) != `answer to {"n":1}` ||
			a.RequestID != seen.id {
			t.Errorf("answer %+v to the invocation %q", a, seen.id)
		}
		for name, want := range map[string]string{
			"Lambda-Runtime-Deadline-Ms":          fmt.Sprint(now.Add(3 * time.Second).UnixMilli()),
			"Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:000000000000:function:resize",
			"Content-Type":                        "application/json",
		} {
			if got := seen.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if trace := seen.header.Get("Lambda-Runtime-Trace-Id"); !strings.HasPrefix(trace, "Root=1-") ||
			len(trace) != 35+5+24+10 {
			t.Errorf("trace %q", trace)
		}
	})
}

func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{Timeout: time.Minute}, func(f *function) Exit {
			return f.serve(func(e event) string { return e.header.Get("Lambda-Runtime-Deadline-Ms") })
		})
		defer stop(t, p, h)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		want := fmt.Sprint(time.Now().Add(10 * time.Second).UnixMilli())
		if a, err := p.Invoke(ctx, nil, nil); err != nil || string(a.Payload) != want {
			t.Errorf("%s, %v, want %s", a.Payload, err, want)
		}
	})
}

func TestProcessesStartAsNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{Instances: 3}, func(f *function) Exit {
			return f.serve(func(e event) string { f.sleep(time.Second); return fmt.Sprint(f.number) })
		})
		defer stop(t, p, h)
		for range 5 {
			invoke(t, p, "")
		}
		if n := h.started(); n != 1 {
			t.Errorf("%d processes for one invocation at a time", n)
		}
		began := time.Now()
		var calls sync.WaitGroup
		for range 9 {
			calls.Go(func() { invoke(t, p, "") })
		}
		calls.Wait()
		if h.started() != 3 || h.mostAlive != 3 {
			t.Errorf("%d processes, %d at once, want 3 for nine invocations", h.started(), h.mostAlive)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("nine invocations of 1 s by three took %s", took)
		}
		first := string(invoke(t, p, "").Payload)
		synctest.Wait()
		if again := string(invoke(t, p, "").Payload); again != first {
			t.Errorf("process %s, then %s: the one that was busy last should be used", first, again)
		}
	})
}

func TestInvocationsWaitInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []string
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			return f.serve(func(e event) string { order = append(order, string(e.body)); f.sleep(time.Second); return "" })
		})
		defer stop(t, p, h)
		var calls sync.WaitGroup
		for i := range 6 {
			calls.Go(func() { invoke(t, p, fmt.Sprint(i)) })
			synctest.Wait()
		}
		calls.Wait()
		if !slices.IsSorted(order) || len(order) != 6 {
			t.Errorf("order %v", order)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reported []TimedOut
		p, h := newFakePool(t, Options{Timeout: 1500 * time.Millisecond, Events: Events{TimedOut: func(e TimedOut) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, e)
		}}},
			func(f *function) Exit {
				return f.serve(func(e event) string {
					if string(e.body) == "hang" {
						f.sleep(time.Hour)
					}
					return "in time"
				})
			})
		defer stop(t, p, h)
		began := time.Now()
		a := invoke(t, p, "hang")
		wantError(t, a, "Sandbox.Timedout",
			`{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: `+a.RequestID+
				` Error: Task timed out after 1.50 seconds"}`)
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if a := invoke(t, p, "quick"); string(a.Payload) != "in time" {
			t.Errorf("the next: %+v", a)
		}
		if h.started() != 2 || time.Since(began) > 2*time.Second {
			t.Errorf("%d processes, after %s: want a second at once", h.started(), time.Since(began))
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(reported) != 1 || reported[0].RequestID != a.RequestID || reported[0].Limit != 1500*time.Millisecond {
			t.Errorf("reported %+v", reported)
		}
	})
}

func TestTimeLimitAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{Timeout: 4 * time.Second}, func(f *function) Exit {
			e, _ := f.next()
			f.post("invocation/"+e.id+"/response", "done")
			f.sleep(time.Hour)
			return Exit{}
		})
		defer stop(t, p, h)
		began := time.Now()
		if a := invoke(t, p, ""); string(a.Payload) != "done" || time.Since(began) != 0 {
			t.Errorf("%+v after %s", a, time.Since(began))
		}
		if a := invoke(t, p, ""); string(a.Payload) != "done" || time.Since(began) != 4*time.Second {
			t.Errorf("%+v after %s: the next process comes at the time limit of the first", a, time.Since(began))
		}
	})
}

func TestDeathDuringAnInvocation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exit Exit
		want string
	}{
		"status": {Exit{Code: 3}, "Error: Runtime exited with error: exit status 3"},
		"zero":   {Exit{}, "Error: Runtime exited without providing a reason"},
		"signal": {Exit{Code: -1, Signal: "SIGSEGV"}, "Error: Runtime exited with error: signal: segmentation fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, h := newFakePool(t, Options{}, func(f *function) Exit {
					if _, err := f.next(); err != nil {
						return Exit{}
					}
					return c.exit
				})
				defer stop(t, p, h)
				began := time.Now()
				for range 5 {
					wantError(t, invoke(t, p, "x"), "Runtime.ExitError", c.want)
				}
				if pause := time.Since(began); pause != 0 {
					t.Errorf("there was a pause of %s: the callers pace these", pause)
				}
			})
		})
	}
}

func TestInitFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		var mu sync.Mutex
		var reported []InitFailed
		p, h := newFakePool(t, Options{Instances: 2, Events: Events{InitFailed: func(e InitFailed) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, e)
		}}}, func(f *function) Exit {
			if broken.Load() {
				f.sleep(time.Second)
				return Exit{Code: 1}
			}
			return echo(f)
		})
		defer stop(t, p, h)
		answers := make(chan queue.Invocation, 4)
		for range 4 {
			go func() { answers <- invoke(t, p, "x") }()
			synctest.Wait()
		}
		errors := 0
		for range 4 {
			a := <-answers
			if a.Status == 200 {
				errors++
				wantError(t, a, "Runtime.ExitError", "exit status 1")
			} else if a.Status != 429 || a.RetryAfter != 500*time.Millisecond || a.Reason != "FunctionKeepsEnding" ||
				!strings.Contains(a.Message, "restarts in 0.5 s") || a.RequestID != "" {
				t.Errorf("answer %+v, want a throttle for the pause", a)
			}
		}
		if errors != 1 {
			t.Errorf("%d invocations were charged for one failure", errors)
		}
		time.Sleep(500*time.Millisecond + time.Second)
		synctest.Wait()
		if a := invoke(t, p, "x"); a.Status != 429 || a.RetryAfter != time.Second {
			t.Errorf("answer %+v, want a pause of 1 s after the second failure", a)
		}
		broken.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if a := invoke(t, p, "x"); string(a.Payload) != "x" {
			t.Errorf("answer %+v after the repair", a)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(reported) < 2 || reported[0].Type != "Runtime.ExitError" || reported[0].Failures != 1 ||
			reported[0].Pause != 500*time.Millisecond ||
			!strings.Contains(reported[0].Reason, "exit status 1") {
			t.Errorf("reported %+v", reported)
		}
	})
}

func TestInitFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behave func(f *function) Exit
		kind   string
		words  string
		after  time.Duration
	}{
		"posted": {func(f *function) Exit {
			f.post("init/error", `{"errorMessage":"no module named x","errorType":"Runtime.ImportModuleError"}`)
			return Exit{Code: 1}
		}, "Runtime.ImportModuleError", "no module named x", time.Second},
		"posted and stays": {func(f *function) Exit {
			f.post("init/error", `{"errorType":"Boot"}`, "Lambda-Runtime-Function-Error-Type", "Other")
			f.sleep(time.Hour)
			return Exit{}
		}, "Boot", "", 2 * time.Second},
		"posted no JSON": {func(f *function) Exit {
			f.post("init/error", "oh no", "Lambda-Runtime-Function-Error-Type", "Runtime.Odd")
			return Exit{Code: 1}
		}, "Runtime.Odd", "oh no", time.Second},
		"never asks": {func(f *function) Exit {
			f.sleep(time.Hour)
			return Exit{}
		}, "Sandbox.Timedout", "Init timed out after 60.00 seconds", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, h := newFakePool(t, Options{}, func(f *function) Exit {
					f.sleep(time.Second) // the invocation waits for the start
					return c.behave(f)
				})
				defer stop(t, p, h)
				synctest.Wait()
				began := time.Now()
				wantError(t, invoke(t, p, "x"), c.kind, c.words)
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %s, want %s", took, c.after)
				}
			})
		})
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, echo)
		defer stop(t, p, h)
		invoke(t, p, "x")
		hold := make(chan struct{})
		h.mu.Lock()
		h.startErr, h.hold = errors.New("exec format error"), hold
		h.mu.Unlock()
		p.mu.Lock()
		p.slots[0].kill(byCaller)
		p.mu.Unlock()
		answer := make(chan queue.Invocation)
		go func() { answer <- invoke(t, p, "x") }()
		synctest.Wait()
		close(hold)
		wantError(t, <-answer, "Runtime.InvalidEntrypoint", "exec format error")
		synctest.Wait()
		if a := invoke(t, p, "x"); a.Status != 429 || a.RetryAfter != 500*time.Millisecond {
			t.Errorf("then: %+v, want to be put off for half a second", a)
		}
	})
}

func TestDeathWhileIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			go func() { f.sleep(time.Second); f.kill() }()
			return echo(f)
		})
		defer stop(t, p, h)
		time.Sleep(time.Minute)
		var gaps []time.Duration
		h.mu.Lock()
		for i := range h.starts[1:] {
			gaps = append(gaps, h.starts[i+1].Sub(h.starts[i])-time.Second)
		}
		h.mu.Unlock()
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second}
		if !slices.Equal(gaps, want) {
			t.Errorf("pauses %v, want %v", gaps, want)
		}
	})
}

func TestAnswerEndsTheCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			go func() { f.sleep(time.Second); f.kill() }()
			return echo(f)
		})
		defer stop(t, p, h)
		for range 4 {
			if a := invoke(t, p, "x"); string(a.Payload) != "x" {
				t.Errorf("%+v", a)
			}
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
		}
	})
}

func TestOneProcessForEachInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			if e, err := f.next(); err == nil {
				f.post("invocation/"+e.id+"/response", "done")
			}
			return Exit{}
		})
		defer stop(t, p, h)
		for range 5 {
			if a := invoke(t, p, "x"); string(a.Payload) != "done" {
				t.Errorf("%+v", a)
			}
			synctest.Wait()
		}
	})
}

func TestLingering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{Instances: 2}, func(f *function) Exit {
			for {
				e, err := f.next()
				if err != nil {
					return Exit{}
				}
				f.post("invocation/"+e.id+"/response", fmt.Sprint(f.number))
				f.sleep(10 * time.Second)
			}
		})
		defer stop(t, p, h)
		began := time.Now()
		first, second := invoke(t, p, ""), invoke(t, p, "")
		if string(first.Payload) != "1" || string(second.Payload) != "2" || time.Since(began) != lingering {
			t.Errorf("%s and %s after %s", first.Payload, second.Payload, time.Since(began))
		}
	})
}

func TestInvocationThatWaitedForAProcessIsNotRunIfItsQueueWasPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var received atomic.Int64
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			f.sleep(10 * time.Second)
			return f.serve(func(event) string { received.Add(1); return "null" })
		})
		defer stop(t, p, h)
		var paused atomic.Bool
		time.AfterFunc(5*time.Second, func() { paused.Store(true) })
		if _, err := p.Invoke(context.Background(), nil, paused.Load); !errors.Is(err, errNotInvoked) || received.Load() > 0 {
			t.Errorf("%v, %d invocations", err, received.Load())
		}
		paused.Store(false)
		if _, err := p.Invoke(context.Background(), nil, paused.Load); err != nil || received.Load() != 1 {
			t.Errorf("after the pause: %v, %d invocations", err, received.Load())
		}
	})
}

func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{
		1: 500 * time.Millisecond, 2: time.Second, 6: 16 * time.Second, 7: 30 * time.Second,
		8: 30 * time.Second, 1 << 40: 30 * time.Second,
	} {
		if got := pauseAfter(failures); got != want {
			t.Errorf("pauseAfter(%d) = %s, want %s", failures, got, want)
		}
	}
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit {
			return f.serve(func(e event) string { f.sleep(time.Minute); return "" })
		})
		defer stop(t, p, h)
		running, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		waiting, cancel2 := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel2()
		var calls sync.WaitGroup
		calls.Go(func() {
			_, err := p.Invoke(running, nil, nil)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errNotInvoked) {
				t.Errorf("the one at work: %v", err)
			}
		})
		synctest.Wait()
		calls.Go(func() {
			_, err := p.Invoke(waiting, nil, nil)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNotInvoked) {
				t.Errorf("the one that waited: %v", err)
			}
		})
		calls.Wait()
		synctest.Wait()
		h.mu.Lock()
		asked := slices.Clone(h.signals)
		h.mu.Unlock()
		if !slices.Equal(asked, []syscall.Signal{syscall.SIGTERM}) || h.started() != 1 {
			t.Errorf("%d processes, signals %v: want TERM alone at first", h.started(), asked)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		if h.started() != 2 || h.mostAlive != 1 {
			t.Errorf("%d processes, %d at once: the work that nobody waits for should have been killed, then replaced",
				h.started(), h.mostAlive)
		}
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	deaf := func(f *function) Exit { f.term = nil; return echo(f) }
	slow := func(f *function) Exit {
		return f.serve(func(e event) string { f.sleep(20 * time.Second); return "whole" })
	}
	term, termKill := []syscall.Signal{syscall.SIGTERM}, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
	for name, c := range map[string]struct {
		behave  func(f *function) Exit
		invoked bool
		patient time.Duration // when Stop's context ends
		hurry   time.Duration // when the grace periods end
		takes   time.Duration
		answer  string
		signals []syscall.Signal
	}{
		"idle":                 {echo, false, time.Minute, time.Hour, 0, "", term},
		"idle and deaf":        {deaf, false, time.Minute, time.Hour, 2 * time.Second, "", termKill},
		"idle, deaf, no time":  {deaf, false, time.Second, time.Hour, 2 * time.Second, "", termKill},
		"idle, deaf, in hurry": {deaf, false, time.Minute, time.Second, time.Second, "", termKill},
		"at work":              {slow, true, time.Minute, time.Hour, 20 * time.Second, "whole", term},
		"at work, no time":     {slow, true, 5 * time.Second, time.Hour, 7 * time.Second, "", termKill},
		"at work, in hurry":    {slow, true, 5 * time.Second, 3 * time.Second, 3 * time.Second, "", termKill},
		"not even initialized": {func(f *function) Exit {
			f.sleep(time.Hour)
			return Exit{}
		}, false, time.Minute, time.Hour, 2 * time.Second, "", termKill},
		"in the pause": {func(f *function) Exit { return Exit{Code: 1} }, false, time.Minute, time.Hour, 0, "", nil},
		"answered, asks no more": {func(f *function) Exit {
			e, _ := f.next()
			f.post("invocation/"+e.id+"/response", "whole")
			f.sleep(time.Hour)
			return Exit{}
		}, true, 7 * time.Second, time.Hour, 9 * time.Second, "whole", termKill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if strings.Contains(name, "deaf") {
					inner := c.behave
					c.behave = func(f *function) Exit { f.once.Do(func() {}); return inner(f) }
				}
				hurry, inHurry := context.WithCancel(context.Background())
				defer inHurry()
				p, h := newFakePool(t, Options{Hurry: hurry}, c.behave)
				synctest.Wait()
				var calls sync.WaitGroup
				if c.invoked {
					calls.Go(func() {
						a, err := p.Invoke(context.Background(), nil, nil)
						if (err == nil) != (c.answer != "") || string(a.Payload) != c.answer || errors.Is(err, errNotInvoked) {
							t.Errorf("answer %+v, %v", a, err)
						}
					})
					synctest.Wait()
				}
				ctx, cancel := context.WithTimeout(context.Background(), c.patient)
				defer cancel()
				began := time.Now()
				defer time.AfterFunc(c.hurry, inHurry).Stop()
				if err := p.Stop(ctx); err != nil {
					t.Error(err)
				}
				if !slices.Equal(h.signals, c.signals) {
					t.Errorf("signals %v, want %v", h.signals, c.signals)
				}
				if took := time.Since(began); took != c.takes {
					t.Errorf("Stop took %s, want %s", took, c.takes)
				}
				calls.Wait()
				stop(t, p, h)
				if _, err := p.Invoke(context.Background(), nil, nil); !errors.Is(err, errNotInvoked) {
					t.Errorf("after the stop: %v", err)
				}
			})
		})
	}
}

func TestStopRefusesWaitingInvocations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, func(f *function) Exit { f.sleep(time.Hour); return Exit{} })
		var calls sync.WaitGroup
		began := time.Now()
		calls.Go(func() {
			if _, err := p.Invoke(context.Background(), nil, nil); !errors.Is(err, errNotInvoked) || time.Since(began) != 0 {
				t.Errorf("it got %v after %s", err, time.Since(began))
			}
		})
		synctest.Wait()
		stop(t, p, h)
		calls.Wait()
	})
}

func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Command: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Invoke(context.Background(), nil, nil); !errors.Is(err, errNotInvoked) {
		t.Errorf("before the start: %v", err)
	}
	if err := p.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStopNamesProcessesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		p, _ := newFakePool(t, Options{}, func(f *function) Exit { <-stuck; return Exit{} })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		err := p.Stop(ctx)
		if err == nil || !strings.Contains(err.Error(), "[1001]") ||
			time.Since(began) != time.Second+2*time.Second+killPatience {
			t.Errorf("Stop: %v after %s", err, time.Since(began))
		}
		close(stuck)
	})
}

func TestEventsOfOneProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reported []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, fmt.Sprintf(format, args...))
		}
		p, h := newFakePool(t, Options{Events: Events{
			Ready:      func(e Ready) { note("ready %d after %s", e.PID, e.After) },
			InitFailed: func(e InitFailed) { note("failed %s: %s", e.Type, e.Reason) },
			Exited:     func(e Exited) { note("exited %d: %s, %q, ran %s", e.PID, e.Exit, e.Asked, e.Exit.Ran) },
		}}, func(f *function) Exit {
			f.sleep(time.Second)
			if f.number == 1 {
				return Exit{Code: 7}
			}
			return echo(f)
		})
		time.Sleep(5 * time.Second)
		stop(t, p, h)
		want := []string{
			"failed Runtime.ExitError: its process exited before it requested an invocation: exit status 7",
			`exited 1001: exit status 7, "", ran 1s`,
			"ready 1002 after 1s", `exited 1002: exit status 0, "stopped", ran 3.5s`,
		}
		if !slices.Equal(reported, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(reported, "\n"), strings.Join(want, "\n"))
		}
		if !slices.Equal(h.signals, []syscall.Signal{syscall.SIGTERM}) {
			t.Errorf("signals %v", h.signals)
		}
	})
}
