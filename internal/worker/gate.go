package worker

import (
	"slices"
	"time"
)

// blocksInOrder is the order in which the reasons of a gate are listed.
var blocksInOrder = []Block{Paused, NotReady, AppDown, DeleteRefused, Throttling, Draining}

// gate holds the reasons against receiving; it is open without any.
// The worker obeys a change in its next step: see Worker.proceed.
type gate struct {
	core    *core
	reasons []Reason
}

// open reports whether nothing keeps the worker from receiving.
func (g *gate) open() bool { return len(g.reasons) == 0 }

// index returns where a reason stands, -1 when it does not.
func (g *gate) index(b Block) int {
	return slices.IndexFunc(g.reasons, func(r Reason) bool { return r.Block == b })
}

// has reports whether a reason stands.
func (g *gate) has(b Block) bool { return g.index(b) >= 0 }

// keeping reports whether messages that were received and not posted stay here: the
// gate is open, or will be by itself when the target takes messages again.
func (g *gate) keeping() bool { return g.open() || len(g.reasons) == 1 && g.has(Throttling) }

// close adds or renews a reason that holds since a time.
func (g *gate) close(b Block, text string, since time.Time) {
	switch i := g.index(b); {
	case i < 0:
		g.reasons = append(g.reasons, Reason{Block: b, Text: text, Since: since})
		slices.SortFunc(g.reasons, func(x, y Reason) int {
			return slices.Index(blocksInOrder, x.Block) - slices.Index(blocksInOrder, y.Block)
		})
	case g.reasons[i].Text == text:
		return
	default:
		g.reasons[i].Text = text
	}
	g.changed()
}

// lift takes a reason away; after the last one the worker goes on.
func (g *gate) lift(b Block) {
	if i := g.index(b); i >= 0 {
		g.reasons = slices.Delete(g.reasons, i, i+1)
		g.changed()
	}
}

// changed notifies the listener.
func (g *gate) changed() {
	notify(g.core, g.core.events.GateChanged, GateChanged{Open: g.open(), Reasons: slices.Clone(g.reasons)})
}
