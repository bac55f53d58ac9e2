package instances

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/observe/health"
	"tendril/queue"
)

func signedFleet(t *testing.T) (f *fleet, a, b *process, w *Watcher, log *bytes.Buffer) {
	t.Helper()
	f, log = newFleet(), &bytes.Buffer{}
	f.key = fleetKey
	a = f.start(t, "a")
	after(Heartbeat)
	b = f.start(t, "b")
	t.Cleanup(func() { a.kill(); b.kill(); a.ended.Wait(); b.ended.Wait() })
	after(3 * Heartbeat)
	opts, _ := f.options()
	opts.Log = slog.New(slog.NewTextHandler(log, nil))
	w = NewWatcher(opts)
	return f, a, b, w, log
}

func readSlot(t *testing.T, s Store, slot string) queue.Lease {
	t.Helper()
	return mustRead(t, s, "jobs/instances/"+slot)
}

func TestRecordsThatAreNotGenuineAreNotUsed(t *testing.T) {
	t.Parallel()
	record := Record{ID: "id", Name: "a", Health: health.Ok, Version: "1"}
	for _, c := range []struct {
		name string
		// attack receives an earlier and the current content of slot 0, and the content of slot 1.
		attack func(earlier, now, other queue.Lease) queue.Lease
		want   error
	}{
		{"without a signature, as of an earlier version", func(_, now, _ queue.Lease) queue.Lease {
			return record.lease("jobs/instances/0", "id/900", "")
		}, ErrUnsigned},
		{"signed with another key", func(_, now, _ queue.Lease) queue.Lease {
			return record.lease("jobs/instances/0", "id/900", "fedcba9876543210")
		}, ErrForged},
		{"of another environment", func(_, now, _ queue.Lease) queue.Lease {
			return record.lease("payments/instances/0", "id/900", fleetKey)
		}, ErrForged},
		{"of another slot", func(_, _, other queue.Lease) queue.Lease { return other }, ErrForged},
		{"changed content", func(_, now, _ queue.Lease) queue.Lease {
			now.Data = strings.Replace(now.Data, `"in_flight":5`, `"in_flight":0`, 1)
			return now
		}, ErrForged},
		{"changed version", func(_, now, _ queue.Lease) queue.Lease { now.Version += "0"; return now }, ErrForged},
		{"with an added field", func(_, now, _ queue.Lease) queue.Lease {
			now.Data = strings.TrimSuffix(now.Data, "}") + `,"follows":true}`
			return now
		}, ErrForged},
		{"the signature of a desired state", func(_, now, _ queue.Lease) queue.Lease {
			sealed := record.lease("jobs/instances/0", "id/900", "")
			text := signedText("jobs/instances/0", "id/900", sealed.Data)
			sealed.Data = strings.TrimSuffix(sealed.Data, "}") + signatureMark + FleetKey(fleetKey).sign(desiredState, text) + `"}`
			return sealed
		}, ErrForged},
		{"replayed", func(earlier, _, _ queue.Lease) queue.Lease { return earlier }, ErrReplayed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, _, _, w, log := signedFleet(t)
				if all, err := w.Read(t.Context()); err != nil || len(all) != 2 || !all[0].Counts() || !all[1].Counts() {
					t.Fatalf("before: %+v, %v", all, err)
				}
				earlier := readSlot(t, f.store, "0")
				after(Heartbeat)
				if _, err := w.Read(t.Context()); err != nil {
					t.Fatal(err)
				}
				now := readSlot(t, f.store, "0")
				w.store = substitute{f.store, c.attack(earlier, now, readSlot(t, f.store, "1"))}
				for range 3 {
					all, err := w.Read(t.Context())
					if err != nil || len(all) != 2 {
						t.Fatalf("%+v, %v", all, err)
					}
					if !errors.Is(all[0].Refused, c.want) || all[0].Counts() || !all[1].Counts() {
						t.Errorf("refused: %v, want %v; the other one: %v", all[0].Refused, c.want, all[1].Refused)
					}
					after(time.Second)
				}
				if n := strings.Count(log.String(), "instance record not authenticated"); n != 1 {
					t.Errorf("logged %d times: %s", n, log)
				}

				w.store = f.store
				after(Heartbeat)
				if all, _ := w.Read(t.Context()); !all[0].Counts() {
					t.Errorf("after the instance reported again: %v", all[0].Refused)
				}
			})
		})
	}
}

type substitute struct {
	Store
	lease queue.Lease
}

func (s substitute) Read(ctx context.Context, name string) (queue.Lease, error) {
	if name == "jobs/instances/0" {
		return s.lease, nil
	}
	return s.Store.Read(ctx, name)
}

func TestRecordOfAnEarlierOwnerIsReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, _, w, _ := signedFleet(t)
		if _, err := w.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := readSlot(t, f.store, "0")
		a.stop(t)
		c := f.start(t, "c")
		defer func() { c.kill(); c.ended.Wait() }()
		after(2 * Heartbeat)
		if all, err := w.Read(t.Context()); err != nil || all[0].Name != "c" || !all[0].Counts() {
			t.Fatalf("%+v, %v", all, err)
		}
		w.store = substitute{f.store, last}
		if all, err := w.Read(t.Context()); err != nil || !errors.Is(all[0].Refused, ErrReplayed) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestSignedRecordsAreReadWithoutAKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _, _, _, _ := signedFleet(t)
		f.key = ""
		all, err := f.watcher().Read(t.Context())
		if err != nil || len(all) != 2 || !all[0].Counts() || all[0].Name == "" || all[0].Load.InWork != 5 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestAnnouncedRecordIsReadOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, _, w, _ := signedFleet(t)
		announced := a.Announcement()
		before := f.reads.Load()
		for range 5 {
			if r, err := w.Announced(t.Context(), announced); err != nil || r.Name != "a" {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		after(3 * Heartbeat)
		if a.Announcement() != announced {
			t.Error("a heartbeat without a change is announced")
		}
		if n := f.reads.Load() - before; n != 1 {
			t.Errorf("%d reads", n)
		}

		a.paused.Store(true)
		after(statusInterval + pollInterval)
		if r, err := w.Announced(t.Context(), a.Announcement()); err != nil || len(r.PausedQueues) != 1 {
			t.Errorf("after a change: %+v, %v", r, err)
		}
		if _, err := w.Announced(t.Context(), "0.900"); !errors.Is(err, ErrReplayed) {
			t.Errorf("an older record: %v", err)
		}
		if _, err := w.Announced(t.Context(), ""); err == nil {
			t.Error("no announcement: no error")
		}
	})
}
