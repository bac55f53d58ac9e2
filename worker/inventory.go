package worker

// memory keeps a value for each of the message ids used last, up to a bound.
type memory[V any] struct {
	bound  int
	values map[string]V
	order  []string // oldest first; may name ids that were forgotten
}

// remembered is how many ids a worker remembers: those that were done without
// a confirmed delete, and those whose receives did not all reach the app.
const remembered = 10000

func newMemory[V any](bound int) *memory[V] {
	return &memory[V]{bound: bound, values: make(map[string]V)}
}

func (m *memory[V]) get(id string) (V, bool) {
	v, ok := m.values[id]
	return v, ok
}

func (m *memory[V]) put(id string, v V) {
	if _, ok := m.values[id]; !ok {
		m.order = append(m.order, id)
	}
	m.values[id] = v
	for len(m.values) > m.bound || len(m.order) > 2*m.bound {
		delete(m.values, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *memory[V]) forget(id string) { delete(m.values, id) }
