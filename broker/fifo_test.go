package broker

import (
	"fmt"
	"slices"
	"testing"
)

type fifoKeys struct {
	*fifoOrder
	messages map[int64]*message
}

func newFIFOKeys() *fifoKeys { return &fifoKeys{newFIFO(), map[int64]*message{}} }

func (f *fifoKeys) put(group string, keys ...int64) {
	for _, key := range keys {
		f.messages[key] = &message{key: key, group: f.group(group)}
		f.add(f.messages[key])
	}
}

func (f *fifoKeys) takeAt(now int64, limit int) (keys []int64) {
	return f.takeAs(now, limit, map[int64]decision{})
}

func (f *fifoKeys) takeAs(now int64, limit int, decisions map[int64]decision) (keys []int64) {
	decide := func(m *message) decision {
		if m.epoch = 1; decisions[m.key] != deliverIt {
			return decisions[m.key]
		}
		return deliverIt
	}
	for _, m := range f.take(takeRequest{limit: limit, now: now, decide: decide}) {
		keys = append(keys, m.key)
	}
	return keys
}

func (f *fifoKeys) settle(keys ...int64) {
	for _, key := range keys {
		f.messages[key].gone = true
		f.forget(f.messages[key])
	}
}

func (f *fifoKeys) giveBack(keys ...int64) {
	for _, key := range keys {
		f.requeue(f.messages[key])
	}
}

func (f *fifoKeys) expect(t *testing.T, limit int, want ...int64) {
	t.Helper()
	if could := f.deliverable(0); could != (len(want) > 0) {
		t.Errorf("deliverable is %t, want %t", could, len(want) > 0)
	}
	if got := f.takeAt(0, limit); !slices.Equal(got, want) {
		t.Errorf("given out %d, want %d", got, want)
	}
}

func TestTurnsOfGroups(t *testing.T) {
	t.Parallel()
	first := func(key int64) []*message { return []*message{{key: key}, {key: 100}} }
	groups := []*group{
		{messages: first(3)},
		{messages: first(7)},
		{messages: first(2), behind: 7, given: 4},
		{messages: first(1), behind: 7, given: 5},
		{messages: first(8)},
		{messages: first(9), behind: 8, given: 3},
		{messages: first(6), behind: 9, given: 1},
	}
	for i, g := range groups {
		for j, other := range groups {
			if got := g.turnBefore(other); got != (i < j) {
				t.Errorf("group %d before group %d: %t", i, j, got)
			}
		}
	}
}

func TestLockedGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		out    []int64
		locked bool
	}{{nil, false}, {[]int64{4}, true}, {[]int64{5}, false}, {[]int64{6}, false}, {[]int64{4, 6}, true}} {
		g := &group{messages: []*message{{key: 5}}, out: c.out}
		if g.locked() != c.locked {
			t.Errorf("with %d out the group of message 5 is locked: %t", c.out, g.locked())
		}
	}
}

func TestGroupWaitsForItsFirstMessages(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("g", 1, 2, 3, 4)
	f.expect(t, 3, 1, 2, 3)
	f.expect(t, 10) // 4 waits for the in-flight messages
	f.settle(2)
	f.giveBack(3)
	f.expect(t, 10) // 3 waits for 1, although 2 is settled
	f.giveBack(1)
	f.expect(t, 1, 1)
	f.settle(1)
	f.expect(t, 10, 3, 4)
	f.giveBack(3)
	f.expect(t, 10, 3) // 3 does not wait for 4, which comes later
	f.settle(4, 3)
	if len(f.groups) != 0 {
		t.Errorf("%d groups are kept without messages", len(f.groups))
	}
}

func TestWithdrawnMessageIsNotDelivered(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{1, 2, 3} {
		f := newFIFOKeys()
		f.put("g", 1, 2, 3)
		f.expect(t, 3, 1, 2, 3)
		f.giveBack(1, 2, 3)
		f.withdraw(f.messages[at])
		f.withdraw(f.messages[at])
		f.resume(f.messages[at])
		var before []int64
		for key := range at - 1 {
			before = append(before, key+1)
		}
		f.expect(t, 10, before...)
	}
}

func TestDelayedGroupsBecomeReadyInOrder(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	for key, due := range map[int64]int64{1: 20, 2: 10, 3: 30, 4: 20} {
		f.messages[key] = &message{key: key, due: due, group: f.group(fmt.Sprint(key))}
		f.add(f.messages[key])
	}
	if f.deliverable(9) || !f.deliverable(10) {
		t.Error("the first delay ends at 10")
	}
	for _, c := range []struct {
		now  int64
		want []int64
	}{{10, []int64{2}}, {19, nil}, {20, []int64{1, 4}}, {29, nil}, {40, []int64{3}}} {
		if got := f.takeAt(c.now, 10); !slices.Equal(got, c.want) {
			t.Errorf("at %d given out %d, want %d", c.now, got, c.want)
		}
	}
}

