package console

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// deliveryList is the answer of /api/v1/deliveries.
type deliveryList struct {
	Deliveries []Delivery `json:"deliveries"`
}

func (s *Server) deliveries() (*Deliveries, error) {
	if s.opts.Deliveries == nil {
		return nil, refuse(http.StatusConflict, "this process delivers nothing: it serves queues only",
			"outcomes are known where 'tendril up' runs")
	}
	return s.opts.Deliveries, nil
}

func (s *Server) getDeliveries(r *http.Request) (answer, error) {
	ds, err := s.deliveries()
	if err != nil {
		return answer{}, err
	}
	limit, err := count(r.URL.Query().Get("limit"), 1, DefaultDeliveries)
	if limit == 0 {
		limit = 100
	}
	return ok(deliveryList{ds.Recent(limit)}), err
}

// getOutcome answers with the most recent delivery of a message. With wait it
// waits for the end of the first one; without it in time it is the attempt that is
// in work, or else 404.
func (s *Server) getOutcome(r *http.Request) (answer, error) {
	ds, err := s.deliveries()
	if err != nil {
		return answer{}, err
	}
	wait, err := waitTime(r.URL.Query().Get("wait"))
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := s.bounded(r.Context(), wait)
	defer cancel()
	d, err := ds.Wait(ctx, r.PathValue("id"))
	if (err != nil || !d.Tried()) && s.opts.InWork != nil {
		if d, inWork := s.opts.InWork(r.PathValue("id")); inWork {
			return ok(d), nil
		}
	}
	if err != nil {
		return answer{}, refuse(http.StatusNotFound,
			"no delivery of message "+strconv.Quote(r.PathValue("id"))+" is remembered",
			"ask again with ?wait=20s; the message may still wait its turn")
	}
	return ok(d), nil
}

// waitTime reads a duration of 0 to MaxWait; "" is 0.
func waitTime(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > MaxWait {
		return 0, refuse(http.StatusBadRequest, "wait "+strconv.Quote(text)+" is out of range",
			"use a duration from 0s to "+MaxWait.String())
	}
	return wait, nil
}

// bounded returns a context that ends with the request, after wait, or when
// the server is closed.
func (s *Server) bounded(parent context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, wait)
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
