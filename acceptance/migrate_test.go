package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/migrate"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

const (
	migrateStandard = "jobs"
	migrateFIFO     = "orders.fifo"
	migrateGroups   = 50
	migrateKills    = 12
)

func migrateSize(t *testing.T, size int) int {
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_MIGRATE")); err == nil {
		return n
	}
	if testing.Short() {
		return size / 10
	}
	return size
}

func TestKilledMigrationLosesNothing(t *testing.T) {
	size := migrateSize(t, 20_000)
	dir, there := t.TempDir(), t.TempDir()
	fillQueues(t, dir, size)
	serve, started := start(t, "serve", "--data-dir", there, "--listen", "127.0.0.1:0", "--console", "off")
	env := []string{"AWS_ENDPOINT_URL_SQS=" + started.Endpoint}
	migrateWithKills(t, env, size, "--from", "embedded", "--to", "sqs", "--data-dir", dir, migrateStandard)
	migrateWithKills(t, env, size/10, "--from", "embedded", "--to", "sqs", "--data-dir", dir, migrateFIFO)
	serve.terminate(t)
	checkMigrated(t, size, stored(t, there, migrateStandard), stored(t, there, migrateFIFO))
}

// Messages received by a killed run become visible again after a minute.
func TestKilledMigrationBackLosesNothing(t *testing.T) {
	if os.Getenv("TENDRIL_MIGRATE") == "" && !testpeer.Nightly() {
		t.Skip("takes minutes: set TENDRIL_MIGRATE to the number of messages, or TENDRIL_NIGHTLY")
	}
	size := migrateSize(t, 100_000)
	dir, there := t.TempDir(), t.TempDir()
	fillQueues(t, there, size)
	serve, started := start(t, "serve", "--data-dir", there, "--listen", "127.0.0.1:0", "--console", "off")
	migrateWithKills(t, []string{"AWS_ENDPOINT_URL_SQS=" + started.Endpoint}, size, "--from", "sqs", "--to", "embedded",
		"--data-dir", dir, migrateStandard, migrateFIFO)
	serve.terminate(t)
	checkMigrated(t, size, stored(t, dir, migrateStandard), stored(t, dir, migrateFIFO))
}

func fillQueues(t *testing.T, dir string, size int) {
	t.Helper()
	b, err := broker.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, n := range map[string]int{migrateStandard: size, migrateFIFO: size / 10} {
		attributes := map[string]string{"VisibilityTimeout": "60"}
		if name == migrateFIFO {
			attributes["FifoQueue"] = "true"
		}
		if err := b.CreateQueue(t.Context(), name, attributes, nil); err != nil {
			t.Fatal(err)
		}
		for from := 0; from < n; from += queue.MaxBatch {
			var batch []queue.Outgoing
			for i := from; i < min(n, from+queue.MaxBatch); i++ {
				m := queue.Outgoing{Body: fmt.Sprintf("%s %d %s", name, i, strings.Repeat("x", 150)),
					Attributes: []queue.Attribute{{Name: "n", Type: "Number", Value: fmt.Sprint(i)}}}
				if name == migrateFIFO {
					m.GroupID, m.DedupID = fmt.Sprint("g", i%migrateGroups), fmt.Sprint("d", i)
				}
				batch = append(batch, m)
			}
			if _, err := b.Queue(name).Send(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func migrateWithKills(t *testing.T, env []string, size int, args ...string) {
	t.Helper()
	run := func() (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		cmd := program(t, append([]string{"migrate", "-o", "json", "--wait", "3m"}, args...)...)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1",
			"AWS_EC2_METADATA_DISABLED=true", "HOME="+t.TempDir())
		cmd.Env = append(cmd.Env, env...)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out, &said
	}
	began, killed := time.Now(), 0
	// The journal's size measures progress, so kills are spread evenly even on a slow machine.
	folder := filepath.Join(args[slices.Index(args, "--data-dir")+1], "migrate")
	part := int64(size) * 80 / migrateKills
	for range migrateKills {
		cmd, _, _ := run()
		ended, goal := make(chan error, 1), journalSize(folder)+part*3/4+rand.N(part/2)
		go func() { ended <- cmd.Wait() }()
		tick := time.NewTicker(time.Millisecond)
		for alive := true; alive; {
			select {
			case <-tick.C:
				if alive = journalSize(folder) < goal; !alive {
					cmd.Process.Kill()
					<-ended
					killed++
				}
			case <-ended:
				alive = false
			}
		}
		tick.Stop()
	}
	cmd, out, said := run()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, out, said)
	}
	t.Logf("killed %d times, %s altogether\n%s%s", killed, time.Since(began).Round(time.Millisecond), said, out)
	var results []migrate.Result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.Balanced() || r.Left != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func journalSize(folder string) (n int64) {
	files, _ := filepath.Glob(filepath.Join(folder, "*.journal"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// Each message of the standard queue must arrive at least once, and each of the FIFO queue exactly once and in order.
func checkMigrated(t *testing.T, size int, standard, fifo []broker.Stored) {
	t.Helper()
	number := func(m *queue.Message) int {
		n, err := strconv.Atoi(strings.Fields(m.Body)[1])
		if err != nil || m.Attribute("n") != fmt.Sprint(n) {
			t.Fatalf("message %+v is not what was sent", m)
		}
		return n
	}
	seen := map[int]bool{}
	for i := range standard {
		seen[number(&standard[i].Message)] = true
	}
	var order []int
	last := map[string]int{}
	for i := range fifo {
		n := number(&fifo[i].Message)
		if before, found := last[fifo[i].GroupID]; found && before >= n {
			t.Errorf("%d of group %s came behind %d", n, fifo[i].GroupID, before)
		}
		last[fifo[i].GroupID] = n
		order = append(order, n)
	}
	slices.Sort(order)
	t.Logf("standard: %d of %d messages, %d copies; FIFO: %d of %d, %d doubled", len(seen), size, len(standard)-len(seen),
		len(slices.Compact(slices.Clone(order))), size/10, len(order)-len(slices.Compact(slices.Clone(order))))
	if len(seen) != size {
		t.Errorf("%d of %d messages are there", len(seen), size)
	}
	if len(order) != size/10 || len(slices.Compact(order)) != size/10 {
		t.Errorf("the FIFO queue has %d messages, want each of %d once", len(order), size/10)
	}
}
