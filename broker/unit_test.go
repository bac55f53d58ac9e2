package broker

import (
	"container/heap"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/queue"
)

func testSeal(t testing.TB) seal {
	t.Helper()
	s, err := newSeal([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMessageIDs(t *testing.T) {
	t.Parallel()
	s := testSeal(t)
	other, _ := newSeal([]byte("fedcba9876543210"))
	rapid.Check(t, func(rt *rapid.T) {
		key := makeKey(rapid.Int64Range(1, maxQueues).Draw(rt, "queue"), rapid.Int64Range(0, maxSeq).Draw(rt, "place"))
		id := s.messageID(new(block), key)
		if len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) {
			rt.Fatalf("%s is not a UUID of version 4", id)
		}
		if got, ok := s.origin(id); !ok || got != key {
			rt.Fatalf("%s leads to %d, want %d", id, got, key)
		}
		if _, ok := other.origin(id); ok {
			rt.Fatalf("%s is taken by another store", id)
		}
	})
	for _, bad := range []string{"", "x", "00000000-0000-4000-8000-000000000000", strings.Repeat("-", 36),
		strings.Repeat("0", 36)} {
		if _, ok := s.origin(bad); ok {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

func TestSequenceNumbers(t *testing.T) {
	t.Parallel()
	last := ""
	for _, seq := range []int64{1, 2, 3, 1000, maxSeq} {
		n := sequenceNumber(makeKey(7, seq))
		if len(n) != 20 || n <= last {
			t.Errorf("%s after %s", n, last)
		}
		last = n
	}
}

func TestHandles(t *testing.T) {
	t.Parallel()
	s := testSeal(t)
	good := receipt{makeKey(3, 5), 2, 9}
	handle := s.handle(new(block), good)
	if got, err := s.open(new(block), handle); err != nil || got != good {
		t.Fatal(got, err)
	}
	raw, _ := base64.URLEncoding.DecodeString(handle)
	for i := range len(raw) * 8 {
		forged := slices.Clone(raw)
		forged[i/8] ^= 1 << (i % 8)
		if _, err := s.open(new(block), base64.URLEncoding.EncodeToString(forged)); !errors.Is(err,
			&queue.Error{Code: queue.CodeReceiptHandleIsInvalid}) {
			t.Fatalf("bit %d changed: %v", i, err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		guess := slices.Clone(raw)
		for i := 16; i < len(guess); i++ {
			guess[i] = byte(r.Uint32())
		}
		if _, err := s.open(new(block), base64.URLEncoding.EncodeToString(guess)); err == nil {
			t.Fatal("a guess was taken")
		}
	}
}

func FuzzHandle(f *testing.F) {
	s := testSeal(f)
	f.Add(s.handle(new(block), receipt{1, 2, 3}))
	f.Add("")
	f.Add(strings.Repeat("A", 44))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := s.open(new(block), text)
		if err == nil && s.handle(new(block), r) != text {
			t.Errorf("%q is another form of a handle", text)
		}
	})
}

func FuzzMessageID(f *testing.F) {
	s := testSeal(f)
	f.Add(s.messageID(new(block), 1))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if key, ok := s.origin(text); ok && !strings.EqualFold(s.messageID(new(block), key), text) {
			t.Errorf("%q is another form of an id", text)
		}
	})
}

func TestAttributesEncoding(t *testing.T) {
	t.Parallel()
	list := []queue.Attribute{{Name: "b", Type: "String", Value: "x\ny"}, {Name: "a", Type: "Binary", Value: "\x00\xff"},
		{Name: "c", Type: "Number.int", Value: "1"}}
	got, err := decodeAttributes(encodeAttributes(list))
	want := []queue.Attribute{list[1], list[0], list[2]}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if encodeAttributes(nil) != nil {
		t.Error("no attributes take room")
	}
}

func FuzzDecodeAttributes(f *testing.F) {
	f.Add(encodeAttributes([]queue.Attribute{{Name: "a", Type: "String", Value: "x"}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := decodeAttributes(data)
		if err == nil && len(data) > 0 && len(list) == 0 {
			t.Error("read nothing of something")
		}
	})
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	base := record{body: "body", group: "g", dedup: "d", trace: "t", attributes: []byte("a")}
	checksumOf := func(r record) int64 { return checksum(r.contentSum(), r.originKey()) }
	sum := checksumOf(base)
	for name, change := range map[string]func(*record){
		"body": func(r *record) { r.body = "bodx" }, "group": func(r *record) { r.group = "h" },
		"dedup": func(r *record) { r.dedup = "" }, "trace": func(r *record) { r.trace += "t" },
		"attributes": func(r *record) { r.attributes = nil }, "border": func(r *record) { r.body, r.group = "bod", "yg" },
	} {
		changed := base
		if change(&changed); checksumOf(changed) == sum {
			t.Errorf("%s: not covered", name)
		}
	}
	moved := base
	moved.key, moved.origin, moved.sent, moved.received = 5, base.key, 7, 8
	base.key, moved.origin = 3, 3
	if checksumOf(base) != checksumOf(moved) {
		t.Error("it changes when a message moves")
	}
	if moved.origin = 4; checksumOf(base) == checksumOf(moved) {
		t.Error("another message has the same")
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDeadlines()
		var all []*message
		rt.Repeat(map[string]func(*rapid.T){
			"push": func(rt *rapid.T) {
				m := &message{until: rapid.Int64Range(0, 20).Draw(rt, "until")}
				heap.Push(&d, m)
				all = append(all, m)
			},
			"remove": func(rt *rapid.T) {
				if len(all) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "which")
				heap.Remove(&d, all[i].index)
				all = slices.Delete(all, i, i+1)
			},
			"fix": func(rt *rapid.T) {
				if len(all) == 0 {
					rt.Skip()
				}
				m := all[rapid.IntRange(0, len(all)-1).Draw(rt, "which")]
				m.until = rapid.Int64Range(0, 20).Draw(rt, "until")
				heap.Fix(&d, m.index)
			},
			"": func(rt *rapid.T) {
				if d.Len() != len(all) {
					rt.Fatal("length")
				}
				for _, m := range all {
					if d.first().until > m.until || d.items[m.index] != m {
						rt.Fatal("order")
					}
				}
			},
		})
	})
}

func TestDelays(t *testing.T) {
	t.Parallel()
	var d delays
	d.add(20, 1)
	d.add(10, 2)
	d.add(10, 1)
	d.add(30, 1)
	d.sub(20)
	d.sub(99)
	if d.order[0] != 10 || d.delayed != 4 {
		t.Error(d.order, d.delayed)
	}
	if n := d.expire(9); n != 0 {
		t.Error(n)
	}
	if n := d.expire(25); n != 3 || d.delayed != 1 {
		t.Error(n, d.delayed)
	}
	d.sub(10)
	if n := d.expire(100); n != 1 || d.delayed != 0 {
		t.Error(n, d.delayed)
	}
	if len(d.order) > 0 {
		t.Error("there is a next one")
	}
	for _, c := range [][2]int64{{0, 0}, {1, 10}, {10, 10}, {11, 20}} {
		if got := roundUp(c[0], delayGrid); got != c[1] {
			t.Error(c, got)
		}
	}
}

func TestClockIgnoresWallSteps(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := clock{start: start, anchor: start.Add(-24 * time.Hour).UnixMilli()}
	if now := c.now(); now < 0 || now > int64(time.Hour) {
		t.Errorf("a reading of %d", now)
	}
	at := int64(1500*time.Millisecond) + 1
	if c.milli(at) != c.anchor+1501 || c.floor(at) != c.anchor+1500 ||
		c.reading(c.anchor+1500) != int64(1500*time.Millisecond) {
		t.Error("conversions")
	}
}

func TestWaiters(t *testing.T) {
	t.Parallel()
	var l waiters
	a, b, c := l.join(), l.join(), l.join()
	woken := func(w chan struct{}) bool {
		select {
		case <-w:
			return true
		default:
			return false
		}
	}
	l.wake(1)
	if !woken(a) || woken(b) {
		t.Error("the first comes first")
	}
	l.leave(a)
	if !woken(b) || woken(c) {
		t.Error("a wake-up was lost")
	}
	l.leave(c)
	l.wake(5)
	if woken(c) {
		t.Error("it had left")
	}
}

func TestRing(t *testing.T) {
	t.Parallel()
	var r ring
	next, want := int64(0), int64(0)
	for range 50 {
		for range 70 {
			r.push(&message{key: next})
			next++
		}
		for range 60 {
			if m := r.pop(); m.key != want {
				t.Fatalf("%d, want %d", m.key, want)
			}
			want++
		}
	}
	if r.n != int(next-want) || r.items[r.head].key != want {
		t.Error(r.n)
	}
	for r.pop() != nil {
		want++
	}
	if want != next {
		t.Error(want, next)
	}
}

func TestStandardSharesTheHead(t *testing.T) {
	t.Parallel()
	s := newStandard()
	for i := range 4 {
		s.add(&message{key: int64(i)})
	}
	for i := range 3 {
		s.requeue(&message{key: int64(10 + i)})
	}
	all := takeRequest{limit: 10, decide: func(*message) decision { return deliverIt }}
	var keys []int64
	for _, m := range s.take(all) {
		keys = append(keys, m.key)
	}
	if want := []int64{10, 0, 11, 1, 12, 2, 3}; !slices.Equal(keys, want) {
		t.Error(keys)
	}
	s.add(&message{key: 1})
	s.requeue(&message{key: 2})
	s.requeue(&message{key: 3})
	all.preferReceived, all.limit = true, 2
	if got := s.take(all); len(got) != 2 || got[0].key != 2 || got[1].key != 3 {
		t.Error("fresh messages were taken while memory is full of old ones")
	}
}

func lowOf(r *diskGuard) (low, just bool) {
	err, just := r.refusal()
	return err == errFull, just
}

func TestDiskGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newDiskGuard(t.TempDir(), quiet().Logger)
		if free, total, err := freeSpace(r.dir); err != nil || free <= 0 || total < free {
			t.Error(free, total, err)
		}
		free, total := int64(1<<30), int64(64<<20)
		r.free = func(string) (int64, int64, error) { return free, total, nil }
		look := func() (low, just bool) { r.checked = time.Time{}; return lowOf(r) }
		held := func() int64 {
			info, err := os.Stat(r.reservePath())
			if err != nil {
				return 0
			}
			return info.Size()
		}
		if low, _ := look(); low || held() != reserveUnit {
			t.Errorf("a gigabyte is little: %t, %d bytes held", low, held())
		}
		if err := os.WriteFile(filepath.Join(r.dir, databaseName+"-wal"), make([]byte, 2<<20+1), 0o600); err != nil {
			t.Fatal(err)
		}
		if low, _ := look(); low || held() != 4<<20 {
			t.Errorf("the reserve grows with the log: %d bytes", held())
		}
		free = 4<<20 - 1
		if low, just := look(); !low || !just {
			t.Error("a sixteenth of a small disk is kept")
		}
		if low, just := look(); !low || just {
			t.Error("it has not just become low")
		}
		free = 4 << 20
		if low, _ := look(); low {
			t.Error("more than that is enough")
		}
		r.giveUpReserve()
		if low, _ := lowOf(r); held() != 0 || !low {
			t.Error("not given up")
		}
		if n := r.logPages(); n != total/64/pageSize {
			t.Errorf("a log of %d pages on a small disk", n)
		}
		total = 1 << 40
		if n := r.logPages(); n != checkpointPages {
			t.Errorf("a log of %d pages on a large disk", n)
		}
		r.free = func(string) (int64, int64, error) { return 0, 0, errors.New("no") }
		if low, _ := look(); low || r.logPages() != checkpointPages {
			t.Error("what cannot be measured is taken as enough")
		}
	})
}

