package broker

// deadlines is a heap of the messages in flight, the one whose visibility
// timeout ends first on top. It is written out because a queue in full flow
// pushes and removes hundreds of thousands a second.
type deadlines struct{ heap []*message }

func (d *deadlines) len() int { return len(d.heap) }

// first returns the message whose flight ends first; nil when there is none.
func (d *deadlines) first() *message {
	if len(d.heap) == 0 {
		return nil
	}
	return d.heap[0]
}

func (d *deadlines) push(m *message) {
	m.index = len(d.heap)
	d.heap = append(d.heap, m)
	d.up(m.index)
}

// fix restores the order after the deadline of m changed.
func (d *deadlines) fix(m *message) {
	if !d.down(m.index) {
		d.up(m.index)
	}
}

func (d *deadlines) remove(m *message) {
	last := len(d.heap) - 1
	i := m.index
	if i != last {
		d.swap(i, last)
	}
	d.heap[last] = nil
	d.heap = d.heap[:last]
	if i != last && !d.down(i) {
		d.up(i)
	}
	m.index = -1
}

func (d *deadlines) swap(i, j int) {
	d.heap[i], d.heap[j] = d.heap[j], d.heap[i]
	d.heap[i].index, d.heap[j].index = i, j
}

func (d *deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if d.heap[parent].until <= d.heap[i].until {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

// down reports whether the message moved.
func (d *deadlines) down(i int) bool {
	from := i
	for {
		least := 2*i + 1
		if least >= len(d.heap) {
			return i != from
		}
		if right := least + 1; right < len(d.heap) && d.heap[right].until < d.heap[least].until {
			least = right
		}
		if d.heap[i].until <= d.heap[least].until {
			return i != from
		}
		d.swap(i, least)
		i = least
	}
}
