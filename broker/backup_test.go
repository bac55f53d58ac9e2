package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tendril/internal/registry"
	"tendril/queue"
)

func TestBackupWhileSendersGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	q := create(t, b, "work", nil)
	filler := strings.Repeat("x", 20_000)
	var acknowledged atomic.Int64
	started, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := q.Send(t.Context(), []queue.Outgoing{{Body: fmt.Sprint(i, " ", filler)}}); err != nil {
				t.Errorf("sending: %v", err)
				return
			}
			if acknowledged.Add(1) == 200 {
				close(started)
			}
		}
	}()
	<-started
	for i := range 5 {
		before := acknowledged.Load()
		file := filepath.Join(t.TempDir(), "backup.db")
		queues, err := Backup(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		if len(queues) != 1 || queues[0].Messages < before || queues[0].Damaged != 0 {
			t.Errorf("backup %d holds %+v; %d were acknowledged before it", i, queues, before)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the backup has mode %v, %v", info.Mode(), err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) > 0 {
			t.Errorf("left beside the backup: %v", left)
		}
	}
	close(stop)
	<-stopped
}

func TestReaderInAnotherProcessDoesNotBlockTheWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	q := create(t, b, "work", nil)
	send(t, q, body("first")...)
	reader, err := openDatabase(filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.close()
	if err := reader.script(`BEGIN; SELECT count(*) FROM messages`); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Load().restartLog("RESTART"); err != nil {
		t.Fatal(err)
	}
	send(t, q, body("second")...)
}

func TestRestoredBackupGoesOnFarBehind(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
	b := openDir(t, dir, quiet())
	q := create(t, b, "work", nil)
	send(t, q, body("a", "b")...)
	if err := registry.NewRuns(b.Registry(), registry.Scope{}).SetPaused(t.Context(), "tidy", "audit", true); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(dir, file); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(dir, file); err == nil {
		t.Error("a backup was replaced")
	}
	after := send(t, q, body("c")...)[0].ID
	received := receipts(take(t, q, 10))
	if _, err := Restore(file, dir, true); !errors.Is(err, ErrInUse) {
		t.Errorf("restored below a broker: %v", err)
	}
	closeBroker(t, b)

	if _, err := Restore(file, dir, false); !errors.Is(err, ErrUsed) {
		t.Errorf("a used directory was overwritten: %v", err)
	}
	if queues, err := Inspect(dir); err != nil || len(queues) != 1 || queues[0].Messages != 3 {
		t.Errorf("what was there is %+v, %v", queues, err)
	}
	queues, err := Restore(file, dir, true)
	if err != nil || len(queues) != 1 || queues[0] != (StoredQueue{Name: "work", Messages: 2}) {
		t.Fatalf("restored %+v, %v", queues, err)
	}
	if sizeOf(filepath.Join(dir, ReplacedFile)) <= 0 {
		t.Error("the file that was replaced is not kept")
	}
	fresh := filepath.Join(t.TempDir(), "new")
	if _, err := Restore(file, fresh, false); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{dir, fresh} {
		b := openDir(t, place, quiet())
		q := b.Queue("work")
		for i, err := range q.Delete(t.Context(), received) {
			if i == 2 && err == nil {
				t.Error("a receipt of after the backup deleted a message")
			}
		}
		if id := send(t, q, body("d")...)[0].ID; id == after {
			t.Errorf("message d has the id of message c")
		}
		if paused, err := registry.NewRuns(b.Registry(), registry.Scope{}).Paused(t.Context()); err != nil || paused["tidy"] != "audit" {
			t.Errorf("paused tasks: %v, %v", paused, err)
		}
	}
}

func TestRestoreRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.db")
	source := t.TempDir()
	b := openDir(t, source, quiet())
	send(t, create(t, b, "work", nil), body("a", strings.Repeat("b", 100_000))...)
	if _, err := Backup(source, good); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte(nil), content...)
	other[60+3] = 9
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"missing":        {nil, "missing or empty"},
		"text":           {[]byte("this is not a database, and long enough to be looked at\n" + strings.Repeat("x", 4096)), "damaged"},
		"cut short":      {content[:len(content)-4096], "damaged"},
		"another format": {other, "has format 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, dir := filepath.Join(t.TempDir(), "backup.db"), t.TempDir()
			if c.content != nil {
				if err := os.WriteFile(file, c.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Restore(file, dir, false)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "tendril restore") {
				t.Errorf("restored: %v", err)
			}
			for _, path := range []string{databaseName, CreatedFile} {
				if sizeOf(filepath.Join(dir, path)) >= 0 {
					t.Errorf("%s was written", path)
				}
			}
		})
	}
}

func TestBackupOfADamagedDatabaseAdvisesRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	send(t, create(t, b, "work", nil), body("a")...)
	closeBroker(t, b)
	if err := os.WriteFile(filepath.Join(dir, databaseName), make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "tendril restore BACKUP --replace --data-dir " + dir
	if _, err := Backup(dir, filepath.Join(t.TempDir(), "backup.db")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("backed up: %v", err)
	}
	if _, err := Inspect(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("inspected: %v", err)
	}
}

func TestBackupReportsDamagedMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	send(t, create(t, b, "work", nil), body("a", "b")...)
	closeBroker(t, b)
	spoil(t, dir, "a")
	queues, err := Backup(dir, filepath.Join(t.TempDir(), "backup.db"))
	if err != nil || len(queues) != 1 || queues[0] != (StoredQueue{"work", 2, 1}) {
		t.Errorf("%+v, %v", queues, err)
	}
}
