package app

// publish writes what get-config answers about a version that is about to be prepared.
func (a *App) publish(v *version) error {
	v.facts = v.number
	if a.opts.Facts == nil {
		return nil
	}
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	return a.opts.Facts.Publish(v.facts, v.bundle, v.change.Settings)
}

// RefreshFacts publishes the answers of get-config about the version that serves anew: settings have changed.
// It is called by the holder of the token of Changing.
func (a *App) RefreshFacts() {
	v := a.replicas.current()
	if a.opts.Facts == nil {
		return
	}
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	if err := a.opts.Facts.Publish(v.facts, v.bundle, nil); err != nil {
		a.opts.Log.Warn("get-config answers with the old settings", "err", err)
	}
}

// serveFacts has get-config answer about a version where nothing names another.
func (a *App) serveFacts(v version) {
	if a.opts.Facts == nil {
		return
	}
	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	if err := a.opts.Facts.Serve(v.facts); err != nil {
		a.opts.Log.Warn("get-config answers for the old version", "version", v.number, "err", err)
	}
}

// removeFacts removes the answers of get-config about a version, unless it serves or processes of it still run.
func (a *App) removeFacts(number int) {
	if a.opts.Facts == nil || a.replicas.current().facts == number {
		return
	}
	if users := a.replicas.balancer.find(func(r *replica) bool { return r.version.facts == number }); len(users) > 0 {
		return
	}

	a.factsMu.Lock()
	defer a.factsMu.Unlock()
	if err := a.opts.Facts.Remove(number); err != nil {
		a.opts.Log.Warn("answers of get-config not removed", "err", err)
	}
}

// environ is the environment of a process of a version, which listens at a port unless that is 0. asApp is true for a
// process of the app's user.
func (o *Options) environ(v version, port int, asApp bool) []string {
	env := o.Environ(v.bundle, port)
	if o.Facts == nil {
		return env
	}
	return o.Facts.Environ(env, v.facts, asApp)
}
