package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

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
