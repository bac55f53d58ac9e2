package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

// selectionOf reads a selection from the query of a request: match, attribute (NAME or NAME=VALUE), reason,
// dead_since, dead_until and through.
func selectionOf(r *http.Request) (sel api.Selection, err error) {
	query := r.URL.Query()
	sel.Match = query.Get("match")
	sel.Attribute, sel.Value, _ = strings.Cut(query.Get("attribute"), "=")
	if query.Has("reason") {
		reason := query.Get("reason")
		sel.Reason = &reason
	}
	if text := query.Get("through"); text != "" {
		if sel.Through, err = strconv.ParseInt(text, 10, 64); err != nil || sel.Through < 1 {
			return sel, api.NewError(http.StatusBadRequest, "through "+strconv.Quote(text)+" is not the place of a message",
				"use what a queue has as newest")
		}
	}
	for name, at := range map[string]*time.Time{"dead_since": &sel.DeadSince, "dead_until": &sel.DeadUntil} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return sel, api.NewError(http.StatusBadRequest, name+" "+strconv.Quote(text)+" is not a time",
				"use a form such as 2006-01-02T15:04:05Z")
		}
	}
	return sel, nil
}

// asksBodies reports whether a selection depends on what messages say.
func asksBodies(sel *api.Selection) bool { return sel.Match != "" || sel.Attribute != "" }

// shortCount is how long a count may take that a page waits for.
const shortCount = 60 * time.Millisecond

func (q *queueRoutes) count(r *http.Request) (any, error) {
	sel, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	within, err := waitTime(r.URL.Query().Get("wait"), api.MaxWait-time.Second, shortCount)
	if err != nil {
		return nil, err
	}
	n, exact, err := q.broker.Queue(r.PathValue("name")).Count(r.Context(), broker.Filter(sel), within)
	return api.Total{N: n, Exact: exact}, err
}

func (q *queueRoutes) retry(r *http.Request) (any, error) { return q.reschedule(r, 0) }

func (q *queueRoutes) delay(r *http.Request, body api.DelayRequest) (any, error) {
	if most := int(queue.MaxVisibility / time.Second); body.Seconds < 0 || body.Seconds > most {
		return nil, api.NewError(http.StatusBadRequest, "a delay of "+strconv.Itoa(body.Seconds)+" seconds is out of range",
			"use 0 to "+strconv.Itoa(most))
	}
	return q.reschedule(r, time.Duration(body.Seconds)*time.Second)
}

func (q *queueRoutes) reschedule(r *http.Request, delay time.Duration) (any, error) {
	name, id := r.PathValue("name"), r.PathValue("id")
	if err := q.broker.Queue(name).Reschedule(r.Context(), id, delay); err != nil {
		return nil, err
	}
	stored, err := q.broker.Message(r.Context(), name, id)
	if gone := (&queue.Error{Code: queue.CodeResourceNotFound}); delay == 0 && errors.Is(err, gone) {
		return api.Placed{ID: id, State: string(broker.Visible)}, nil // it became visible, and was delivered since
	}
	if err != nil {
		return nil, err
	}
	m := fromStored(&stored)
	return api.Placed{ID: m.ID, State: m.State, VisibleAt: m.VisibleAt}, nil
}

func (q *queueRoutes) edit(r *http.Request, body api.EditRequest) (any, error) {
	name, id := r.PathValue("name"), r.PathValue("id")
	if body.To == "" {
		old, err := q.broker.Message(r.Context(), name, id)
		if err != nil {
			return nil, err
		}
		if body.To = old.DeadLetterSource[strings.LastIndexByte(old.DeadLetterSource, ':')+1:]; body.To == "" {
			return nil, api.NewError(http.StatusBadRequest, "the message does not say which queue it came from",
				"name the queue to send it to as to")
		}
	}
	sent, err := q.broker.Queue(name).Replace(r.Context(), id, body.To, body.Message.ToQueue())
	return api.SendAnswer{Results: []api.SendResult{{ID: sent.ID, SequenceNumber: sent.SequenceNumber}}}, err
}
