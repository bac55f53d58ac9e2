package environment

import (
	"bytes"
	"encoding/json"
	"log"
	"log/slog"
	"testing"
)

func TestConnectionsLeaveDescriptorsForTheWorker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ descriptors, deliveries, endpoint, console int }{
		{100, 58, 8, 8},
		{0, 58, 8, 8},
		{256, 58, 112, 18},
		{1024, 58, 688, 114},
		{1024, 1008, 8, 8},
		{1 << 20, 58, 16384, 256},
	} {
		endpoint, console := connectionShares(c.descriptors, c.deliveries)
		if endpoint != c.endpoint || console != c.console {
			t.Errorf("%d descriptors, %d for deliveries: %d and %d", c.descriptors, c.deliveries, endpoint, console)
		}
	}
}

func TestServerErrorsAreLogEvents(t *testing.T) {
	t.Parallel()
	for line, level := range map[string]string{
		"http: panic serving 127.0.0.1:1: oops\ngoroutine 1":       "WARN",
		"http: TLS handshake error from 127.0.0.1:1: EOF":          "DEBUG",
		"http: Accept error: too many open files; retrying in 5ms": "WARN",
	} {
		var out bytes.Buffer
		to := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		log.New(errorLog{to.With("component", "the console")}, "", 0).Print(line)
		var event struct{ Level, Msg, Component, Error string }
		if err := json.Unmarshal(out.Bytes(), &event); err != nil {
			t.Fatalf("%v: %q", err, out.String())
		}
		if event.Msg != "http server error" || event.Level != level || event.Component != "the console" ||
			event.Error != line {
			t.Errorf("%q became %+v", line, event)
		}
	}
}
