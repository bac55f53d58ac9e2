package app

func (a *App) publish(v *version) error {
	v.facts = v.number
	if a.opts.Facts == nil {
		return nil
	}
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	return a.opts.Facts.Publish(v.facts, v.bundle, v.change.Settings)
}

// RefreshFacts updates get-config's values after a change of settings. The caller must hold the Changing token.
func (a *App) RefreshFacts() {
	v := a.replicas.current()
	if a.opts.Facts == nil {
		return
	}
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	if err := a.opts.Facts.Publish(v.facts, v.bundle, nil); err != nil {
		a.opts.Log.Warn("get-config still uses the previous settings", "err", err)
	}
}

func (a *App) serveFacts(v version) {
	if a.opts.Facts == nil {
		return
	}
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	if err := a.opts.Facts.Serve(v.facts); err != nil {
		a.opts.Log.Warn("get-config still uses the previous version", "version", v.number, "err", err)
	}
}

func (a *App) removeFacts(number int) {
	if a.opts.Facts == nil || a.replicas.current().facts == number {
		return
	}
	isUser := func(r *replica) bool { return r.version.facts == number }
	if len(a.replicas.balancer.replicasWhere(isUser)) > 0 {
		return
	}

	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	if err := a.opts.Facts.Remove(number); err != nil {
		a.opts.Log.Warn("get-config values not removed", "err", err)
	}
}

func (o *Options) environ(v version, port int, asApp bool) []string {
	env := o.Environ(v.bundle, port)
	if o.Facts == nil {
		return env
	}
	return o.Facts.Environ(env, v.facts, asApp)
}
