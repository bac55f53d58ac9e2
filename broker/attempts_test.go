package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"tendril/internal/testing/faultfs"
	"tendril/queue"
)

func failing(status int, answer string) Attempt {
	return Attempt{At: time.Now(), Instance: "here", Outcome: queue.Failed.String(), Status: status, Answer: answer,
		Reason: fmt.Sprint("status ", status), Duration: 3 * time.Millisecond, ReceiveCount: 1}
}

func storedMessage(t testing.TB, b *Broker, name, id string) Stored {
	t.Helper()
	s, err := b.Message(context.Background(), name, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func answersOf(s Stored) (answers []string) {
	for _, a := range s.Attempts {
		answers = append(answers, a.Answer)
	}
	return answers
}

func withDeadLetters(t testing.TB, b *Broker) *Queue {
	t.Helper()
	create(t, b, "dead", nil)
	return create(t, b, "work", map[string]string{"VisibilityTimeout": "0",
		"RedrivePolicy": policy(b, "dead", 1)})
}

func checkAttempts(t interface{ Errorf(string, ...any) }, b *Broker) {
	b.attempts.flushAndWait(context.Background())
	err := b.read(func(c *conn) error {
		for what, text := range map[string]string{
			"attempts without a message": `SELECT count(*) FROM attempts WHERE id NOT IN (SELECT id FROM messages)`,
			"receipts without a message": `SELECT count(*) FROM receipts WHERE id NOT IN (SELECT id FROM messages)`,
			"attempts without a receipt": `SELECT count(*) FROM attempts JOIN messages USING (id)
				WHERE origin IS NULL AND id NOT IN (SELECT id FROM receipts)`,
			"dead letters without a row": `SELECT count(*) FROM messages
				WHERE dead IS NOT NULL AND id NOT IN (SELECT id FROM attempts)`,
		} {
			n, err := c.integer(text)
			if err != nil {
				return err
			}
			if n != 0 {
				t.Errorf("%d %s", n, what)
			}
		}
		want, got := map[reasonCount]int64{}, map[reasonCount]int64{}
		err := c.query(func(row row) {
			want[reasonCount{row.int(0) >> seqBits, row.text(1), row.int(2) / hourMillis}]++
		}, `SELECT id, reason, at FROM attempts WHERE NOT EXISTS (SELECT 1 FROM garbage WHERE id > low AND id <= high)`)
		if err != nil {
			return err
		}
		err = c.query(func(row row) {
			got[reasonCount{row.int(0), row.text(1), row.int(2)}] = row.int(3)
		}, `SELECT queue, reason, hour, count FROM reasons`)
		if !maps.Equal(got, want) {
			t.Errorf("the reasons are counted as %v, want %v", got, want)
		}
		return err
	})
	if err != nil {
		t.Errorf("reading: %v", err)
	}
}

func TestAttemptsStayWithTheirMessage(t *testing.T) {
	t.Parallel()
	b := openTest(t, quiet())
	q := withDeadLetters(t, b)
	send(t, q, body("a", "b")...)
	m := take(t, q, 2)[0]
	a := failing(422, "no customer 4711")
	a.RetryAt = a.At.Add(time.Minute)
	b.RecordAttempt("work", m.ID, a)
	a.At, a.RetryAt = a.At.UTC().Truncate(time.Millisecond), a.RetryAt.UTC().Truncate(time.Millisecond)
	see := func(where, name string) {
		t.Helper()
		got := storedMessage(t, b, name, m.ID).Attempts
		if !slices.Equal(got, []Attempt{a}) {
			t.Errorf("%s: attempts %+v, want %+v", where, got, a)
		}
		page, _, err := b.Browse(t.Context(), name, BrowseRequest{Filter: Filter{Match: "a"}})
		if err != nil || len(page) != 1 || !slices.Equal(page[0].Attempts, []Attempt{a}) {
			t.Errorf("%s: browsing shows %+v, %v", where, page, err)
		}
	}
	see("at once", "work")
	b = reopen(t, b)
	see("after a restart", "work")
	if got := take(t, b.Queue("work"), 2); len(got) != 0 {
		t.Fatalf("received %v", got)
	}
	see("as a dead letter", "dead")
	checkAttempts(t, b)
	if n, err := b.Move(t.Context(), "dead", "", []string{m.ID}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	see("after the redrive", "work")
	checkAttempts(t, b)
	remove(t, b.Queue("work"), one(t, b.Queue("work")).ReceiptHandle)
	if n, err := b.DeleteMessages(t.Context(), "dead", ids(t, b, "dead")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	checkAttempts(t, b)
	if n := rows(t, b, "attempts") + rows(t, b, "reasons"); n != 0 {
		t.Errorf("%d rows stay of messages that are gone", n)
	}
}

func ids(t testing.TB, b *Broker, name string) (list []string) {
	t.Helper()
	for _, s := range browsed(t, b, name, BrowseRequest{}) {
		list = append(list, s.ID)
	}
	return list
}

func rows(t testing.TB, b *Broker, table string) int64 {
	t.Helper()
	return integerOf(t, b, `SELECT count(*) FROM `+table)
}

func integerOf(t testing.TB, b *Broker, query string, args ...any) (n int64) {
	t.Helper()
	err := b.read(func(c *conn) (err error) {
		n, err = c.integer(query, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLastAttemptsAreKept(t *testing.T) {
	t.Parallel()
	b := openTest(t, quiet())
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "30"})
	send(t, q, body("x")...)
	m := one(t, q)
	var want []string
	for i := range 2*keptAttempts + 3 {
		want = append(want, fmt.Sprint("<", i, ">\n\"&"))
		b.RecordAttempt("work", m.ID, failing(500, want[i]))
		if i%5 == 0 {
			b.attempts.flushAndWait(t.Context())
		}
	}
	if got := answersOf(storedMessage(t, b, "work", m.ID)); !slices.Equal(got, want[len(want)-keptAttempts:]) {
		t.Errorf("kept %q", got)
	}
	checkAttempts(t, b)
}

func TestAttemptsAreAppended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work", map[string]string{"VisibilityTimeout": "43200"})
		send(t, q, body("x")...)
		id := one(t, q).ID
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		var want []string
		fail := func(status, times int) {
			t.Helper()
			for range times {
				want = append(want, fmt.Sprint("answer ", len(want)))
				b.RecordAttempt("work", id, failing(status, want[len(want)-1]))
				b.attempts.flushAndWait(t.Context())
			}
			checkAttempts(t, b)
			if got := answersOf(storedMessage(t, b, "work", id)); !slices.Equal(got, want[max(0, len(want)-keptAttempts):]) {
				t.Errorf("attempts %q after %q", got, want)
			}
			groups, err := b.DeadLetterReasons(t.Context(), "work")
			if err != nil || len(groups) != 1 || groups[0].Reason != fmt.Sprintf("HTTP %d answer #", status) ||
				groups[0].Hours[23] != 1 || !groups[0].Last.Equal(time.Now().UTC().Truncate(time.Millisecond)) {
				t.Errorf("groups %+v, %v", groups, err)
			}
		}
		time.Sleep(2 * storeAfter)
		fail(500, 3)
		fail(422, 2)
		time.Sleep(time.Hour)
		fail(422, 2)
		b = reopen(t, b)
		fail(422, 1)
		fail(422, 200)
		if n := integerOf(t, b, `SELECT octet_length(history) FROM attempts`); n > maxAppended+keptAnswer {
			t.Errorf("%d bytes of attempts stay in the file", n)
		}
	})
}

func TestAttemptsWithoutAMessageAreNotKept(t *testing.T) {
	t.Parallel()
	b := openTest(t, quiet())
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "30"})
	sent := send(t, q, body("deleted", "fresh")...)
	m := one(t, q)
	b.RecordAttempt("work", m.ID, failing(500, "before"))
	remove(t, q, m.ReceiptHandle)
	b.RecordAttempt("work", m.ID, failing(500, "after"))
	b.RecordAttempt("work", sent[1].ID, failing(500, "nobody received it"))
	b.RecordAttempt("work", "3f0e8b1c-0000-4000-8000-000000000000", failing(500, "x"))
	b.RecordAttempt("other", m.ID, failing(500, "x"))
	checkAttempts(t, b)
	if n := rows(t, b, "attempts") + rows(t, b, "receipts"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// The next receive may dead-letter the message before its last attempt is recorded.
func TestAttemptFollowsAMovedMessage(t *testing.T) {
	t.Parallel()
	b := openTest(t, quiet())
	q := withDeadLetters(t, b)
	send(t, q, body("x")...)
	m := one(t, q)
	take(t, q, 1)
	b.RecordAttempt("work", m.ID, failing(500, "late"))
	s := storedMessage(t, b, "dead", m.ID)
	if got := answersOf(s); !slices.Equal(got, []string{"late"}) {
		t.Errorf("attempts %q", got)
	}
	groups, err := b.DeadLetterReasons(t.Context(), "dead")
	if err != nil || len(groups) != 1 || groups[0].Reason != "HTTP 500 late" || !groups[0].Last.Equal(s.DeadAt) {
		t.Errorf("groups %+v, %v; dead at %v", groups, err, s.DeadAt)
	}
	checkAttempts(t, b)
}

func TestAttemptBeforeAPurgeIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work", map[string]string{"VisibilityTimeout": "30"})
		send(t, q, body("x")...)
		b.RecordAttempt("work", one(t, q).ID, failing(500, "x"))
		if n, err := b.PurgeQueue(t.Context(), "work"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		checkAttempts(t, b)
		if n := rows(t, b, "attempts"); n != 0 {
			t.Errorf("%d attempts are in the file", n)
		}
	})
}

func TestPurgeAndExpiryRemoveAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := withDeadLetters(t, b)
		if err := b.SetAttributes(t.Context(), "dead", map[string]string{"MessageRetentionPeriod": "60"}); err != nil {
			t.Fatal(err)
		}
		fail := func(n int) {
			t.Helper()
			for range n {
				send(t, q, body("x")...)
				b.RecordAttempt("work", one(t, q).ID, failing(500, "x"))
				take(t, q, 1)
			}
			b.attempts.flushAndWait(t.Context())
			if got := rows(t, b, "attempts"); got != int64(n) {
				t.Errorf("%d rows, want %d", got, n)
			}
		}
		fail(20)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		checkAttempts(t, b)
		if n := rows(t, b, "attempts"); n != 0 {
			t.Errorf("%d rows outlive the retention", n)
		}
		fail(30)
		late := ids(t, b, "dead")[0]
		if n, err := b.PurgeQueue(t.Context(), "dead"); n != 30 || err != nil {
			t.Fatal(n, err)
		}
		b.RecordAttempt("work", late, failing(500, "purged meanwhile"))
		if groups, err := b.DeadLetterReasons(t.Context(), "dead"); len(groups) != 0 || err != nil {
			t.Errorf("after the purge: %+v, %v", groups, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		checkAttempts(t, b)
		if n := rows(t, b, "attempts"); n != 0 {
			t.Errorf("%d rows outlive the purge", n)
		}
		fail(10)
		if err := b.DeleteQueue(t.Context(), "dead"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		checkAttempts(t, b)
		if n := rows(t, b, "attempts"); n != 0 {
			t.Errorf("%d rows outlive the queue", n)
		}
	})
}

func TestReasonsGroupDeadLetters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := withDeadLetters(t, b)
		began := time.Now().Truncate(time.Hour).Add(time.Hour)
		time.Sleep(time.Until(began))
		fail := func(a *Attempt) (id string) {
			send(t, q, body("x")...)
			id = one(t, q).ID
			if a != nil {
				b.RecordAttempt("work", id, *a)
			}
			time.Sleep(time.Millisecond)
			take(t, q, 1)
			return id
		}
		first := failing(422, `{"error":"missing customer_id","request":"8f3a21"}`)
		of := map[string]string{}
		for i := range 5 {
			a := first
			a.Answer = strings.Replace(a.Answer, "8f3a21", fmt.Sprint("99ab", i), 1)
			of[fail(&a)] = "HTTP 422 missing customer_id"
			time.Sleep(time.Hour)
		}
		refused := failing(0, "")
		refused.Reason = "connect to 127.0.0.1:8080 refused"
		of[fail(&refused)] = "connect to #.#.#.#:# refused"
		of[fail(nil)] = ""
		direct := send(t, b.Queue("dead"), body("sent here")...)
		of[direct[0].ID] = ""
		groups, err := b.DeadLetterReasons(t.Context(), "dead")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range groups {
			got = append(got, fmt.Sprintf("%s %d %s-%s %v", g.Reason, g.Count, g.First.Sub(began).Truncate(time.Hour),
				g.Last.Sub(began).Truncate(time.Hour), g.Hours[17:]))
		}
		want := []string{
			"HTTP 422 missing customer_id 5 0s-4h0m0s [0 1 1 1 1 1 0]",
			" 2 5h0m0s-5h0m0s [0 0 0 0 0 0 1]",
			"connect to #.#.#.#:# refused 1 5h0m0s-5h0m0s [0 0 0 0 0 0 1]",
		}
		if !slices.Equal(got, want) {
			t.Errorf("groups\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, g := range groups {
			checkReasonPages(t, b, g, of)
		}
	})
}

