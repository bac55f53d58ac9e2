package broker

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"tendril/internal/testing/faultfs"
	"tendril/queue"
)

func deadLetters(t *testing.T, b *Broker, n int) (work, dead *Queue) {
	t.Helper()
	dead = create(t, b, "dead", nil)
	work = create(t, b, "work", map[string]string{
		"RedrivePolicy": policy(b, "dead", 1)})
	for i := range n {
		send(t, work, body(fmt.Sprint(i))...)
	}
	for got := 0; got < n; {
		msgs, err := work.Receive(context.Background(), queue.ReceiveRequest{Max: 10, Visibility: new(time.Duration)})
		if err != nil {
			t.Fatal(err)
		}
		l, err := b.Ledger("dead")
		if err != nil {
			t.Fatal(err)
		}
		if got = int(l.Live); len(msgs) == 0 && got < n {
			t.Fatalf("%d dead letters, want %d", got, n)
		}
	}
	return work, dead
}

func startMove(t *testing.T, b *Broker, from, to string, rate int) string {
	t.Helper()
	handle, err := b.StartMoveTask(context.Background(), MoveRequest{Source: from, Destination: to, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

func lastMove(t *testing.T, b *Broker, name string) MoveTask {
	t.Helper()
	tasks, err := b.MoveTasks(b.ARN(name), 1)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("tasks of %s: %v, %v; want one", name, tasks, err)
	}
	return tasks[0]
}

func wantError(t *testing.T, err error, code, text string) {
	t.Helper()
	var refusal *queue.Error
	if !errors.As(err, &refusal) || refusal.Code != code || refusal.Message != text {
		t.Errorf("error %#v, want %s: %s", err, code, text)
	}
}

func TestG7MoveTaskMovesBackToTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		work, _ := deadLetters(t, b, 450)
		synctest.Wait()
		handle := startMove(t, b, b.ARN("dead"), "", 0)
		text, err := base64.StdEncoding.DecodeString(handle)
		if err != nil || !strings.HasPrefix(string(text), `{"taskId":"`) ||
			!strings.HasSuffix(string(text), `","sourceArn":"`+b.ARN("dead")+`"}`) {
			t.Errorf("the handle is %s, %v", text, err)
		}
		synctest.Wait()
		task := lastMove(t, b, "dead")
		if task.StartedAt.IsZero() || task.Handle != "" {
			t.Errorf("ended task %+v", task)
		}
		task.StartedAt = time.Time{}
		want := MoveTask{MoveRequest: MoveRequest{Source: b.ARN("dead")}, Status: MoveCompleted, Moved: 450, ToMove: 450}
		if !reflect.DeepEqual(task, want) {
			t.Errorf("task %+v, want %+v", task, want)
		}
		m := one(t, work)
		if m.ReceiveCount != 2 || m.DeadLetterSource == "" {
			t.Errorf("moved message %+v", m)
		}
		if l, _ := b.Ledger("work"); l.Live != 450 {
			t.Errorf("%d messages in work, want 450", l.Live)
		}
	})
}

func TestC8MovedMessagesAreNotDeadLetteredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		work, dead := deadLetters(t, b, 1)
		startMove(t, b, b.ARN("dead"), "", 0)
		synctest.Wait()
		if m := one(t, work); m.Body != "0" {
			t.Errorf("received %+v", m)
		}
		time.Sleep(time.Minute)
		if got := take(t, work, 1); len(got) != 0 {
			t.Errorf("received %s, which has used up its one receive since it was moved", texts(got))
		}
		if m := one(t, dead); m.ReceiveCount != 3 {
			t.Errorf("the dead letter is %+v", m)
		}
	})
}

func TestG7MoveTaskIsPacedAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		deadLetters(t, b, 100)
		target := create(t, b, "target", nil)
		handle := startMove(t, b, b.ARN("dead"), b.ARN("target"), 20)
		time.Sleep(2*time.Second + 50*time.Millisecond)
		task := lastMove(t, b, "dead")
		if task.Handle != handle || task.Status != MoveRunning || task.Rate != 20 || task.Destination != b.ARN("target") {
			t.Errorf("running task %+v", task)
		}
		if task.Moved < 38 || task.Moved > 44 || task.ToMove != 100 {
			t.Errorf("%d of %d messages moved in 2 s at 20 a second", task.Moved, task.ToMove)
		}
		moved, err := b.CancelMoveTask(t.Context(), handle)
		if err != nil || moved != task.Moved {
			t.Errorf("cancelled after %d messages, %v", moved, err)
		}
		time.Sleep(time.Minute)
		l, _ := b.Ledger(target.Name())
		if task = lastMove(t, b, "dead"); task.Status != MoveCancelled || task.Moved != moved || l.Live != moved {
			t.Errorf("after the cancel %+v, and %d messages are there", task, l.Live)
		}
		_, err = b.CancelMoveTask(t.Context(), handle)
		wantError(t, err, queue.CodeResourceNotFound, "Task does not exist.")
		startMove(t, b, b.ARN("dead"), b.ARN("target"), 500)
		time.Sleep(time.Minute)
		if l, _ := b.Ledger(target.Name()); l.Live != 100 {
			t.Errorf("the second task left %d messages there, want 100", l.Live)
		}
		if tasks, err := b.MoveTasks(b.ARN("dead"), 10); len(tasks) != 2 || tasks[1].Status != MoveCancelled {
			t.Errorf("tasks %+v, %v", tasks, err)
		}
	})
}

