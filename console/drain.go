package console

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// maxHookWait is the longest that a hook waits for a drain: as long as a
// platform gives a stop at most.
const maxHookWait = 15 * time.Minute

// drained is the answer of a drain.
type drained struct {
	// Drained is whether all work is settled and the process is ending.
	Drained bool `json:"drained"`
}

// postDrain begins a drain and waits for its end. It is 200 when drained and
// 202 when the drain goes on.
func (s *Server) postDrain(r *http.Request) (answer, error) {
	if s.opts.Drain == nil {
		return answer{}, noDrain()
	}
	var body struct {
		Wait string `json:"wait"`
	}
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	wait, err := waitTime(body.Wait)
	if err != nil {
		return answer{}, err
	}
	return s.drain(r, wait)
}

// hookDrain is postDrain for who can say nothing but a path, such as a hook
// that a platform calls before it stops the app: it returns when nothing is in
// work, or after ?wait, [MaxWait] unless told.
func (s *Server) hookDrain(r *http.Request) (answer, error) {
	if s.opts.Drain == nil {
		return answer{}, noDrain()
	}
	wait := MaxWait
	if text := r.URL.Query().Get("wait"); text != "" {
		var err error
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > maxHookWait {
			return answer{}, refuse(http.StatusBadRequest, "wait "+strconv.Quote(text)+" is out of range",
				"use a duration from 0s to "+maxHookWait.String())
		}
	}
	return s.drain(r, wait)
}

func noDrain() error {
	return refuse(http.StatusConflict, "this process cannot be drained", "end it with the signal TERM")
}

func (s *Server) drain(r *http.Request, wait time.Duration) (answer, error) {
	ctx, cancel := s.bounded(r.Context(), wait)
	defer cancel()
	err := s.opts.Drain(ctx)
	switch {
	case err == nil:
		return ok(drained{true}), nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return answer{http.StatusAccepted, drained{false}}, nil
	default:
		return answer{}, err
	}
}
