package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"tendril/queue"
)

// Limits of one request.
const (
	// maxWait is the longest that one request waits, hooks and deployments apart.
	maxWait = 25 * time.Second
	// MaxBody bounds what a request may send, in bytes: ten messages that fill a
	// megabyte together, with every byte of them escaped.
	MaxBody = 8 << 20

	maxIDs    = 1000 // of the messages in one selection
	maxReason = 200  // bytes
	// maxValues bounds the JSON values of one request: the largest send, ten
	// messages with ten attributes each, has less than a thousand, and the largest
	// selection has a thousand ids.
	maxValues = 10_000
)

// handler answers a request with what is sent as JSON: a value with status 200, or an
// [answer].
type handler func(*http.Request) (any, error)

// answer is a value with a status of its own.
type answer struct {
	status int
	body   any
}

// need returns handle where the environment has what a route is about, or else a
// handler that refuses with status 409.
func need(has bool, message, hint string, handle handler) handler {
	if has {
		return handle
	}
	return func(*http.Request) (any, error) { return nil, refuse(http.StatusConflict, message, hint) }
}

// taking reads the body that a handler takes: a JSON object with the fields of T and
// no others, {} when it is empty. Where *T has a method check, that decides too.
func taking[T any](handle func(*http.Request, T) (any, error)) handler {
	return func(r *http.Request) (any, error) {
		var body T
		if err := readBody(r, &body); err != nil {
			return nil, err
		}
		if c, ok := any(&body).(interface{ check() error }); ok {
			if err := c.check(); err != nil {
				return nil, err
			}
		}
		return handle(r, body)
	}
}

// takingNothing is taking for a handler whose request has no fields.
func takingNothing(handle handler) handler {
	return taking(func(r *http.Request, _ struct{}) (any, error) { return handle(r) })
}

func readBody(r *http.Request, into any) error {
	var body bytes.Buffer
	_, err := body.ReadFrom(r.Body)
	var tooLarge *http.MaxBytesError
	var throttled *queue.Error
	switch {
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "the request is larger than "+strconv.Itoa(MaxBody)+" bytes",
			"send less at once")
	case errors.As(err, &throttled):
		return throttled
	case err != nil:
		return refuse(http.StatusBadRequest, "the request is incomplete", "send it again")
	}
	// A few bytes of text can ask for a hundred times as much memory.
	if countValues(body.Bytes()) > maxValues {
		return refuse(http.StatusBadRequest, "the request holds more than "+strconv.Itoa(maxValues)+" JSON values",
			"send less at once")
	}
	dec := json.NewDecoder(&body)
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && dec.More() {
		err = errors.New("more than one JSON value")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid request: "+err.Error(), "send one JSON object with known fields")
	}
	return nil
}