func TestG7MoveTaskGoesOnAfterARestartAndAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		deadLetters(t, b, 60)
		startMove(t, b, b.ARN("dead"), "", 10)
		time.Sleep(2 * time.Second)
		before := lastMove(t, b, "dead")
		b = reopen(t, b)
		if task := lastMove(t, b, "dead"); task.Moved < before.Moved || task.Status != MoveRunning ||
			task.Handle != before.Handle {
			t.Errorf("after the restart %+v, before %+v", task, before)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		b = killed(t, b)
		time.Sleep(time.Minute)
		if task := lastMove(t, b, "dead"); task.Moved != 60 || task.Status != MoveCompleted {
			t.Errorf("at the end %+v", task)
		}
	})
}

func TestFailingMoveTaskIsLoggedOnce(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	synctest.Test(t, func(t *testing.T) {
		var log logText
		b := openTest(t, &Options{vfs: fs.Name(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		deadLetters(t, b, 4)
		startMove(t, b, b.ARN("dead"), "", 1)
		for failures := 1; failures <= 2; failures++ {
			synctest.Wait()
			fs.SetFail(func(op, _ string, _ int) int32 {
				if op == "write" {
					return sqlite3.SQLITE_FULL
				}
				return sqlite3.SQLITE_OK
			})
			time.Sleep(10 * moveRetry)
			if n := strings.Count(log.String(), `msg="batch of a move task failed, retrying" queue=dead err=`); n != failures {
				t.Errorf("logged %d times, want %d: %s", n, failures, &log)
			}
			fs.SetFail(nil)
			time.Sleep(moveRetry)
		}
		time.Sleep(10 * moveRetry)
		if task := lastMove(t, b, "dead"); task.Status != MoveCompleted || task.Moved != 4 {
			t.Errorf("in the end %+v", task)
		}
	})
}

func TestLoggedStorageErrorHasTheCause(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	cause := errors.New("the disk is broken")
	if err := loggedError(b.dir, b.read(func(*conn) error { return cause })); !errors.Is(err, cause) ||
		!strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("a failed read is logged as %v", err)
	}
	if err := loggedError(b.dir, errFull); err != errFull {
		t.Errorf("a full disk is logged as %v", err)
	}
}

func TestG7MoveTaskFailsWhenItsDestinationVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		deadLetters(t, b, 50)
		create(t, b, "target", nil)
		startMove(t, b, b.ARN("dead"), b.ARN("target"), 10)
		time.Sleep(time.Second)
		if err := b.DeleteQueue(t.Context(), "target"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		task := lastMove(t, b, "dead")
		if task.Status != MoveFailed || task.FailureReason != "AWS.SimpleQueueService.NonExistentQueue" || task.Moved == 0 {
			t.Errorf("task %+v", task)
		}
		if l, _ := b.Ledger("dead"); l.Live != 50-task.Moved {
			t.Errorf("%d messages stayed, %d were moved, of 50", l.Live, task.Moved)
		}
	})
}

func TestG7MoveTaskLeavesWhatIsInFlightOrHasNoSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		_, dead := deadLetters(t, b, 3)
		send(t, dead, body("sent here")...)
		inFlight := one(t, dead)
		startMove(t, b, b.ARN("dead"), "", 0)
		synctest.Wait()
		task := lastMove(t, b, "dead")
		if task.Status != MoveFailed || task.FailureReason != reasonNoSource || task.Moved != 2 || task.ToMove != 3 {
			t.Errorf("task %+v", task)
		}
		if m := one(t, dead); m.Body != "sent here" {
			t.Errorf("received %+v", m)
		}
		remove(t, dead, inFlight.ReceiptHandle)
	})
}

