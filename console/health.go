package console

import (
	"errors"
	"net/http"
	"slices"

	"tendril/queue"
)

// shownProblems bounds the groups of failures in a status.
const shownProblems = 20

// livez says that the process answers. It never asks the queue or the app: a
// restart would not mend those.
func (s *Server) livez(*http.Request) (answer, error) {
	return ok(map[string]string{"status": "ok"}), nil
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks,omitempty"`
}

// readyz is 200 when every check is OK and 503 when not. It lists the checks
// that are not, or all of them with ?verbose.
func (s *Server) readyz(r *http.Request) (answer, error) {
	checks, ready := s.checks()
	if !r.URL.Query().Has("verbose") {
		checks = slices.DeleteFunc(checks, func(c Check) bool { return c.OK })
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	return answer{status, readiness{ready, checks}}, nil
}

func (s *Server) checks() (checks []Check, ready bool) {
	if s.opts.Ready != nil {
		checks = slices.Clone(s.opts.Ready())
	}
	return checks, !slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
}

// getStatus answers after the queues were closed too: it then leaves them out.
func (s *Server) getStatus(*http.Request) (answer, error) {
	st := s.status()
	b := s.opts.Broker
	if b == nil {
		return ok(st), nil
	}
	queues, err := listQueues(b, st.Worker)
	if errors.Is(err, queue.ErrClosed) {
		return ok(st), nil
	}
	if err != nil {
		return answer{}, err
	}
	st.Queues, st.Ledger = queues, account(b.TotalLedger(), queues)
	return ok(st), nil
}

// environment is what only the environment knows.
func (s *Server) environment() Status {
	if s.opts.Status == nil {
		return Status{}
	}
	return s.opts.Status()
}

// status is everything but the embedded queues.
func (s *Server) status() Status {
	st := s.environment()
	st.Environment, st.Version, st.PID = s.opts.Environment, s.opts.Version, s.pid
	st.Backend = BackendSQS
	if s.opts.Broker != nil {
		st.Backend = BackendEmbedded
	}
	st.Checks, st.Ready = s.checks()
	if s.opts.Deliveries != nil {
		st.Problems = s.opts.Deliveries.Problems()
		st.Problems = st.Problems[:min(len(st.Problems), shownProblems)]
	}
	if st.Queues == nil {
		st.Queues = []Queue{}
	}
	return st
}
