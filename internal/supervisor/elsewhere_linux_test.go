package supervisor

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestReasonNamesThePortOfAnAppThatListensElsewhere(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w := newObserver(t)
		elsewhere := strconv.Itoa(freePort(t))
		late := make(chan string, 1000)
		s, r := realSupervisor(t, Options{
			ReadyInterval: time.Millisecond, ReadyLateAfter: time.Millisecond,
			Events: Events{ReadyLate: func(e ReadyLate) { late <- e.Reason }},
		}, Process{
			Name: "web", Shell: `setsid "$SELF" & wait`, Port: freePort(t),
			Env: append(childEnv("serve", w.address()), "PATH=/usr/bin:/bin", "SELF="+selfPath(), "PORT="+elsewhere),
		})
		start(t, with(s))
		w.next()
		reason := <-late
		for !strings.Contains(reason, "it listens on") {
			reason = <-late
		}
		if want := "; it listens on " + elsewhere + ": use $PORT or --port " + elsewhere; !strings.HasSuffix(reason, want) {
			t.Errorf("reason %q, want its end %q", reason, want)
		}
		if status := s.Status()[0]; !strings.Contains(status.Reason, "it listens on "+elsewhere) || len(r.gate) != 0 {
			t.Errorf("status %+v, want the reason in it and a closed gate", status)
		}
		stop(t, s)
	})
}

func TestElsewhereNamesAllPorts(t *testing.T) {
	t.Parallel()
	for want, ports := range map[string][]int{
		"": nil,
		"; it listens on 3000: use $PORT or --port 3000":                            {3000},
		"; it listens on 3000, 9229: use $PORT, or --port with the right one":       {3000, 9229},
		"; it listens on 3000, 8080, 9229: use $PORT, or --port with the right one": {3000, 8080, 9229},
	} {
		if got := listensElsewhere(errNothingListens, ports).Error(); got != errNothingListens.Error()+want {
			t.Errorf("%v: %q", ports, got)
		}
	}
}
