package app

func (a *App) publish(v *version) error {
	v.facts = v.number
	return a.changeFacts(func(f Facts) error { return f.Publish(v.facts, v.bundle, v.change.Settings) })
}

func (a *App) changeFacts(change func(Facts) error) error {
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	return change(a.opts.Facts)
}

// RefreshFacts updates get-config's values after a change of settings. The caller must hold the Changing token.
func (a *App) RefreshFacts() {
	v := a.replicas.current()
	if err := a.changeFacts(func(f Facts) error { return f.Publish(v.facts, v.bundle, nil) }); err != nil {
		a.opts.Log.Warn("get-config still uses the previous settings", "err", err)
	}
}

func (a *App) serveFacts(v version) {
	if err := a.changeFacts(func(f Facts) error { return f.Serve(v.facts) }); err != nil {
		a.opts.Log.Warn("get-config still uses the previous version", "version", v.displayed(), "err", err)
	}
}

func (a *App) removeFacts(number int) {
	hasFacts := func(r *replica) bool { return r.version.facts == number }
	if a.replicas.current().facts == number || len(a.replicas.balancer.replicasWhere(hasFacts)) > 0 {
		return
	}

	if err := a.changeFacts(func(f Facts) error { return f.Remove(number) }); err != nil {
		a.opts.Log.Warn("get-config values not removed", "err", err)
	}
}

func (o *Options) processEnviron(v version, port int, asApp bool) []string {
	return o.Facts.Environ(o.Environ(v.bundle, port), v.facts, asApp)
}
