package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/testing/testpeer"
)

// Once identified, poison messages must not slow down other messages. TENDRIL_POISON sets the number of messages; one
// in a hundred is poison.
func TestOnlyPoisonMessagesAreDeadLettered(t *testing.T) {
	minutes(t)
	t.Parallel()
	resume(t)
	messages := testpeer.Size(2_000, 10_000)
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_POISON")); err == nil {
		messages = n
	}
	const known, per = 10, 6_000
	poison := func(i int) bool { return i%100 == 42 }
	body := func(i int) string {
		if poison(i) {
			return fmt.Sprintf("poison %d", i)
		}
		return fmt.Sprintf("5ms %d", i)
	}
	journal, data := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	p, started := start(t, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t), "--name", "jobs",
		"--http-connections", "10", "--visibility-timeout", "20", "--error-visibility-timeout", "2", "--max-retries", "6",
		"--shutdown-timeout", "30s",
		writeBundle(t, map[string]string{"Procfile": appLine(journal, "1")}))
	awaitWeb(t, p)
	c := client(started.Endpoint)
	began := time.Now()
	preload(t, c, started.QueueURL, messages, body)
	awaitQuiet(t, started)
	all := time.Since(began)

	good, deaths := newLines(t, journal), newLines(t, deathsOf(journal))
	pace := func(what string) (perSecond float64, died int) {
		const n = per
		began, before, diedBefore := time.Now(), good.count(), deaths.count()
		preload(t, c, started.QueueURL, n, func(i int) string { return fmt.Sprintf("5ms %s %d", what, i) })
		for good.count() < before+n {
			time.Sleep(5 * time.Millisecond)
		}
		return n / time.Since(began).Seconds(), deaths.count() - diedBefore
	}
	var beside, alone float64
	died, paces := 0, 0
	for ; paces < 3 && (paces == 0 || beside < 0.5*alone); paces++ { // other load can slow one of them down
		for i := range known {
			sendBody(t, started, fmt.Sprintf("poison again %d", i))
		}
		awaitPoisonFound(t, started, known)
		beside, died = pace("beside")
		awaitQuiet(t, started)
		alone, _ = pace("alone")
		awaitQuiet(t, started)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	times, _ := readJournal(t, journal)
	dead, innocent := 0, 0
	for _, m := range stored(t, data, "jobs-dead") {
		dead++
		if !strings.HasPrefix(m.Body, "poison") {
			innocent++
		}
	}
	done := len(times)
	report(t, "%d messages, %d of them poison, in %v: %d done, %d dead-lettered (with those sent again), of which "+
		"innocent %d; good messages flow at %.0f/s beside poison messages, of which the app died %d times meanwhile, "+
		"and %.0f/s alone, %.0f %%",
		messages, messages/100, all.Round(time.Second), done, dead, innocent, beside, died, alone, 100*beside/alone)
	wantDone, wantDead := messages-messages/100+2*per*paces, messages/100+known*paces
	if done != wantDone || dead != wantDead || innocent != 0 {
		t.Errorf("%d done, %d dead of which %d innocent; want %d, %d, 0", done, dead, innocent, wantDone, wantDead)
	}
	if died == 0 {
		t.Error("no killer was tried beside the good messages: nothing was measured")
	}
	if beside < 0.5*alone { // lenient, because the machine may be busy
		t.Errorf("good messages flow at %.0f %% beside poison messages", 100*beside/alone)
	}
}

func awaitPoisonFound(t *testing.T, started event, n int) {
	t.Helper()
	for range 15000 {
		resp, err := http.Get(started.Console + "/api/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		var status struct{ Isolation *api.PoisonMessages }
		err = json.NewDecoder(resp.Body).Decode(&status)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if status.Isolation != nil && status.Isolation.Poison >= n {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the poison messages were not found within five minutes")
}

type lines struct {
	t    *testing.T
	file *os.File
	n    int
	buf  []byte
}

func newLines(t *testing.T, path string) *lines {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &lines{t: t, file: file, buf: make([]byte, 64<<10)}
}

func (l *lines) count() int {
	l.t.Helper()
	for {
		n, err := l.file.Read(l.buf)
		l.n += bytes.Count(l.buf[:n], []byte("\n"))
		switch {
		case err == io.EOF:
			return l.n
		case err != nil:
			l.t.Fatal(err)
		}
	}
}

func awaitQuiet(t *testing.T, started event) {
	t.Helper()
	c := client(started.Endpoint)
	for range 3000 {
		a := attributes(t.Context(), t, c, started.QueueURL)
		if a["ApproximateNumberOfMessages"] == "0" && a["ApproximateNumberOfMessagesNotVisible"] == "0" &&
			a["ApproximateNumberOfMessagesDelayed"] == "0" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the queue was not empty within five minutes")
}
