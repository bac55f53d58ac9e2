package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tendril/internal/observe/eventlog"
)

// Events returns the events that f selects.
func (c *Client) Events(ctx context.Context, f EventFilter) ([]eventlog.Event, error) {
	list, err := ask[EventList](ctx, c.conn, "GET /api/v1/events?"+f.query(), nil)
	return list.Events, err
}

// FollowEvents calls each for the events that f selects, as they come: those that follow f.After, or for 0 those that
// happen from now on. It returns the error of each, nil when the environment ends the stream, or why there is no
// stream.
func (c *Client) FollowEvents(ctx context.Context, f EventFilter, each func(eventlog.Event) error) error {
	return followStream(ctx, c.conn, "GET /api/v1/events?"+f.query(), each)
}

// Logs returns the lines of the log that f selects.
func (c *Client) Logs(ctx context.Context, f LineFilter) ([]eventlog.Line, error) {
	list, err := ask[LineList](ctx, c.conn, "GET /api/v1/logs?"+f.query(), nil)
	return list.Lines, err
}

// FollowLogs is FollowEvents for lines of the log.
func (c *Client) FollowLogs(ctx context.Context, f LineFilter, each func(eventlog.Line) error) error {
	return followStream(ctx, c.conn, "GET /api/v1/logs?"+f.query(), each)
}

// followStream calls each for what a stream sends.
func followStream[T any](ctx context.Context, c *connection, pattern string, each func(T) error) error {
	req, err := c.request(ctx, pattern, nil, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unanswered(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
		return c.decode(resp.StatusCode, data, nil)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, MaxBody)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue // an id, a comment, or the end of an event
		}
		var e T
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("decoding the stream of the console at %s: %w", c.instance.Console, err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return c.unanswered(err)
	}
	return ctx.Err()
}
