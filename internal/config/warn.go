package config

import (
	"fmt"
	"os"
	"slices"
	"time"

	"tendril/internal/host/trust"
)

// warn tells of what is allowed and seldom meant: of the settings that hold
// for all queues, then of those that a queue has for itself.
func (l warner) warn() {
	l.warnRanges()
	l.warnTimes()
	l.warnRetries()
	l.warnIdle()
	l.warnClear()
	l.warnLimits()
	l.warnOrder()
	l.warnScaling()
	l.warnReadableSecrets()
	for i := range l.views {
		l.views[i].warnTimes()
		l.views[i].warnQueue(&l.cfg.Queues[i])
	}
}

// warnReadableSecrets warns of this user's files that hold secrets and that every user of the machine may read. Files of
// another owner, such as those that a platform mounts, are not this user's to change.
func (l warner) warnReadableSecrets() {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if !o.secret {
			continue
		}
		named := l.option(o.Name + secretFileSuffix)
		if path := named.get(&l.cfg.Settings); path != "" {
			l.warnReadable(named.Name, path)
		}
		inFile := func(v view) bool { return v.origin(o.Name).Layer == fromFile }
		if !l.isSet(named.Name) && (l.origin(o.Name).Layer == fromFile || slices.ContainsFunc(l.views, inFile)) {
			l.warnReadable(o.Name, l.cfg.ConfigFile)
		}
	}
}

func (l warner) warnReadable(option, path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 || !trust.Owns(info) {
		return
	}
	l.about(option, "type 'chmod o-r "+path+"'", "every user of this machine may read %s in %s (mode %04o)", option,
		shown(path), info.Mode().Perm())
}

// warnTimes tells of times that fight one another.
func (v *view) warnTimes() {
	v.warnVisibility()
	v.warnErrorVisibility()
	v.warnBatch()
}

// concerns reports whether one of the options differs for this view: what holds
// for all queues is told once, and not again for each.
func (v *view) concerns(names ...string) bool {
	return v.prefix == "" || slices.ContainsFunc(names, func(name string) bool {
		return v.own[v.option(name).Key] != Origin{}
	})
}

// hasFunction reports whether this view itself names a function; a queue with one of its own has its own view.
func (v *view) hasFunction() bool { return v.s.Function != "" || v.s.Lambda != "" }

// apart reports whether messages go to a function here and to an app in general, or the other way round.
func (v *view) apart() bool {
	return v.hasFunction() != (v.cfg.Function != "" || v.cfg.Lambda != "")
}

// warnRanges tells where Elastic Beanstalk takes less: its documents disagree, and the wider range is accepted.
func (l warner) warnRanges() {
	const older, newer, connections = 1800 * time.Second, 100, 100
	if l.cfg.InactivityTimeout > older {
		l.about("inactivity-timeout", "", "%s is more than the %s that older platforms of Elastic Beanstalk allow",
			l.named("inactivity-timeout"), formatDuration(older))
	}
	if l.cfg.MaxRetries > newer {
		l.about("max-retries", "", "%s is more than the %d that Elastic Beanstalk allows today", l.named("max-retries"),
			newer)
	}
	if l.cfg.HTTPConnections > connections && l.cfg.toApp() {
		l.about("http-connections", "", "%s is more than the %d that Elastic Beanstalk takes", l.named("http-connections"),
			connections)
	}
}

func (v *view) warnVisibility() {
	s := v.s
	if v.concerns("visibility-timeout") && s.VisibilityTimeout == 0 {
		v.about("visibility-timeout", "set it longer than a message takes",
			"visibility-timeout 0 does not hide a message during its delivery: it may be delivered many times at once")
	}
	if (v.concerns("visibility-timeout", "inactivity-timeout") || v.apart()) && v.s.toApp() && !v.hasFunction() &&
		s.VisibilityTimeout > 0 && s.VisibilityTimeout < s.InactivityTimeout {
		v.warnShort("inactivity-timeout")
	}
	if chosen := v.isSet("visibility-timeout") || v.isSet("function-timeout"); chosen &&
		(v.concerns("visibility-timeout") || v.apart()) &&
		v.hasFunction() && s.VisibilityTimeout > 0 && s.VisibilityTimeout < s.FunctionTimeout {
		v.warnShort("function-timeout")
	}
	if v.concerns("visibility-timeout", "retention-period") && s.VisibilityTimeout > s.RetentionPeriod &&
		s.ErrorVisibilityTimeout == nil && s.BackoffMin == 0 {
		v.about("retention-period", "make it several times as long",
			"%s is shorter than %s: a message that fails once is never tried again", v.named("retention-period"),
			v.cite("visibility-timeout"))
	}
	if v.concerns("deadline", "inactivity-timeout") && s.Deadline > 0 && s.Deadline < s.InactivityTimeout &&
		v.isSet("inactivity-timeout") {
		v.about("inactivity-timeout", "", "%s has no effect: %s ends an attempt before", v.named("inactivity-timeout"),
			v.cite("deadline"))
	}
}

