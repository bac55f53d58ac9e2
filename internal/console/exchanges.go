package console

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/api"
)

const (
	keptExchanges   = 256
	keptBytes       = 8 << 20
	maxExchangeBody = 64 << 10
)

type exchanges struct {
	until atomic.Int64 // Unix nanoseconds; 0 before the first recording
	mu    sync.Mutex
	kept  []api.Exchange
	bytes int
}

// RecordExchanges starts a recording of at most [api.MaxRecording], or extends the current one, and returns its end. A
// new recording discards previous exchanges.
func (ds *Deliveries) RecordExchanges(span time.Duration) time.Time {
	x := &ds.exchanges
	x.mu.Lock()
	defer x.mu.Unlock()
	if !ds.RecordsExchanges() {
		x.kept, x.bytes = nil, 0
	}
	until := time.Now().Add(min(span, api.MaxRecording))
	x.until.Store(max(x.until.Load(), until.UnixNano()))
	return time.Unix(0, x.until.Load())
}

// RecordsExchanges reports whether recording is on.
func (ds *Deliveries) RecordsExchanges() bool {
	until := ds.exchanges.until.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// AddExchange adds an exchange, evicting the oldest ones if a limit is exceeded.
func (ds *Deliveries) AddExchange(one api.Exchange) {
	one.BodySize = len(one.Body)
	one.Body = strings.Clone(one.Body[:min(len(one.Body), maxExchangeBody)]) // a slice would keep the whole body
	x := &ds.exchanges
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = append(x.kept, one)
	x.bytes += sizeOf(&one)
	for len(x.kept) > keptExchanges || x.bytes > keptBytes {
		x.bytes -= sizeOf(&x.kept[0])
		x.kept[0] = api.Exchange{} // releases the bodies
		x.kept = x.kept[1:]
	}
}

func sizeOf(x *api.Exchange) int { return len(x.Body) + len(x.AnswerBody) }

// Exchange returns a message's latest exchange.
func (ds *Deliveries) Exchange(id string) (api.Exchange, bool) {
	x := &ds.exchanges
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := len(x.kept) - 1; i >= 0; i-- {
		if x.kept[i].MessageID == id {
			return x.kept[i], true
		}
	}
	return api.Exchange{}, false
}

func (e *environmentRoutes) recordExchanges(_ *call, body api.RecordRequest) (api.Recording, error) {
	span, err := time.ParseDuration(body.For)
	if err != nil || span <= 0 || span > api.MaxRecording {
		return api.Recording{}, api.BadRequest(`"for" `+strconv.Quote(body.For)+" is out of range",
			"use a duration up to "+api.MaxRecording.String())
	}
	return api.Recording{Until: e.opts.Deliveries.RecordExchanges(span)}, nil
}

func (e *environmentRoutes) getExchange(c *call) (api.Exchange, error) {
	x, found := e.opts.Deliveries.Exchange(c.id)
	if !found {
		return api.Exchange{}, api.NotFound("no exchange of message "+strconv.Quote(c.id)+" is stored",
			"exchanges are only recorded after POST /api/v1/exchanges; post the message with 'tendril replay'")
	}
	return x, nil
}
