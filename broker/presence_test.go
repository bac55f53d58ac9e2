package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/queue"
)

func TestMissingDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	const restore = "tendril restore BACKUP --"
	remove := func(names ...string) func(string) error {
		return func(dir string) error {
			for _, name := range names {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	write := func(name, content string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
	}
	for name, c := range map[string]struct {
		used   bool
		change func(dir string) error
		want   []string
	}{
		"a new directory":          {false, func(string) error { return nil }, nil},
		"without embedded queues":  {false, write("console.token", "secret"), nil},
		"a first start, cut short": {false, write(databaseName, ""), nil},
		"unchanged":                {true, func(string) error { return nil }, nil},
		"missing": {true, remove(databaseName),
			[]string{"is missing", restore + "data-dir", "or remove queues.created to"}},
		"empty": {true, write(databaseName, ""), []string{"is empty", CreatedFile, restore}},
		"only its log was left": {false, write(databaseName+"-wal", "log"),
			[]string{"is missing", "its log queues.db-wal exists", restore}},
		"only its log has content": {true, func(dir string) error {
			if err := remove(CreatedFile, databaseName)(dir); err != nil {
				return err
			}
			return write(databaseName+"-wal", "log")(dir)
		}, []string{"is missing", "its log queues.db-wal exists", restore}},
		"missing, with its log": {true, func(dir string) error {
			if err := remove(databaseName)(dir); err != nil {
				return err
			}
			return write(databaseName+"-wal", "log")(dir)
		}, []string{"is missing", restore + "replace", "or remove queues.created and queues.db-wal to"}},
		"empty on purpose": {true, remove(databaseName, CreatedFile), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.used {
				b := openDir(t, dir, quiet())
				send(t, create(t, b, "work", nil), queue.Outgoing{Body: "x"})
				closeBroker(t, b)
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			before := sizeOf(filepath.Join(dir, databaseName))
			b, err := Open(dir, quiet())
			if err == nil {
				defer b.Close()
			}
			if (err != nil) != (c.want != nil) {
				t.Fatalf("opened: %v", err)
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if after := sizeOf(filepath.Join(dir, databaseName)); err != nil && after != before {
				t.Errorf("the file has %d bytes, it had %d", after, before)
			}
		})
	}
}

func TestLostLogIsRefused(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	b := openDir(t, dir, quiet())
	defer b.Close()
	send(t, create(t, b, "work", nil), queue.Outgoing{Body: "x"})
	for _, name := range []string{databaseName, CreatedFile} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lost, err := Open(copied, quiet())
	if err == nil {
		lost.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "has no tables") ||
		!strings.Contains(err.Error(), "restore BACKUP --replace") ||
		!strings.Contains(err.Error(), "or remove queues.created to") {
		t.Errorf("opened without its log: %v", err)
	}
}