// warnShort tells that the visibility is shorter than the time that an attempt may take.
func (v *view) warnShort(longest string) {
	v.about("visibility-timeout", "", "%s is shorter than %s: tendril extends it while the app works, but another "+
		"daemon on the same queue does not, and if tendril crashes, the message returns early",
		v.named("visibility-timeout"), v.cite(longest))
}

func (v *view) warnErrorVisibility() {
	after := v.s.ErrorVisibilityTimeout
	if after == nil || !v.concerns("error-visibility-timeout", "retention-period") {
		return
	}
	switch {
	case *after == 0:
		v.about("error-visibility-timeout", "set it to some seconds, or see backoff-min",
			"error-visibility-timeout 0 tries a failed message again at once: an app that fails for a minute uses up all "+
				"attempts in that minute")
	case *after > v.s.RetentionPeriod:
		v.about("error-visibility-timeout", "", "%s is longer than %s: a message that fails once is never tried again",
			v.named("error-visibility-timeout"), v.cite("retention-period"))
	}
	if v.s.BackoffMin > 0 {
		v.about("error-visibility-timeout", "", "%s has no effect: %s chooses the pause after a failure",
			v.named("error-visibility-timeout"), v.cite("backoff-min"))
	}
}

// warnBatch tells of batches that wait for nothing, and of what does not hold for them.
func (v *view) warnBatch() {
	if !v.concerns("batch-size", "batch-window", "visibility-timeout", "terminal-codes", "mime-type") {
		return
	}
	s := v.s
	if s.BatchSize > 1 && v.s.toApp() && !v.hasFunction() {
		if s.TerminalCodes != "" {
			v.about("terminal-codes", "let the app answer batchItemFailures, or leave batch-size out",
				"%s has an effect only on POSTs with one message: %s, and a status is about all messages of a POST",
				v.named("terminal-codes"), v.cite("batch-size"))
		}
		if v.isSet("mime-type") {
			v.about("mime-type", "", "%s has no effect: with %s messages are posted as application/json",
				v.named("mime-type"), v.cite("batch-size"))
		}
	}
	switch {
	case s.BatchWindow == 0:
	case s.BatchSize == 1:
		v.about("batch-window", "set batch-size, to 10 for instance", "%s has no effect: %s is full at once",
			v.named("batch-window"), v.cite("batch-size"))
	case s.BatchWindow > s.VisibilityTimeout/2:
		v.about("batch-window", "make the visibility timeout six times as long",
			"%s is more than half of %s: a message that waits that long for others is returned undelivered",
			v.named("batch-window"), v.cite("visibility-timeout"))
	}
}

func (l warner) warnRetries() {
	if l.cfg.MaxRetries == 1 && l.cfg.AnyEmbedded() {
		l.about("max-retries", "set it to 2 or more", "max-retries 1 lets a message go to the dead-letter queue after one "+
			"receive, which also counts when the app never got the message")
	}
}

func (l warner) warnLimits() {
	s := &l.cfg.Settings
	if s.AdaptiveConcurrency && s.HTTPConnections == 1 {
		l.about("adaptive-concurrency", "", "adaptive-concurrency has no effect: %s leaves nothing to adapt",
			l.cite("http-connections"))
	}
	if s.Rate > 0 {
		if apart := time.Duration(float64(time.Second) / s.Rate); apart > s.VisibilityTimeout/2 {
			l.about("rate", "make the visibility timeout longer", "%s begins a delivery every %s, and %s is not twice as "+
				"long: a message that is received and must wait is given back, which counts as a receive", l.named("rate"),
				formatDuration(apart.Round(time.Second)), l.cite("visibility-timeout"))
		}
	}
}

