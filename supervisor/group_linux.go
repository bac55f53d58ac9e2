package supervisor

// empty looks at processes: asking with signal 0 would find the unreaped
// leader, and any other zombie.
func (g *osGroup) empty() bool { return g.kin.empty() }
