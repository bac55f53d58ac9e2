package console

import (
	"net/http"
	"slices"
)

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks,omitempty"`
}

// probed is the answer of /livez and /startupz.
type probed struct {
	// Status is "ok", or "failed".
	Status string  `json:"status"`
	Checks []Check `json:"checks,omitempty"`
}

// livez says that the process works. It never asks the queue or the app: a
// restart would not fix those.
func (s *Server) livez(r *http.Request) (answer, error) { return probe(r, s.opts.Live) }

// startupz says that the start is over, whatever became of it later.
func (s *Server) startupz(r *http.Request) (answer, error) { return probe(r, s.opts.Started) }

func probe(r *http.Request, ask func() []Check) (answer, error) {
	checks, passed := all(ask)
	said := probed{"ok", worthSaying(r, checks)}
	if !passed {
		said.Status = "failed"
	}
	return answer{probeStatus(passed), said}, nil
}

// readyz is 200 when every check is OK and 503 when not. It lists the checks
// that are not, or all of them with ?verbose.
func (s *Server) readyz(r *http.Request) (answer, error) {
	checks, ready := s.checks()
	return answer{probeStatus(ready), readiness{ready, worthSaying(r, checks)}}, nil
}

func (s *Server) checks() (checks []Check, ready bool) { return all(s.opts.Ready) }

// all asks for checks, and reports whether every one is OK; without anybody to
// ask there are none.
func all(ask func() []Check) (checks []Check, passed bool) {
	if ask != nil {
		checks = slices.Clone(ask())
	}
	return checks, !slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
}

// worthSaying leaves out the checks that are OK, unless all were asked for.
func worthSaying(r *http.Request, checks []Check) []Check {
	if r.URL.Query().Has("verbose") {
		return checks
	}
	return slices.DeleteFunc(checks, func(c Check) bool { return c.OK })
}

func probeStatus(passed bool) int {
	if passed {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}
