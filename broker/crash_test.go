package broker

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"tendril/internal/testing/losscheck"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

const crashDir = "TENDRIL_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir)
		return
	}
	// The flag -rapid.checks sets the number of random histories, which take most of the test time.
	checks := "40"
	if underRace {
		checks = "8"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(testpeer.Contained(m))
}

const crashSenders = 8

func crashChild(dir string) {
	b, err := Open(dir, &Options{NoWaits: true})
	if err == nil {
		err = b.CreateQueue(context.Background(), "work", nil, nil)
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var mu sync.Mutex
	say := func(what, body string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, body) // not buffered: each line is one write
	}
	q := b.Queue("work")
	var group sync.WaitGroup
	for range crashSenders {
		group.Go(func() {
			for {
				text := strconv.FormatUint(rand.Uint64(), 36)
				say("try", text)
				sent, err := q.Send(context.Background(), body(text))
				if err != nil || sent[0].Err != nil {
					say("error", fmt.Sprint(err, sent))
					return
				}
				say("sent", text)
			}
		})
	}
	group.Go(func() {
		for {
			msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: 3})
			if err != nil {
				say("error", err.Error())
				return
			}
			for _, m := range msgs {
				b.RecordAttempt("work", m.ID, failing(500, m.Body))
				if rand.IntN(4) == 0 {
					continue
				}
				say("deleting", m.Body)
				if errs := q.Delete(context.Background(), []string{m.ReceiptHandle}); errs != nil {
					say("error", errs[0].Error())
					return
				}
				say("deleted", m.Body)
			}
		}
	})
	group.Wait()
}

func TestKill(t *testing.T) {
	t.Parallel()
	kills, most := 8, 1000
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_TEST_KILLS")); err == nil {
		kills, most = n, 20_000
	}
	dir := t.TempDir()
	var log losscheck.Log
	for range kills {
		runCrashChild(t, &log, dir, 20+rand.IntN(most))
		checkAfterCrash(t, &log, dir)
		if t.Failed() {
			return
		}
	}
	sends, deletes := log.Acknowledged()
	t.Logf("%d kills: %d sends acknowledged, %d deletes", kills, sends, deletes)
}

func runCrashChild(t *testing.T, log *losscheck.Log, dir string, lines int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == lines {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		line, err := r.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		what, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "try":
			log.Sending(text)
		case "sent":
			log.Sent(text)
		case "deleting":
			log.Deleting(text)
		case "deleted":
			log.Deleted(text)
		default:
			t.Errorf("the child said: %s", line)
		}
	}
	_ = child.Wait()
}

func checkAfterCrash(t *testing.T, log *losscheck.Log, dir string) {
	t.Helper()
	b, err := Open(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	checkNothingLost(t, b, log)
}

func checkNothingLost(t *testing.T, b *Broker, log *losscheck.Log) {
	t.Helper()
	for _, problem := range log.Check(storedBodies(t, b)) {
		t.Error(problem)
	}
	checkAttempts(t, b)
	checkLedgers(t, b)
	checkIntegrity(t, b)
}

func storedBodies(t testing.TB, b *Broker) map[string]int {
	t.Helper()
	stored := map[string]int{}
	for _, name := range b.ListQueues("") {
		for _, m := range browsed(t, b, name, BrowseRequest{}) {
			stored[m.Body]++
		}
	}
	return stored
}

func TestInUse(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	out, err := func() ([]byte, error) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), crashDir+"="+b.dir)
		return child.CombinedOutput()
	}()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("process %d holds %s", os.Getpid(), b.dir)
	if !strings.Contains(string(out), ErrInUse.Error()) || !strings.Contains(string(out), want) {
		t.Errorf("the second process said %q", out)
	}
}