func checkReasonPages(t *testing.T, b *Broker, g ReasonGroup, of map[string]string) {
	t.Helper()
	page := browsed(t, b, "dead", BrowseRequest{Filter: Filter{Reason: &g.Reason}, Limit: 2})
	for _, s := range page {
		if of[s.ID] != g.Reason {
			t.Errorf("a message of %q is shown with %q", of[s.ID], g.Reason)
		}
	}
	if len(page) != g.Count {
		t.Errorf("%d messages are shown with %q, want %d", len(page), g.Reason, g.Count)
	}
}

func TestFormat5IsReadAndBroughtUpToDate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	q := withDeadLetters(t, b)
	send(t, q, body("dead", "purged")...)
	take(t, q, 2)
	take(t, q, 2)
	if n, err := b.DeleteMessages(t.Context(), "dead", ids(t, b, "dead")[1:]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	send(t, q, body("waiting")...)
	before := storedMessage(t, b, "dead", ids(t, b, "dead")[0])
	ledger := b.TotalLedger()
	closeBroker(t, b)
	alterDatabase(t, dir, `DROP TABLE attempts; DROP TABLE reasons; ALTER TABLE moves DROP COLUMN deletes;
		ALTER TABLE moves DROP COLUMN filter; PRAGMA user_version = 5`)
	for range 2 {
		b = openDir(t, dir, quiet())
		if got := b.TotalLedger(); got != ledger {
			t.Errorf("ledger %+v, want %+v", got, ledger)
		}
		checkAttempts(t, b)
		after := storedMessage(t, b, "dead", before.ID)
		if after.Body != "dead" || !after.DeadAt.Equal(before.DeadAt) || len(after.Attempts) != 0 {
			t.Errorf("the dead letter is %+v", after)
		}
		groups, err := b.DeadLetterReasons(t.Context(), "dead")
		if err != nil || len(groups) != 1 || groups[0].Count != 1 || !groups[0].First.Equal(before.DeadAt) {
			t.Errorf("groups %+v, %v", groups, err)
		}
		closeBroker(t, b)
	}
}

func TestKillKeepsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work", map[string]string{"VisibilityTimeout": "30"})
		send(t, q, body("x", "y")...)
		list := take(t, q, 2)
		b.RecordAttempt("work", list[0].ID, failing(500, "old"))
		time.Sleep(2 * attemptLinger)
		synctest.Wait()
		b.RecordAttempt("work", list[1].ID, failing(500, "new"))
		after := killed(t, b)
		if got := answersOf(storedMessage(t, after, "work", list[0].ID)); !slices.Equal(got, []string{"old"}) {
			t.Errorf("attempts %q", got)
		}
		checkAttempts(t, after)
		remove(t, after.Queue("work"), list[0].ReceiptHandle, list[1].ReceiptHandle)
		checkAttempts(t, after)
		if n := rows(t, after, "attempts"); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestAttemptsAreLostWhenTheyCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, op string
		code     int32
	}{{"full", "write", sqlite3.SQLITE_FULL}, {"failed write", "write", sqlite3.SQLITE_IOERR_WRITE},
		{"failed sync", "sync", sqlite3.SQLITE_IOERR_FSYNC}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := faultfs.New(t)
			b := openTest(t, &Options{vfs: fs.Name(), NoWaits: true, Logger: quiet().Logger})
			q := withDeadLetters(t, b)
			send(t, q, body("x")...)
			m := one(t, q)
			fs.SetFail(func(op, file string, _ int) int32 {
				if op == c.op {
					return c.code
				}
				return sqlite3.SQLITE_OK
			})
			for range 3 {
				b.RecordAttempt("work", m.ID, failing(500, "lost"))
				b.attempts.flush()
				_, _ = q.Send(t.Context(), body("y"))
			}
			fs.SetFail(nil)
			deadline := time.After(time.Minute)
			for {
				if _, err := q.Send(t.Context(), body("z")); err == nil {
					break
				}
				select {
				case <-deadline:
					t.Fatal("the store is not in use again")
				case <-time.After(10 * time.Millisecond):
				}
			}
			b.RecordAttempt("work", m.ID, failing(500, "kept"))
			got := answersOf(storedMessage(t, b, "work", m.ID))
			if len(got) == 0 || got[len(got)-1] != "kept" {
				t.Errorf("attempts %q", got)
			}
			if b.attempts.inWriter != 0 {
				t.Errorf("%d attempts wait", b.attempts.inWriter)
			}
			take(t, q, 10)
			checkAttempts(t, b)
			checkLedgers(t, b)
		})
	}
}

