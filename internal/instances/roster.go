package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"tendril/queue"
)

// Store stores the slots, the roster and the desired state as leases.
type Store interface {
	Read(ctx context.Context, name string) (queue.Lease, error)
	// Swap stores next if the stored lease has old's version. won is also true if next was already stored.
	Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error)
}

type roster struct {
	Slots int   `json:"slots"` // numbered from 0
	Free  []int `json:"free,omitempty"`
}

func (r roster) takeSlot() (roster, int) {
	if len(r.Free) > 0 {
		return roster{r.Slots, slices.Clone(r.Free[1:])}, r.Free[0]
	}
	return roster{r.Slots + 1, nil}, r.Slots
}

func (r roster) freeSlots(slots ...int) roster {
	all := append(slices.Clone(r.Free), slots...)
	slices.Sort(all)
	r.Free = slices.Compact(all)
	for len(r.Free) > 0 && r.Free[len(r.Free)-1] >= r.Slots-1 {
		last := r.Free[len(r.Free)-1]
		r.Free = r.Free[:len(r.Free)-1]
		r.Slots = min(r.Slots, last)
	}
	return r
}

func (r roster) usedSlots() (slots []int) {
	for slot := range r.Slots {
		if _, free := slices.BinarySearch(r.Free, slot); !free {
			slots = append(slots, slot)
		}
	}
	return slots
}

func rosterOf(l queue.Lease) (r roster, err error) {
	if l.Version == "" {
		return r, nil
	}
	if err = json.Unmarshal([]byte(l.Data), &r); err != nil || r.Slots < 0 {
		return r, fmt.Errorf("reading the list of instances: invalid content %.100q", l.Data)
	}
	return r, nil
}

// changeRoster returns false if another instance changed the roster at the same time.
func (d directory) changeRoster(ctx context.Context, version string, edit func(roster) roster) (done bool, err error) {
	stored, err := d.store.Read(ctx, d.rosterName())
	if err != nil {
		return false, err
	}
	list, err := rosterOf(stored)
	if err != nil {
		return false, err
	}
	text, _ := json.Marshal(edit(list))
	done, _, err = d.store.Swap(ctx, d.rosterName(), stored, queue.Lease{Version: version, Data: string(text)})
	return done, err
}

type directory struct {
	store       Store
	environment string
	key         FleetKey
}

func (d directory) rosterName() string { return d.environment + "/instances" }

func (d directory) slotName(slot int) string {
	return fmt.Sprintf("%s/instances/%d", d.environment, slot)
}
