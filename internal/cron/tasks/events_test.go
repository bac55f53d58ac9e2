package tasks

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tendril/internal/cron/periodic"
)

func TestFailedRunIsLoggedWithoutARetryThatDoesNotCome(t *testing.T) {
	t.Parallel()
	for retry, want := range map[time.Duration]string{0: "run_id=r err=lost", time.Second: "run_id=r retry_in=1s err=lost"} {
		var text strings.Builder
		events := schedulerEvents(slog.New(slog.NewTextHandler(&text, nil)), periodic.Events{}, nil)
		events.Failed(periodic.Failed{Task: "a", ID: "r", Err: errors.New("lost"), Retry: retry})
		if !strings.Contains(text.String(), want) {
			t.Errorf("retry %s: %s, want %s", retry, text.String(), want)
		}
	}
}
