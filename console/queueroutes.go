package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"tendril/broker"
	"tendril/queue"
)

// embedded returns the broker, or the refusal of an environment without one.
func (s *Server) embedded() (*broker.Broker, error) {
	if s.opts.Broker == nil {
		return nil, refuse(http.StatusConflict, "this environment uses Amazon SQS: the console holds no queues of its own",
			"name the queue by its URL, as in 'tendril peek URL', or look at it in Amazon SQS")
	}
	return s.opts.Broker, nil
}

// queueList is the answer of /api/v1/queues.
type queueList struct {
	Queues []Queue `json:"queues"`
}

func (s *Server) getQueues(*http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	queues, err := listQueues(b, s.environment().Workers)
	return ok(queueList{queues}), err
}

func (s *Server) getQueue(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	name := r.PathValue("name")
	q, attributes, err := readQueue(b, name, s.environment().Workers)
	if err != nil {
		return answer{}, err
	}
	q.Attributes = attributes
	q.DeadLetterSources, err = b.DeadLetterSources(name)
	return ok(q), err
}

// listQueues returns every embedded queue, without attributes.
func listQueues(b *broker.Broker, workers []Worker) ([]Queue, error) {
	queues := []Queue{}
	for _, name := range b.ListQueues("") {
		q, _, err := readQueue(b, name, workers)
		if errors.Is(err, queue.ErrNoQueue) {
			continue // deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

func readQueue(b *broker.Broker, name string, workers []Worker) (Queue, map[string]string, error) {
	attributes, err := b.Attributes(name)
	if err != nil {
		return Queue{}, nil, err
	}
	ledger, err := b.Ledger(name)
	if err != nil {
		return Queue{}, nil, err
	}
	oldest, err := b.OldestAge(name)
	if err != nil {
		return Queue{}, nil, err
	}
	q := Queue{Name: name, ARN: b.ARN(name), Ledger: ledger, OldestSeconds: oldest.Seconds()}
	q.FIFO = attributes["FifoQueue"] == "true"
	q.DeadLetterQueue, q.MaxReceives = ParseRedrivePolicy(attributes["RedrivePolicy"])
	for _, w := range workers {
		if w.Queue == name {
			q.Paused, q.PauseReason = w.Paused, w.PauseReason
		}
	}
	return q, attributes, nil
}

// ParseRedrivePolicy returns the name of the dead-letter queue and the
// maxReceiveCount of a RedrivePolicy attribute; "" and 0 where it has none.
func ParseRedrivePolicy(policy string) (deadLetterQueue string, maxReceives int) {
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return "", 0
	}
	maxReceives, _ = strconv.Atoi(strings.Trim(string(p.Max), `"`))
	return p.Target[strings.LastIndexByte(p.Target, ':')+1:], maxReceives
}

// messagePage is the answer of /api/v1/queues/{name}/messages.
type messagePage struct {
	Messages []Message `json:"messages"`
	// Next is the value of after for the next page; "" at the end. A page may
	// hold fewer messages than its limit and still have a next one.
	Next string `json:"next,omitempty"`
}

// A page ends early once its bodies fill pageBytes, so that a page of large
// messages cannot fill the memory: first a few messages are read, then more at
// once while they are small.
const (
	pageBytes  = 4 << 20
	firstChunk = 8
	nextChunk  = 32
)

func (s *Server) getMessages(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	req, err := browseRequest(r)
	if err != nil {
		return answer{}, err
	}
	page := messagePage{Messages: []Message{}, Next: req.After}
	for size, left, chunk := 0, req.Limit, firstChunk; size < pageBytes && left > 0; chunk = nextChunk {
		req.After, req.Limit = page.Next, min(left, chunk)
		stored, next, err := b.Browse(r.Context(), r.PathValue("name"), req)
		if err != nil {
			return answer{}, err
		}
		for i := range stored {
			page.Messages = append(page.Messages, fromStored(&stored[i]))
			size += len(stored[i].Body)
		}
		left -= len(stored)
		if page.Next = next; next == "" {
			break
		}
	}
	return ok(page), nil
}

func browseRequest(r *http.Request) (broker.BrowseRequest, error) {
	query := r.URL.Query()
	req := broker.BrowseRequest{Match: query.Get("match"), After: query.Get("after")}
	switch state := query.Get("state"); state {
	case "":
	case MessageVisible:
		req.State = broker.Visible
	case MessageDelayed:
		req.State = broker.Delayed
	case MessageInFlight, string(broker.InFlight):
		req.State = broker.InFlight
	default:
		return req, refuse(http.StatusBadRequest, "state "+strconv.Quote(state)+" is not known",
			"use visible, delayed or in_flight")
	}
	limit, err := count(query.Get("limit"), 1, 1000)
	req.Limit = cmp.Or(limit, 100)
	return req, err
}

// count reads a whole number of a query; "" is 0.
func count(text string, low, high int) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, refuse(http.StatusBadRequest, "limit "+strconv.Quote(text)+" is out of range",
			"use a whole number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
	return n, nil
}

func (s *Server) getMessage(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	stored, err := b.Message(r.Context(), r.PathValue("name"), r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	return ok(fromStored(&stored)), nil
}

// maxIDs bounds the messages of one act, maxReason the bytes of a reason.
const (
	maxIDs    = 1000
	maxReason = 200
	// maxValues bounds the JSON values of one request: the largest send, ten
	// messages with ten attributes each, has less than a thousand, and so many ids
	// as one act may name are a thousand.
	maxValues = 10_000
)

// readBody reads a JSON object with known fields only; an empty body is {}.
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
		return refuse(http.StatusBadRequest, "the request could not be read to its end", "send it again")
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
		return refuse(http.StatusBadRequest, "the request is not understood: "+err.Error(),
			"send one JSON object with known fields")
	}
	return nil
}

// countValues counts the values in a JSON text; what is no JSON has any number.
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

// readReason reads {"reason": "..."}.
func readReason(r *http.Request) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := readBody(r, &body); err != nil {
		return "", err
	}
	if len(body.Reason) > maxReason || !utf8.ValidString(body.Reason) {
		return "", refuse(http.StatusBadRequest, "the reason is longer than "+strconv.Itoa(maxReason)+" bytes",
			"say it in a few words")
	}
	return body.Reason, nil
}

