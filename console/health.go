package console

import (
	"errors"
	"net/http"

	"tendril/health"
	"tendril/queue"
)

// shownProblems bounds the groups of failures in a status.
const shownProblems = 20

// getStatus answers after the queues were closed too: it then leaves them out.
func (s *Server) getStatus(*http.Request) (answer, error) {
	st := s.status()
	b := s.opts.Broker
	if b == nil {
		return ok(st), nil
	}
	queues, err := listQueues(b, st.Workers)
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
	if s.opts.Health != nil {
		r := s.health()
		st.Health = &r
	}
	return st
}

// health returns the report with a list of causes, even an empty one.
func (s *Server) health() health.Report {
	r := s.opts.Health()
	if r.Causes == nil {
		r.Causes = []string{}
	}
	return r
}

// getHealth is 200 whatever the status: it is a report, not a probe.
func (s *Server) getHealth(*http.Request) (answer, error) {
	if s.opts.Health == nil {
		return answer{}, refuse(http.StatusConflict,
			"nothing here judges how the environment does: this process serves queues only", "ask /readyz")
	}
	return ok(s.health()), nil
}

// getScale answers a scaler outside.
func (s *Server) getScale(*http.Request) (answer, error) {
	if s.opts.Scale == nil {
		return answer{}, refuse(http.StatusConflict, "nothing here works out a size: this process works on no queue",
			"ask where 'tendril up' runs")
	}
	return ok(s.opts.Scale()), nil
}
