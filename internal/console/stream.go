package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

const (
	maxStreams     = 64
	streamSilence  = 15 * time.Second
	streamWait     = 10 * time.Second
	streamedAtOnce = 100
)

type entry struct {
	id   int64
	body any
}

// stream is an endless response: the entries after an ID, as server-sent events.
type stream struct {
	after   int64
	changed func() <-chan struct{}
	read    func(eventlog.Range) ([]entry, error)
	// relay forwards the lines of another instance's stream. If relay is set, the other fields are unused.
	relay func(ctx context.Context, each func(line []byte) error) error
}

func isStream(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/event-stream" {
			return true
		}
	}
	return false
}

// newStream returns a stream that starts after Last-Event-ID or ?after, or with the next entry.
func newStream(c *call, newest int64, changed func() <-chan struct{},
	read func(eventlog.Range) ([]entry, error)) (any, error) {
	s := &stream{after: newest, changed: changed, read: read}
	text := cmp.Or(c.lastEventID, c.query.Get("after"))
	if text == "" {
		return s, nil
	}

	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return nil, api.BadRequest("Last-Event-ID "+strconv.Quote(text)+" is not an ID",
			"use an ID from the previous stream, or omit it")
	}
	s.after = id
	return s, nil
}

type streams struct{ open atomic.Int64 }

func (all *streams) send(w http.ResponseWriter, r *http.Request, s *stream, closed context.Context) {
	defer all.open.Add(-1)
	if all.open.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "10")
		writeJSON(w, http.StatusServiceUnavailable, api.NewError(http.StatusServiceUnavailable,
			strconv.Itoa(maxStreams)+" streams are open already", "close one, or omit Accept: text/event-stream"))
		return
	}

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(closed, cancel)()

	out := StartEvents(w)
	if s.relay == nil {
		s.follow(ctx, out)
		return
	}
	_ = s.relay(ctx, func(line []byte) error { // callers notice the end of the stream
		return out.Write(append(slices.Clip(line), '\n'))
	})
}

// EventWriter writes server-sent events to a response.
type EventWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// StartEvents starts a response of server-sent events, which may take longer than the server's limits.
func StartEvents(w http.ResponseWriter) EventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // an expired deadline would end the request; tests have no deadline
	return EventWriter{w, rc}
}

// Write sends data immediately. It waits for the client for at most 10 s.
func (e EventWriter) Write(data []byte) error {
	_ = e.rc.SetWriteDeadline(time.Now().Add(streamWait))
	if _, err := e.w.Write(data); err != nil {
		return err
	}
	return e.rc.Flush()
}

func (s *stream) follow(ctx context.Context, out EventWriter) {
	silence := time.NewTicker(streamSilence)
	defer silence.Stop()
	err := out.Write([]byte(": stream started\n\n"))
	for err == nil {
		changed := s.changed()
		data, readErr := s.next()
		if readErr != nil {
			return
		}
		if len(data) > 0 {
			err = out.Write(data)
			continue
		}

		select {
		case <-changed:
		case <-silence.C:
			err = out.Write([]byte(": alive\n\n"))
		case <-ctx.Done():
			return
		}
	}
}

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

// AppendEvent appends a server-sent event. Each line of text becomes its own data line; clients join them with line
// feeds.
func AppendEvent(to []byte, id int64, text []byte) []byte {
	to = append(to, "id: "...)
	to = strconv.AppendInt(to, id, 10)
	to = append(to, '\n')
	for more := true; more; {
		var line []byte
		line, text, more = cutLine(text)
		to = append(to, "data: "...)
		to = append(to, line...)
		to = append(to, '\n')
	}
	return append(to, '\n')
}

func cutLine(text []byte) (line, rest []byte, found bool) {
	end := bytes.IndexAny(text, "\r\n")
	if end < 0 {
		return text, nil, false
	}
	line, rest = text[:end], text[end:]
	if next, isCRLF := bytes.CutPrefix(rest, []byte("\r\n")); isCRLF {
		return line, next, true
	}
	return line, rest[1:], true
}