func TestDelayWithinAGroup(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("g", 1)
	f.messages[2] = &message{key: 2, due: 10, group: f.group("g")}
	f.add(f.messages[2])
	if got := f.takeAt(9, 10); !slices.Equal(got, []int64{1}) {
		t.Errorf("at 9 given out %d, want 1", got)
	}
	f.giveBack(1)
	if got := f.takeAt(10, 10); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("at 10 given out %d, want 1 and 2", got)
	}
}

func TestReceiveTakesItsLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range [][]int64{{}, {1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4}} {
		f := newFIFOKeys()
		f.put("a", 1, 2)
		f.put("b", 3, 4)
		if got := f.takeAt(0, limit); !slices.Equal(got, want) {
			t.Errorf("with limit %d given out %d, want %d", limit, got, want)
		}
		if n := f.size(); n != 4-len(want) {
			t.Errorf("%d fresh messages after %d", n, want)
		}
	}
}

func TestDecisionsWithinAGroup(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("g", 1, 2, 3, 4, 5)
	if got := f.takeAs(0, 10, map[int64]decision{2: skipIt, 4: deadLetterIt}); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("given out %d, want 1 and 3", got)
	}
	f.settle(1, 3)
	f.expect(t, 10) // 5 waits for 4
	f.settle(4)
	f.expect(t, 10, 5)
}

func TestGroupsTakeTurns(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("a", 1, 2, 3)
	f.put("b", 4, 5, 6)
	f.put("c", 7, 8)
	f.expect(t, 1, 1)
	f.expect(t, 1, 4)
	f.settle(4, 1) // b is ready first, but a was delivered first
	f.expect(t, 1, 7)
	f.expect(t, 1, 2)
	f.expect(t, 1, 5)
	f.put("d", 9)
	f.settle(2)
	f.put("e", 10)
	f.expect(t, 10, 9, 3, 10) // a became deliverable again between d and e
}

func TestNewMessagesKeepTheTurnOfTheirGroup(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("a", 1, 2)
	f.put("b", 3)
	f.expect(t, 1, 1)
	f.settle(1)
	f.put("a", 4)
	f.expect(t, 10, 3, 2, 4)
}

func TestTurnsAreKeptWhileMessagesAreReread(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("a", 1, 2)
	f.put("b", 3, 4)
	f.put("never given", 5)
	f.expect(t, 1, 1)
	f.settle(1)
	f.expect(t, 1, 3)
	f.settle(3)
	var dropped []int64
	f.reset(func(m *message) { dropped = append(dropped, m.key) })
	if slices.Sort(dropped); !slices.Equal(dropped, []int64{2, 4, 5}) || f.size() != 0 || f.deliverable(0) {
		t.Errorf("the reset drops %d and leaves %d", dropped, f.size())
	}
	if len(f.groups) != 2 {
		t.Errorf("%d groups are kept, want the two that have a turn", len(f.groups))
	}
	f.put("b", 4)
	f.put("a", 2)
	f.complete()
	f.expect(t, 1, 2)
	f.settle(2)
	f.expect(t, 1, 4)
	f.settle(4)
	if len(f.groups) != 0 {
		t.Errorf("%d groups are kept without messages", len(f.groups))
	}
}

func TestCompleteRemovesEmptyGroups(t *testing.T) {
	t.Parallel()
	f := newFIFOKeys()
	f.put("empty", 1)
	f.put("out", 2)
	f.put("queued", 3)
	f.put("both", 4, 5)
	f.expect(t, 10, 1, 2, 3, 4, 5)
	f.giveBack(3, 4)
	f.partial = true
	f.settle(1)
	if f.complete(); len(f.groups) != 3 || f.groups["empty"] != nil {
		t.Errorf("%d groups are kept, want the three with messages queued or out", len(f.groups))
	}
}

func TestEmptyGroupsAreBounded(t *testing.T) {
	t.Parallel()
	for others, kept := range map[int]bool{maxEmptyGroups - 2: true, maxEmptyGroups - 1: false, maxEmptyGroups: false} {
		f := newFIFOKeys()
		f.put("g", 1)
		f.expect(t, 1, 1)
		f.partial = true
		for i := range others {
			f.group(fmt.Sprint(i))
		}
		f.settle(1)
		if _, found := f.groups["g"]; found != kept {
			t.Errorf("beside %d others a group without messages is kept: %t", others, found)
		}
	}
}