func TestAttemptsBeyondTheLimitAreDropped(t *testing.T) {
	t.Parallel()
	b := openTest(t, quiet())
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "30"})
	send(t, q, body("x")...)
	m := one(t, q)
	began, hold, held := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		held <- b.writer.change(func(*tx) { close(began); <-hold }, nil)
	}()
	<-began
	a := failing(500, "x")
	for range maxPendingAttempts + attemptBatch {
		b.RecordAttempt("work", m.ID, a)
	}
	b.attempts.mu.Lock()
	waiting, dropped := len(b.attempts.pending)+b.attempts.inWriter, b.attempts.dropped
	b.attempts.mu.Unlock()
	close(hold)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if waiting != maxPendingAttempts || dropped != attemptBatch-1 {
		t.Errorf("%d wait and %d were dropped", waiting, dropped)
	}
	checkAttempts(t, b)
}

func TestCutText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 4, ""}, {"abcd", 4, "abcd"}, {"abcde", 4, "abcd"}, {"abcä", 4, "abc"}, {"abä", 4, "abä"},
		{"\xff\xffabc", 8, "\uFFFDabc"}, {"a\xffb", 4, "a\uFFFD"}, {"€€", 4, "€"},
	} {
		if got := cutText(c.text, c.limit); got != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func FuzzAttemptsComeBackAsStored(f *testing.F) {
	f.Add(500, "order 8f3a21bc-0000-4000-8000-0123456789AB\n", "x")
	f.Add(0, `{"error":{"message":"no 4711"}}`, "no response within 3m")
	f.Fuzz(func(t *testing.T, status int, answer, reason string) {
		a := Attempt{Status: status, Answer: answer, Reason: reason}.bounded()
		if history := readHistory(a.line()); len(history) != 1 || history[0] != a {
			t.Errorf("%+v comes back as %+v", a, history)
		}
	})
}