// paused is the answer of pausing and resuming.
type paused struct {
	Paused bool `json:"paused"`
}

func noWorker() error {
	return refuse(http.StatusConflict, "this process has no worker: it serves queues only",
		"pause the environment that works on the queue, where 'tendril up' runs")
}

func (s *Server) postPause(r *http.Request) (answer, error) { return s.pause(r, r.PathValue("name")) }
func (s *Server) postQuiet(r *http.Request) (answer, error) { return s.pause(r, "") }

func (s *Server) pause(r *http.Request, name string) (answer, error) {
	if s.opts.Pause == nil {
		return answer{}, noWorker()
	}
	reason, err := readReason(r)
	if err != nil {
		return answer{}, err
	}
	return ok(paused{true}), unable(s.opts.Pause(name, reason))
}

func (s *Server) postResume(r *http.Request) (answer, error)    { return s.resume(r, r.PathValue("name")) }
func (s *Server) postResumeAll(r *http.Request) (answer, error) { return s.resume(r, "") }

func (s *Server) resume(r *http.Request, name string) (answer, error) {
	if s.opts.Resume == nil {
		return answer{}, noWorker()
	}
	if err := readBody(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	return ok(paused{false}), unable(s.opts.Resume(name))
}

// unable turns the plain error of an environment that cannot do an act into a
// refusal that is not the console's fault.
func unable(err error) error {
	var own *Error
	var refused *queue.Error
	if err == nil || errors.As(err, &own) || errors.As(err, &refused) {
		return err
	}
	return refuse(http.StatusConflict, err.Error(), "GET /api/v1/status shows which queue the environment works on")
}

// counted is the answer of acts on messages; one field is set.
type counted struct {
	Purged  *int `json:"purged,omitempty"`
	Moved   *int `json:"moved,omitempty"`
	Deleted *int `json:"deleted,omitempty"`
}

func (s *Server) postPurge(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	if err := readBody(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	n, err := b.PurgeQueue(r.Context(), r.PathValue("name"))
	return ok(counted{Purged: &n}), err
}

// selection is the body of acts on chosen messages.
type selection struct {
	IDs []string `json:"ids"`
	// To is the name of the queue to move to; "" means the one that each
	// message was dead-lettered from.
	To string `json:"to,omitempty"`
}

func readSelection(r *http.Request) (selection, error) {
	var sel selection
	if err := readBody(r, &sel); err != nil {
		return sel, err
	}
	if len(sel.IDs) == 0 || len(sel.IDs) > maxIDs {
		return sel, refuse(http.StatusBadRequest, "ids holds "+strconv.Itoa(len(sel.IDs))+" message ids",
			"name 1 to "+strconv.Itoa(maxIDs)+" of them")
	}
	return sel, nil
}

func (s *Server) postMove(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	sel, err := readSelection(r)
	if err != nil {
		return answer{}, err
	}
	if sel.To != "" {
		if _, err := b.Ledger(sel.To); err != nil {
			return answer{}, refuse(http.StatusNotFound, "there is no queue "+strconv.Quote(sel.To)+" to move to",
				hintOf(queue.CodeQueueDoesNotExist))
		}
	}
	n, err := b.Move(r.Context(), r.PathValue("name"), sel.To, sel.IDs)
	return ok(counted{Moved: &n}), err
}

func (s *Server) postDelete(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	sel, err := readSelection(r)
	if err != nil {
		return answer{}, err
	}
	if sel.To != "" {
		return answer{}, refuse(http.StatusBadRequest, `"to" means nothing when messages are deleted`,
			"leave it out, or use /move")
	}
	n, err := b.DeleteMessages(r.Context(), r.PathValue("name"), sel.IDs)
	return ok(counted{Deleted: &n}), err
}

func (s *Server) deleteMessage(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	name, id := r.PathValue("name"), r.PathValue("id")
	n, err := b.DeleteMessages(r.Context(), name, []string{id})
	if err == nil && n == 0 {
		return answer{}, refuse(http.StatusNotFound, "queue "+name+" holds no message "+strconv.Quote(id),
			"it may have been delivered since")
	}
	return ok(counted{Deleted: &n}), err
}