func (l warner) warnOrder() {
	if len(l.cfg.Queues) > 1 {
		return
	}
	if q := &l.cfg.Queues[0]; q.Weight > 0 {
		l.about("queues", "", "the weight %d has no effect: there is one queue", q.Weight)
	}
}

// warnQueue tells of a queue's own settings that the common ones make idle.
func (v *view) warnQueue(q *QueueSettings) {
	if most := v.cfg.HTTPConnections; q.Concurrency > most {
		v.warning(v.own["max"].Where, "queues", fmt.Sprintf("%smax %d has no effect: %s is the maximum for all queues",
			v.prefix, q.Concurrency, v.all.cite("http-connections")), "")
	}
	if q.ToFunction() {
		for _, key := range []string{"http_path", "mime_type", "terminal_codes", "signing_secret", "inactivity_timeout",
			"deadline"} {
			if own, found := v.own[key]; found {
				v.warning(own.Where, "queues", fmt.Sprintf("%s%s has no effect: messages go to a function", v.prefix, key), "")
			}
		}
	}
	if v.concerns("max-wait", "retention-period") && q.MaxWait > q.RetentionPeriod {
		v.about("max-wait", "", "%s is longer than %s", v.named("max-wait"), v.cite("retention-period"))
	}
}

// idleRules say which options have no effect while a condition holds.
var idleRules = []struct {
	while   func(*Settings) bool
	why     string // goes on from "NAME VALUE has no effect"
	hint    string
	options []string
}{
	{func(s *Settings) bool { return s.BackoffMin == 0 }, " without backoff-min", "set backoff-min, to 10s for instance",
		[]string{"backoff-max", "backoff-doublings", "backoff-jitter"}},
	{func(s *Settings) bool { return !s.AnyOnSQS() }, ": no queue is on Amazon SQS", "",
		[]string{"endpoint-url", "registry-table", "registry-create", "dead-letter-reasons"}},
	{func(s *Settings) bool { return !s.anyCreated() },
		": a queue on Amazon SQS keeps the maxReceiveCount of its own redrive policy", "", []string{"max-retries"}},
	{func(s *Settings) bool { return !s.AnyEmbedded() }, ": no queue is embedded", "",
		[]string{"listen", "account-id", "credentials", "tls-cert", "tls-key"}},
	{func(s *Settings) bool { return !s.toApp() }, ": messages go to a function", "",
		[]string{"http-path", "mime-type", "signing-secret", "success-codes", "terminal-codes", "header-budget", "keepalive",
			"connect-timeout",
			"inactivity-timeout", "deadline", "respect-retry-after"}},
	{func(s *Settings) bool { return !s.anyTLS() }, ": no target is https", "",
		[]string{"target-ca", "target-cert", "target-key"}},
	{func(s *Settings) bool { return !s.toFunction() }, ": no messages go to a function", "",
		[]string{"function-timeout"}},
	{func(s *Settings) bool { return s.Breaker == 0 }, " without breaker", "set breaker, to 50 for instance",
		[]string{"breaker-window", "breaker-delay"}},
	{func(s *Settings) bool { return len(s.Queues) == 1 }, ": there is one queue", "", []string{"max-wait"}},
	{func(s *Settings) bool { return s.CloudWatch == Off }, ": no metrics are sent to CloudWatch", "",
		[]string{"metrics-interval"}},
	{func(s *Settings) bool { return s.Console == Off }, ": the console is off", "",
		[]string{"console-tls-cert", "console-tls-key", "console-insecure", "console-auth", "console-read-only",
			"console-bodies", "console-trusted-proxy"}},
	{func(s *Settings) bool { return s.Console != Off && s.ConsoleTLSCert != "" }, ": the console speaks TLS", "",
		[]string{"console-insecure"}},
	{func(s *Settings) bool { return s.Console != Off && s.ConsoleTLSCert == "" && isLoopback(s.Console) },
		": the console has a loopback address", "", []string{"console-insecure"}},
}

func (l warner) warnIdle() {
	for _, rule := range idleRules {
		if rule.while(&l.cfg.Settings) {
			for _, name := range rule.options {
				l.idle(name, rule.why, rule.hint)
			}
		}
	}
}
