package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"tendril/api"
	"tendril/queue"
)

const (
	maxIDs       = 1000
	maxReason    = 200
	maxLimit     = 1000
	defaultLimit = 100
	// The largest send has fewer than a thousand JSON values, and the largest selection a thousand IDs.
	maxValues = 10_000
)

type httpBody struct {
	w http.ResponseWriter
	r *http.Request
}

func (b httpBody) accept(rt *route) error {
	r := b.r
	if rt.kind.isHook() && r.Method == http.MethodHead {
		return api.NotFound("HEAD "+r.URL.Path+" not found",
			"webhooks do not support HEAD: send GET or POST")
	}

	isEmpty := r.Method == http.MethodDelete && r.ContentLength == 0
	if rt.kind.acts() && !rt.kind.isHook() && !isEmpty {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return api.NewError(http.StatusUnsupportedMediaType, "this request must be JSON",
				"send the header Content-Type: application/json, and {} as an empty body")
		}
	}

	if rt.limit > 0 {
		b.extendDeadlines(rt.limit + api.MaxWait)
	}
	return nil
}

// Exceeding the read deadline would cancel the handler.
func (b httpBody) extendDeadlines(span time.Duration) {
	until := time.Now().Add(span)
	rc := http.NewResponseController(b.w)
	// Response writers in tests have no deadlines.
	_ = rc.SetReadDeadline(until)
	_ = rc.SetWriteDeadline(until)
}

func checkBody(body any) error {
	switch b := body.(type) {
	case *api.Reason:
		return checkReason(b)
	case *api.MoveRequest:
		return checkReferences("ids", b.IDs)
	case *api.Receipts:
		return checkReferences("receipts", b.Receipts)
	case *api.Deletion:
		return checkDeletion(b)
	case *api.RedriveRequest:
		return checkSelection(&b.Filter)
	case *api.ReceiveRequest:
		return checkReceive(b)
	case *api.SettingsChange:
		return checkChange(b)
	case *api.RollbackRequest:
		return checkRollback(b)
	case *api.LoginRequest:
		return api.CheckScopes(b.Scopes)
	}
	return nil
}

func (b httpBody) read(into any) error {
	var body bytes.Buffer
	_, err := body.ReadFrom(b.r.Body)
	var tooLarge *http.MaxBytesError
	var throttled *queue.Error
	switch {
	case errors.As(err, &tooLarge):
		return api.NewError(http.StatusRequestEntityTooLarge, "the request is larger than "+strconv.Itoa(api.MaxBody)+" bytes",
			"send less at once")
	case errors.As(err, &throttled):
		return throttled
	case err != nil:
		return api.BadRequest("the request is incomplete", "send it again")
	}

	if !utf8.Valid(body.Bytes()) { // the decoder would replace invalid bytes
		return api.BadRequest("the request is not valid UTF-8", "send bytes as a Binary attribute, or encode them with base64")
	}
	// Decoding can take a hundred times the memory of the text.
	if countValues(body.Bytes()) > maxValues {
		return api.BadRequest("the request holds more than "+strconv.Itoa(maxValues)+" JSON values",
			"send less at once")
	}

	if err := decodeOne(&body, into); err != nil {
		return api.BadRequest("invalid request: "+err.Error(),
			"send one JSON object; GET /api/v1/openapi.json describes its fields")
	}
	return nil
}

func decodeOne(text io.Reader, into any) error {
	dec := json.NewDecoder(text)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) { // an empty body
		return nil
	}
	if err == nil && dec.More() {
		return errors.New("more than one JSON value")
	}
	return err
}

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

func confirm(c api.Confirmation, name string) error {
	if c.Confirm == name {
		return nil
	}
	return api.NewError(http.StatusPreconditionRequired, "this cannot be undone: confirm it with the name of the queue",
		`send {"confirm":`+strconv.Quote(name)+`}`)
}

func checkReason(r *api.Reason) error {
	if len(r.Reason) > maxReason || !utf8.ValidString(r.Reason) {
		return api.BadRequest("the reason is longer than "+strconv.Itoa(maxReason)+" bytes", "shorten it")
	}
	return nil
}

func checkReferences(field string, list []string) error {
	if len(list) == 0 || len(list) > maxIDs {
		return api.BadRequest(fmt.Sprintf("%q has %d entries", field, len(list)), fmt.Sprintf("send 1 to %d", maxIDs))
	}
	return nil
}

func checkDeletion(d *api.Deletion) error {
	switch {
	case d.Filter == nil:
		return checkReferences("ids", d.IDs)
	case len(d.IDs) > 0:
		return api.BadRequest("messages are selected by both IDs and a filter", "use only one of them")
	}
	return checkSelection(d.Filter)
}

func confirmCount(d *api.Deletion, n int64) error {
	if n <= 1 || d.Confirm == n {
		return nil
	}
	text := fmt.Sprintf("this deletes %d messages and cannot be undone: confirm it with their number", n)
	if d.Confirm != 0 {
		text = fmt.Sprintf("the confirmed number is %d, but %d messages would be deleted", d.Confirm, n)
	}
	return api.NewError(http.StatusPreconditionRequired, text, fmt.Sprintf(`send "confirm":%d`, n))
}

func checkSelection(sel *api.Selection) error {
	switch {
	case sel.Attribute == "" && sel.Value != "":
		return api.BadRequest("the filter has a value without an attribute", `add "attribute", the attribute's name`)
	case sel.IDs != nil:
		return checkReferences("ids", sel.IDs)
	}
	return nil
}

func readLimit(c *call, most int) (int, error) {
	text := c.query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, api.BadRequest(fmt.Sprintf("limit %q is out of range", text), fmt.Sprintf("use a whole number from 1 to %d", most))
	}
	return n, nil
}

func parseWait(text string, most, fallback time.Duration) (time.Duration, error) {
	if text == "" {
		return fallback, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > most {
		return 0, api.BadRequest("wait "+strconv.Quote(text)+" is out of range",
			"use a duration from 0s to "+most.String())
	}
	return wait, nil
}

// notNull returns a copy that is [] in JSON if list is empty.
func notNull[T any](list []T) []T { return append([]T{}, list...) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"encoding the response failed"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}
