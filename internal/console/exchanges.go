package console

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the exchanges that are remembered.
const (
	maxRecording  = 5 * time.Minute // after one request to record
	keptExchanges = 256
	keptBytes     = 8 << 20 // of bodies
	// maxExchangeBody is how much of the body of a request is remembered.
	maxExchangeBody = 64 << 10
)

// Exchange is the request that was posted for a message, and the answer of the app. Values of headers that may be
// secrets are hidden.
type Exchange struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue,omitempty"`
	// URL is where the request went; Request its first line and its headers, Body what follows, at most 64 KiB of it.
	URL     string   `json:"url,omitempty"`
	Request []string `json:"request"`
	Body    string   `json:"body"`
	// BodySize is the size of the whole body.
	BodySize int `json:"body_size"`
	// BodyHidden is whether the bodies and the headers are left out since bodies are shown on request only.
	BodyHidden bool `json:"body_hidden,omitempty"`
	// Answer is the first line and the headers of the answer, none where there was none; AnswerBody the first 16 KiB
	// of its body.
	Answer     []string  `json:"answer,omitempty"`
	AnswerBody string    `json:"answer_body,omitempty"`
	Error      string    `json:"error,omitempty"` // why there is no whole answer
	At         time.Time `json:"at"`              // when the request began
	DurationMS int64     `json:"duration_ms"`
}

func (x Exchange) touched() int { return 1 }

func (x Exchange) withoutBodies() any {
	x.Request, x.Answer = x.Request[:min(1, len(x.Request))], x.Answer[:min(1, len(x.Answer))]
	x.Body, x.AnswerBody, x.BodyHidden = "", "", true
	return x
}

// exchanges remembers the most recent exchanges while somebody asked for that.
type exchanges struct {
	until atomic.Int64 // when recording ends, in nanoseconds since 1970; 0 before the first
	mu    sync.Mutex
	kept  []Exchange
	bytes int
}

// RecordExchanges has exchanges recorded for a time from now, at most five minutes, and returns its end. Those that
// were recorded before that are forgotten when nothing was being recorded.
func (ds *Deliveries) RecordExchanges(span time.Duration) time.Time {
	x := &ds.exchanges
	x.mu.Lock()
	defer x.mu.Unlock()
	if !ds.RecordsExchanges() {
		x.kept, x.bytes = nil, 0
	}
	until := time.Now().Add(min(span, maxRecording))
	x.until.Store(max(x.until.Load(), until.UnixNano()))
	return time.Unix(0, x.until.Load())
}

// RecordsExchanges reports whether exchanges are recorded now.
func (ds *Deliveries) RecordsExchanges() bool {
	until := ds.exchanges.until.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// AddExchange remembers an exchange, and forgets the oldest ones where there are too many.
func (ds *Deliveries) AddExchange(one Exchange) {
	one.BodySize = len(one.Body)
	one.Body = one.Body[:min(len(one.Body), maxExchangeBody)]
	x := &ds.exchanges
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = append(x.kept, one)
	x.bytes += one.size()
	for len(x.kept) > keptExchanges || x.bytes > keptBytes {
		x.bytes -= x.kept[0].size()
		x.kept = x.kept[1:]
	}
}

func (x *Exchange) size() int { return len(x.Body) + len(x.AnswerBody) }

// Exchange returns the most recent exchange of a message that is remembered; false for none.
func (ds *Deliveries) Exchange(id string) (Exchange, bool) {
	x := &ds.exchanges
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := len(x.kept) - 1; i >= 0; i-- {
		if x.kept[i].MessageID == id {
			return x.kept[i], true
		}
	}
	return Exchange{}, false
}

// The body and the answer of the request to record exchanges.
type (
	recordRequest struct {
		// For is how long exchanges are recorded, up to 5m.
		For string `json:"for"`
	}
	recording struct {
		Until time.Time `json:"until"`
	}
)

func (e *environmentRoutes) recordExchanges(_ *http.Request, body recordRequest) (any, error) {
	span, err := time.ParseDuration(body.For)
	if err != nil || span <= 0 || span > maxRecording {
		return nil, refuse(http.StatusBadRequest, "for "+strconv.Quote(body.For)+" is out of range",
			"use a duration up to "+maxRecording.String())
	}
	return recording{e.opts.Deliveries.RecordExchanges(span)}, nil
}

func (e *environmentRoutes) getExchange(r *http.Request) (any, error) {
	id := r.PathValue("id")
	x, found := e.opts.Deliveries.Exchange(id)
	if !found {
		return nil, refuse(http.StatusNotFound, "no exchange of message "+strconv.Quote(id)+" is remembered",
			"exchanges are recorded after POST /api/v1/exchanges only; post the message with 'tendril replay'")
	}
	return x, nil
}

// RecordExchanges has the environment remember what it posts, and the answers, for a time of up to five minutes.
func (c messageClient) RecordExchanges(ctx context.Context, span time.Duration) error {
	return command(ctx, c.conn, "POST /api/v1/exchanges", recordRequest{min(span, maxRecording).String()})
}

// Exchange returns what was posted last for a message, and the answer. The error has status 404 where none is
// remembered.
func (c messageClient) Exchange(ctx context.Context, id string) (Exchange, error) {
	return ask[Exchange](ctx, c.conn, "GET /api/v1/messages/{id}/exchange?body=1", nil, id)
}
