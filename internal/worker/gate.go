package worker

import (
	"slices"
	"time"
)

var blocksInOrder = []Block{Paused, NotReady, AppDown, DeleteRefused, Throttling, Draining}

type gate struct {
	core    *core
	reasons []Reason
}

func (g *gate) open() bool { return len(g.reasons) == 0 }

func (g *gate) index(b Block) int {
	return slices.IndexFunc(g.reasons, func(r Reason) bool { return r.Block == b })
}

func (g *gate) has(b Block) bool { return g.index(b) >= 0 }

// keepsMessages reports whether unposted messages are kept: the gate is open, or closed only by throttling.
func (g *gate) keepsMessages() bool { return g.open() || len(g.reasons) == 1 && g.has(Throttling) }

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

func (g *gate) lift(b Block) {
	if i := g.index(b); i >= 0 {
		g.reasons = slices.Delete(g.reasons, i, i+1)
		g.changed()
	}
}

func (g *gate) changed() {
	notify(g.core, g.core.events.GateChanged, GateChanged{Open: g.open(), Reasons: slices.Clone(g.reasons)})
}