func TestReserveShrinksWithTheLog(t *testing.T) {
	t.Parallel()
	r := newDiskGuard(t.TempDir(), quiet().Logger)
	r.free = func(string) (int64, int64, error) { return 1 << 30, 1 << 40, nil }
	log := filepath.Join(r.dir, databaseName+"-wal")
	reserved := func() int64 {
		info, err := os.Stat(r.reservePath())
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for range 2 {
		if err := os.WriteFile(log, make([]byte, 5<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		r.coverLog(5 << 20)
		if got := reserved(); got != 6<<20 {
			t.Errorf("%d bytes are reserved beside a log of 5 MB", got)
		}
		for _, length := range []int64{2 << 20, 0} {
			if err := os.Truncate(log, length); err != nil {
				t.Fatal(err)
			}
			r.shrinkReserve()
			if got := reserved(); got != length+reserveUnit {
				t.Errorf("%d bytes are reserved beside a log of %d", got, length)
			}
		}
	}
}

func TestARemovedReserveIsAllocatedAgain(t *testing.T) {
	t.Parallel()
	r := newDiskGuard(t.TempDir(), quiet().Logger)
	r.free = func(string) (int64, int64, error) { return 1 << 30, 1 << 40, nil }
	if err := os.WriteFile(filepath.Join(r.dir, databaseName+"-wal"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r.coverLog(5 << 20)
	for _, path := range []string{r.reservePath(), filepath.Join(r.dir, databaseName+"-wal")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}

	r.shrinkReserve()
	r.measure()

	info, err := os.Stat(r.reservePath())
	if err != nil {
		t.Fatal(err)
	}
	if allocated := info.Sys().(*syscall.Stat_t).Blocks * 512; allocated < reserveUnit {
		t.Errorf("%d bytes are allocated, want %d", allocated, int64(reserveUnit))
	}
}

func TestFileModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "data")
	b := openDir(t, dir, nil)
	send(t, create(t, b, "work", nil), body("x")...)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, _ := f.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
	if len(files) < 4 {
		t.Errorf("only %d files", len(files))
	}
}

func TestSameValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"30", "30", true}, {"30", "31", false}, {"", "", true},
		{`{"a":1,"b":[2]}`, `{ "b":[2], "a":1 }`, true}, {`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, "x", false},
	} {
		if sameValue(c.a, c.b) != c.same {
			t.Error(c)
		}
	}
}