// countValues returns at least the number of values in a JSON text.
func countValues(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', ',':
			n++
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

// confirmation is the body of an act that cannot be undone.
type confirmation struct {
	// Confirm is the name of the queue, as a person typed it.
	Confirm string `json:"confirm,omitempty"`
	// Through is the place of the newest message to remove, see [Queue].Newest; 0 for all.
	Through int64 `json:"through,omitempty"`
}

// of refuses an act on a queue that nobody has confirmed.
func (c confirmation) of(name string) error {
	if c.Confirm == name {
		return nil
	}
	return refuse(http.StatusPreconditionRequired, "this cannot be undone: confirm it with the name of the queue",
		`send {"confirm":`+strconv.Quote(name)+`}`)
}

// reason is the body of a pause.
type reason struct {
	Reason string `json:"reason"`
}

func (r *reason) check() error {
	if len(r.Reason) > maxReason || !utf8.ValidString(r.Reason) {
		return refuse(http.StatusBadRequest, "the reason is longer than "+strconv.Itoa(maxReason)+" bytes", "shorten it")
	}
	return nil
}

// selection is the body of moving messages.
type selection struct {
	IDs []string `json:"ids"`
	// To is the name of the queue to move to; "" means the one that each
	// message was dead-lettered from.
	To string `json:"to,omitempty"`
}

func (s *selection) check() error { return checkIDs(s.IDs) }

func checkIDs(ids []string) error {
	if len(ids) == 0 || len(ids) > maxIDs {
		return refuse(http.StatusBadRequest, "ids holds "+strconv.Itoa(len(ids))+" message ids",
			"name 1 to "+strconv.Itoa(maxIDs)+" of them")
	}
	return nil
}

// deletion is the body of deleting messages: those of ids at once, or dead letters by a task.
type deletion struct {
	IDs []string `json:"ids,omitempty"`
	// Filter says which dead letters, {} for all.
	Filter *Selection `json:"filter,omitempty"`
	// Rate is 1 to 500 messages per second of a task; 0 means no limit.
	Rate int `json:"rate,omitempty"`
	// Confirm is the number of messages, as a person typed it, where that is more than one.
	Confirm int64 `json:"confirm,omitempty"`
}

func (d *deletion) check() error {
	switch {
	case d.Filter == nil:
		return checkIDs(d.IDs)
	case len(d.IDs) > 0:
		return refuse(http.StatusBadRequest, "messages are named by ids and by a filter", "give only one of them")
	}
	return checkSelection(d.Filter)
}

// confirmed refuses to delete more than one message when nobody has confirmed how many.
func (d *deletion) confirmed(n int64) error {
	if n <= 1 || d.Confirm == n {
		return nil
	}
	text := "this deletes " + strconv.FormatInt(n, 10) + " messages and cannot be undone: confirm it with their number"
	if d.Confirm != 0 {
		text = "the number that was confirmed is " + strconv.FormatInt(d.Confirm, 10) + ", but " +
			strconv.FormatInt(n, 10) + " messages would be deleted"
	}
	return refuse(http.StatusPreconditionRequired, text, `send "confirm":`+strconv.FormatInt(n, 10))
}

// checkSelection bounds the ids of a selection.
func checkSelection(sel *Selection) error {
	if sel.IDs == nil {
		return nil
	}
	return checkIDs(sel.IDs)
}

// deleted says what became of a deletion.
type deleted struct {
	// Deleted counts the messages of ids that there were.
	Deleted int `json:"deleted"`
	// Task is the task that deletes what a filter means.
	Task *MoveTask `json:"task,omitempty"`
}

func (d deleted) touched() int {
	if d.Task != nil {
		return d.Task.touched()
	}
	return d.Deleted
}

// limitOf reads ?limit, a whole number from 1 to most; without one it is standard.
func limitOf(r *http.Request, most, standard int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, refuse(http.StatusBadRequest, "limit "+strconv.Quote(text)+" is out of range",
			"use a whole number from 1 to "+strconv.Itoa(most))
	}
	return n, nil
}

// waitTime parses a duration from 0 to most; for "" it is standard.
func waitTime(text string, most, standard time.Duration) (time.Duration, error) {
	if text == "" {
		return standard, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > most {
		return 0, refuse(http.StatusBadRequest, "wait "+strconv.Quote(text)+" is out of range",
			"use a duration from 0s to "+most.String())
	}
	return wait, nil
}

// bounded returns a context that ends with parent, after wait, or when closed is done.
func bounded(parent, closed context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, wait)
	stop := context.AfterFunc(closed, cancel)
	return ctx, func() { stop(); cancel() }
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"encoding the answer failed"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

// The bodies and answers of routes that are not shown anywhere else.
type (
	// count is how many messages were "purged", "moved" or "deleted".
	count map[string]int

	queueList struct {
		Queues []Queue `json:"queues"`
	}

	creation struct {
		Name string `json:"name"`
		// Attributes are SQS attribute names and values.
		Attributes map[string]string `json:"attributes,omitempty"`
	}
	created struct {
		Name string `json:"name"`
		ARN  string `json:"arn"`
	}

	paused struct {
		Paused bool `json:"paused"`
	}
	taskPaused struct {
		Task   string `json:"task"`
		Paused bool   `json:"paused"`
	}

	drainRequest struct {
		Wait string `json:"wait"`
	}
	drained struct {
		// Drained is whether all work is settled and the process is ending.
		Drained bool `json:"drained"`
	}

	deployRequest struct {
		// Path is that of a folder or an archive; "" is what runs now.
		Path string `json:"path"`
	}
)