func TestG7MoveTaskPassesOverWhatWasPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		_, dead := deadLetters(t, b, 3)
		send(t, dead, body("does not say where it came from")...)
		if _, err := b.PurgeQueue(t.Context(), "dead"); err != nil {
			t.Fatal(err)
		}
		startMove(t, b, b.ARN("dead"), "", 0)
		synctest.Wait()
		if task := lastMove(t, b, "dead"); task.Status != MoveCompleted || task.Moved != 0 || task.ToMove != 0 {
			t.Errorf("task %+v", task)
		}
	})
}

func TestG7MoveTaskKeepsTheOrderOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		fifo := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
		dead, target := create(t, b, "dead.fifo", fifo), create(t, b, "target.fifo", fifo)
		fifo["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q}`, b.ARN("dead.fifo"))
		create(t, b, "work.fifo", fifo)
		for _, m := range []string{"a1", "b1", "a2", "b2", "a3"} {
			send(t, dead, queue.Outgoing{Body: m, GroupID: m[:1]})
		}
		if m := one(t, dead); m.Body != "a1" {
			t.Fatalf("received %+v", m)
		}
		startMove(t, b, b.ARN("dead.fifo"), b.ARN("target.fifo"), 0)
		synctest.Wait()
		if got := texts(take(t, target, 10)); got != "b1 b2" {
			t.Errorf("moved %s; a2 and a3 are behind a1, which is in flight", got)
		}
	})
}

func TestG11SecondMoveTaskOfASourceIsInvalidParameterValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		deadLetters(t, b, 100)
		create(t, b, "target", nil)
		startMove(t, b, b.ARN("dead"), b.ARN("target"), 1)
		_, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead")})
		wantError(t, err, queue.CodeInvalidParameterValue,
			"There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
		if !errors.Is(err, ErrMoveRunning) {
			t.Errorf("%v does not wrap ErrMoveRunning", err)
		}
		synctest.Wait()
	})
}

func TestG7MoveTaskRefusals(t *testing.T) {
	b := openTest(t, nil)
	deadLetters(t, b, 1)
	create(t, b, "fifo.fifo", map[string]string{"FifoQueue": "true"})
	gone := b.ARN("gone")
	_, err := b.StartMoveTask(t.Context(), MoveRequest{Source: gone})
	wantError(t, err, queue.CodeResourceNotFound,
		"The resource that you specified for the SourceArn parameter doesn't exist.")
	_, err = b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead"), Destination: gone})
	wantError(t, err, queue.CodeResourceNotFound,
		"The resource that you specified for the DestinationArn parameter doesn't exist.")
	_, err = b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("work")})
	wantError(t, err, queue.CodeInvalidParameterValue, "Source queue must be configured as a Dead Letter Queue.")
	for _, rate := range []int{-1, 501} {
		if _, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead"), Rate: rate}); err == nil {
			t.Errorf("a rate of %d was accepted", rate)
		}
	}
	for _, to := range []string{"dead", "fifo.fifo"} {
		if _, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead"), Destination: b.ARN(to)}); err == nil {
			t.Errorf("a move to %s was accepted", to)
		}
	}
	for _, handle := range []string{"", "x", base64.StdEncoding.EncodeToString([]byte(`{"taskId":"a"}`))} {
		_, err := b.CancelMoveTask(t.Context(), handle)
		wantError(t, err, queue.CodeInvalidParameterValue, "Value for parameter TaskHandle is invalid.")
	}
	unknown := func(source string) string {
		return base64.StdEncoding.EncodeToString(rawJSON(moveHandle{"5a6e", source}))
	}
	_, err = b.CancelMoveTask(t.Context(), unknown(b.ARN("dead")))
	wantError(t, err, queue.CodeResourceNotFound, "Task does not exist.")
	_, err = b.CancelMoveTask(t.Context(), unknown(gone))
	wantError(t, err, queue.CodeResourceNotFound,
		"The resource that you specified for the SourceArn parameter doesn't exist.")
	_, err = b.MoveTasks(gone, 1)
	wantError(t, err, queue.CodeResourceNotFound,
		"The resource that you specified for the SourceArn parameter doesn't exist.")
	if _, err := b.MoveTasks(b.ARN("dead"), 11); err == nil {
		t.Error("11 results were allowed")
	}
}

func TestG7DeletedSourceHasNoTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		deadLetters(t, b, 5)
		startMove(t, b, b.ARN("dead"), "", 1)
		if err := b.DeleteQueue(t.Context(), "dead"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		create(t, b, "dead", nil)
		if tasks, err := b.MoveTasks(b.ARN("dead"), 10); err != nil || len(tasks) != 0 {
			t.Errorf("tasks %+v, %v", tasks, err)
		}
	})
}
