package broker

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func spoil(t *testing.T, dir, body string) {
	t.Helper()
	c, err := openDatabase(filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if n, err := c.exec(`UPDATE messages SET body = 'spoilt' WHERE body = ?`, body); n != 1 || err != nil {
		t.Fatalf("%d messages %s were spoilt: %v", n, body, err)
	}
}

func TestDamagedMessageIsWithheldAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, attributes := range map[string]map[string]string{
		"dead":      nil,
		"dead.fifo": fifoAttributes,
	} {
		for _, found := range []string{"received", "listed", "retried", "moved", "moved by a task"} {
			t.Run(name+" "+found, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) { meetDamaged(t, dir, name, found, attributes) })
			})
		}
	}
}

func meetDamaged(t *testing.T, dir, name, found string, attributes map[string]string) {
	b := openDir(t, dir, quiet())
	group := ""
	if attributes != nil {
		group = "g"
	}
	home := strings.Replace(name, "dead", "work", 1)
	q := create(t, b, name, attributes)
	withPolicy := map[string]string{"RedrivePolicy": policy(b, name, 3)}
	maps.Copy(withPolicy, attributes)
	create(t, b, home, withPolicy)
	var ids []string
	for _, body := range []string{"a", "b", "c"} {
		ids = append(ids, send(t, q, queue.Outgoing{Body: body, GroupID: group})[0].ID)
	}
	closeBroker(t, b)
	spoil(t, dir, "a")
	b = openDir(t, dir, quiet())
	defer b.Close()
	q = b.Queue(name)
	refused := func() {
		t.Helper()
		err := q.Reschedule(t.Context(), ids[0], 0)
		if !errors.Is(err, &queue.Error{Code: queue.CodeUnsupportedOperation}) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("retried: %v", err)
		}
	}
	switch found {
	case "received":
		if got := texts(take(t, q, 10)); got != "b c" {
			t.Errorf("received %q, want b c", got)
		}
	case "listed":
		page, _, err := b.Browse(t.Context(), name, BrowseRequest{})
		if err != nil || len(page) != 3 || page[0].State != Damaged || page[1].State != Visible {
			t.Errorf("listed %+v, %v", page, err)
		}
	case "retried":
		refused()
	case "moved":
		if n, err := b.Move(t.Context(), name, home, ids); n != 2 || err != nil {
			t.Errorf("moved %d messages, %v", n, err)
		}
	case "moved by a task":
		_, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN(name), Destination: b.ARN(home)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		tasks, err := b.MoveTasks(b.ARN(name), 1)
		if err != nil || len(tasks) != 1 || tasks[0].Status != MoveCompleted || tasks[0].Moved != 2 {
			t.Errorf("the task is %+v, %v", tasks, err)
		}
	}
	refused()
	l, err := b.Ledger(name)
	if err != nil || l.Damaged != 1 || l.Live != l.Visible+l.InFlight+l.Delayed+1 {
		t.Errorf("the ledger is %+v, %v", l, err)
	}
	if m, err := b.Message(t.Context(), name, ids[0]); err != nil || m.State != Damaged || m.ReceiveCount != 0 {
		t.Errorf("the message is %+v, %v", m, err)
	}
	if total := b.TotalLedger(); total.Damaged != 1 {
		t.Errorf("of all queues, %d are damaged", total.Damaged)
	}
	if n, err := b.Move(t.Context(), name, home, ids[:1]); n != 0 || err != nil {
		t.Errorf("moved %d damaged messages, %v", n, err)
	}
	if n, err := b.DeleteMessages(t.Context(), name, ids[:1]); n != 1 || err != nil {
		t.Errorf("deleted %d damaged messages, %v", n, err)
	}
	if l, err := b.Ledger(name); err != nil || l.Damaged != 0 || l.Live != l.Visible+l.InFlight {
		t.Errorf("after it was deleted, the ledger is %+v, %v", l, err)
	}
}

func spoilTable(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, databaseName)
	c, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.integer(`SELECT rootpage FROM sqlite_schema WHERE name = ?`, name)
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(content[(page-1)*pageSize:page*pageSize], strings.Repeat("x", pageSize))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamageFoundAnywhereAdvisesRestore(t *testing.T) {
	t.Parallel()
	opened := func(act func(t *testing.T, b *Broker, log *bytes.Buffer) string) func(t *testing.T, dir string) string {
		return func(t *testing.T, dir string) string {
			var log bytes.Buffer
			b, err := Open(dir, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			return act(t, b, &log)
		}
	}
	for name, c := range map[string]struct {
		table string
		find  func(t *testing.T, dir string) string
	}{
		"open": {"queues", func(_ *testing.T, dir string) string {
			_, err := Open(dir, quiet())
			return fmt.Sprint(err)
		}},
		"list": {"counters", func(_ *testing.T, dir string) string {
			_, err := Inspect(dir)
			return fmt.Sprint(err)
		}},
		"read": {"messages", opened(func(t *testing.T, b *Broker, _ *bytes.Buffer) string {
			_, _, err := b.Browse(t.Context(), "work", BrowseRequest{})
			return fmt.Sprint(err)
		})},
		"write": {"messages", opened(func(t *testing.T, b *Broker, _ *bytes.Buffer) string {
			_, err := b.Queue("work").Send(t.Context(), body("x"))
			return fmt.Sprint(err)
		})},
		"log of a write": {"messages", opened(func(t *testing.T, b *Broker, log *bytes.Buffer) string {
			_, _ = b.Queue("work").Send(t.Context(), body("x"))
			synctest.Wait()
			line, _, _ := strings.Cut(log.String(), "\n")
			return line
		})},
		"log of the clean-up": {"dedup_expires", opened(func(_ *testing.T, _ *Broker, log *bytes.Buffer) string {
			time.Sleep(2 * tidySoon)
			synctest.Wait()
			return log.String()
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				b := openDir(t, dir, quiet())
				send(t, create(t, b, "work", nil), body("a")...)
				closeBroker(t, b)
				spoilTable(t, dir, c.table)
				want := "type 'tendril restore BACKUP --replace --data-dir " + dir + "' (docs/backup.md)"
				if text := c.find(t, dir); strings.Count(text, want) != 1 {
					t.Errorf("%s; want %s once", text, want)
				}
			})
		})
	}
}

// No error or log line may blame the disk or claim that the file was verified.
func TestDamagedFileIsNotSaidToBeInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	create(t, b, "work.fifo", fifoAttributes)
	closeBroker(t, b)
	spoilTable(t, dir, "dedup")

	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := openDir(t, dir, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		q := b.Queue("work.fifo")
		for range 2 {
			_, err := q.Send(t.Context(), []queue.Outgoing{{Body: "x", GroupID: "g"}})
			if !errors.Is(err, &queue.Error{Code: queue.CodeStorageFailed}) || !strings.Contains(err.Error(), "is damaged") ||
				!strings.Contains(err.Error(), "tendril restore") || strings.Contains(err.Error(), "A write to disk failed") {
				t.Errorf("sending: %v", err)
			}
			time.Sleep(time.Minute)
		}
		closeBroker(t, b)
		if text := log.String(); strings.Contains(text, "queue database reopened") || !strings.Contains(text, "tendril restore BACKUP") {
			t.Errorf("it logged %s", text)
		}
	})
}
