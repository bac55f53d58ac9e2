package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

const (
	maxStreams     = 64               // at once
	streamSilence  = 15 * time.Second // the longest, for proxies
	streamWait     = 10 * time.Second // for one write; a slower reader is let go
	streamedAtOnce = 100
)

// entry is one event of a stream.
type entry struct {
	id   int64
	body any
}

// stream is an answer that does not end: what follows an id, as server-sent events.
type stream struct {
	after   int64
	changed func() <-chan struct{}
	read    func(eventlog.Range) ([]entry, error)
}

// isStream reports whether a caller asks for a stream.
func isStream(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/event-stream" {
			return true
		}
	}
	return false
}

// newStream returns the stream of what read selects. It begins after the id that the caller saw last, or else with
// what comes next; all reads without a filter.
func newStream(c *call, changed func() <-chan struct{}, read,
	all func(eventlog.Range) ([]entry, error)) (any, error) {
	s := &stream{changed: changed, read: read}
	for _, text := range []string{c.lastEventID, c.query.Get("after")} {
		if text == "" {
			continue
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 0 {
			return nil, api.NewError(http.StatusBadRequest, "Last-Event-ID "+strconv.Quote(text)+" is no id",
				"use an id of the stream before, or none")
		}
		s.after = id
		return s, nil
	}
	newest, err := all(eventlog.Range{Newest: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(newest) > 0 {
		s.after = newest[0].id
	}
	return s, nil
}

// streams counts those that are open.
type streams struct{ open atomic.Int64 }

// send sends a stream until the reader is gone or ended is done.
func (c *streams) send(w http.ResponseWriter, r *http.Request, s *stream, ended <-chan struct{}) {
	defer c.open.Add(-1)
	if c.open.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "10")
		writeJSON(w, http.StatusServiceUnavailable, api.NewError(http.StatusServiceUnavailable,
			strconv.Itoa(maxStreams)+" streams are open already", "close one, or ask without Accept: text/event-stream"))
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // its end would end the request; a test's writer has none
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	write := func(data []byte) bool {
		_ = rc.SetWriteDeadline(time.Now().Add(streamWait))
		_, err := w.Write(data)
		return errors.Join(err, rc.Flush()) == nil
	}
	silence := time.NewTicker(streamSilence)
	defer silence.Stop()
	for ok := write([]byte(": the stream begins\n\n")); ok; {
		changed := s.changed()
		data, err := s.next()
		switch {
		case err != nil:
			return
		case len(data) > 0:
			ok = write(data)
			continue
		}
		select {
		case <-changed:
		case <-silence.C:
			ok = write([]byte(": alive\n\n"))
		case <-r.Context().Done():
			return
		case <-ended:
			return
		}
	}
}

// next returns the events that follow, as they are sent; nothing when there is none yet.
func (s *stream) next() (data []byte, err error) {
	entries, err := s.read(eventlog.Range{After: s.after, Limit: streamedAtOnce})
	for _, e := range entries {
		body, err := json.Marshal(e.body)
		if err != nil {
			return nil, err
		}
		data = AppendEvent(data, e.id, body)
		s.after = e.id
	}
	return data, err
}

// AppendEvent appends a server-sent event with a text as its data. Lines of such a stream end with CR, LF or both, so
// that a text which holds one of them takes several; a reader gets a line feed for each.
func AppendEvent(to []byte, id int64, text []byte) []byte {
	to = append(strconv.AppendInt(append(to, "id: "...), id, 10), '\n')
	for rest := text; ; {
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			end = len(rest)
		}
		to = append(append(append(to, "data: "...), rest[:end]...), '\n')
		if end == len(rest) {
			return append(to, '\n')
		}
		if next := end + 1; rest[end] == '\r' && next < len(rest) && rest[next] == '\n' {
			end = next
		}
		rest = rest[end+1:]
	}
}
