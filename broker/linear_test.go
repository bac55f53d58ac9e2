package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type linearCall struct{ act, id string }

type linearMessage struct {
	id       string
	inFlight bool
}

// Messages are ordered by sequence number (FIFO) or ID (standard), so that equal states compare equal, which shortens
// the search.
type linearState struct {
	messages []linearMessage
	last     string
}

// step returns false if the call cannot have its result in this state.
func (s linearState) step(fifo bool, call linearCall) (bool, linearState) {
	id, sequence, _ := strings.Cut(call.id, " ")
	call.id = id
	next := slices.Clone(s.messages)
	at := slices.IndexFunc(next, func(m linearMessage) bool { return m.id == call.id })
	visible := slices.IndexFunc(next, func(m linearMessage) bool { return !m.inFlight })
	if fifo && len(next) > 0 && next[0].inFlight {
		visible = -1
	}
	switch call.act {
	case "send":
		if fifo && sequence <= s.last {
			return false, s
		}
		next, s.last = append(next, linearMessage{id: call.id}), sequence
		if !fifo {
			slices.SortFunc(next, func(a, b linearMessage) int { return strings.Compare(a.id, b.id) })
		}
		return at < 0, linearState{next, s.last}
	case "receive":
		if call.id == "" {
			return visible < 0, s
		}
		if visible < 0 || at < 0 || next[at].inFlight || fifo && at != 0 {
			return false, s
		}
		next[at].inFlight = true
	case "delete":
		if at < 0 || !next[at].inFlight {
			return false, s
		}
		next = slices.Delete(next, at, at+1)
	case "return":
		if at < 0 || !next[at].inFlight {
			return false, s
		}
		next[at].inFlight = false
	}
	return true, linearState{next, s.last}
}

func TestConcurrentCallsAreLinearizable(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		model := porcupine.Model{
			Init: func() any { return linearState{} },
			Step: func(state, input, output any) (bool, any) {
				call := input.(linearCall)
				if call.id == "" {
					call.id = output.(string)
				}
				return state.(linearState).step(fifo, call)
			},
			Equal: func(a, b any) bool {
				x, y := a.(linearState), b.(linearState)
				return x.last == y.last && slices.Equal(x.messages, y.messages)
			},
			DescribeOperation: func(input, output any) string {
				return fmt.Sprintf("%s %s: %s", input.(linearCall).act, input.(linearCall).id, output)
			},
		}
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("fifo=%t/seed=%d", fifo, seed), func(t *testing.T) {
				t.Parallel()
				history := recordHistory(t, fifo, seed)
				if result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result != porcupine.Ok {
					t.Errorf("%v: no order explains\n%s", result, describeHistory(model, history))
				}
			})
		}
	}
}

func recordHistory(t *testing.T, fifo bool, seed uint64) (history []porcupine.Operation) {
	name, attrs, group := "q", map[string]string(nil), ""
	if fifo {
		name, attrs, group = "q.fifo", map[string]string{"FifoQueue": "true"}, "g"
	}
	dir := testpeer.MemoryFolder(t)
	q := create(t, openDir(t, dir, quiet()), name, attrs)
	began := time.Now()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			hour := time.Hour
			held := map[string]string{} // receipt handles by message ID
			note := func(call linearCall, do func() string) {
				called := time.Since(began)
				output := do()
				mu.Lock()
				defer mu.Unlock()
				history = append(history, porcupine.Operation{ClientId: client, Input: call, Call: int64(called),
					Output: output, Return: int64(time.Since(began))})
			}
			for i := range 12 {
				switch n := random.IntN(10); {
				case n < 4:
					note(linearCall{act: "send"}, func() string {
						sent, err := q.Send(t.Context(), []queue.Outgoing{{Body: "x", GroupID: group,
							DedupID: map[bool]string{true: fmt.Sprint(client, "-", i)}[fifo]}})
						if err != nil || sent[0].Err != nil {
							t.Errorf("sending: %v", err)
							return ""
						}
						return strings.TrimSpace(sent[0].ID + " " + sent[0].SequenceNumber)
					})
				case n < 7 || len(held) == 0:
					note(linearCall{act: "receive"}, func() string {
						msgs, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Visibility: &hour, Wait: new(time.Duration)})
						if err != nil {
							t.Errorf("receiving: %v", err)
						}
						if len(msgs) == 0 {
							return ""
						}
						held[msgs[0].ID] = msgs[0].ReceiptHandle
						return msgs[0].ID
					})
				default:
					for id, handle := range held {
						delete(held, id)
						settle(t, q, n < 9, id, handle, note)
						break
					}
				}
			}
		})
	}
	clients.Wait()
	return history
}

func settle(t *testing.T, q *Queue, remove bool, id, handle string, note func(linearCall, func() string)) {
	if remove {
		note(linearCall{"delete", id}, func() string {
			if err := errors.Join(q.Delete(t.Context(), []string{handle})...); err != nil {
				t.Errorf("deleting: %v", err)
			}
			return ""
		})
		return
	}
	note(linearCall{"return", id}, func() string {
		errs := q.ChangeVisibility(t.Context(), []queue.VisibilityChange{{ReceiptHandle: handle}})
		if err := errors.Join(errs...); err != nil {
			t.Errorf("returning: %v", err)
		}
		return ""
	})
}

func describeHistory(model porcupine.Model, history []porcupine.Operation) (text string) {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range history {
		text += fmt.Sprintf("%d: %d to %d: %s\n", o.ClientId, o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
	}
	return text
}
