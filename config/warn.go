package config

import (
	"fmt"
	"time"
)

// warn tells of what is allowed and seldom meant.
func (l *loader) warn() {
	l.warnRanges()
	l.warnVisibility()
	l.warnRetries()
	l.warnBackoff()
	l.warnBackend()
}

// about warns at the place that set the option; a default that takes part has
// none.
func (l *loader) about(name, text, hint string) {
	where := ""
	if from := l.origin(name); from.Layer != Default {
		where = from.Where
	}
	l.warning(where, name, text, hint)
}

// warnRanges tells where Elastic Beanstalk's documents disagree on a range: the
// wider one is accepted.
func (l *loader) warnRanges() {
	const older, newer = 1800 * time.Second, 100
	if l.cfg.InactivityTimeout > older {
		l.about("inactivity-timeout", fmt.Sprintf("%s is more than the %s that older platforms of Elastic Beanstalk allow",
			l.named("inactivity-timeout"), formatDuration(older)), "")
	}
	if l.cfg.MaxRetries > newer {
		l.about("max-retries", fmt.Sprintf("%s is more than the %d that Elastic Beanstalk allows today", l.named("max-retries"), newer), "")
	}
}

func (l *loader) warnVisibility() {
	s := &l.cfg.Settings
	switch {
	case s.VisibilityTimeout == 0:
		l.about("visibility-timeout", "visibility-timeout 0 does not hide a message while it is worked on: it may be delivered many times at once",
			"set it longer than one message takes")
	case s.VisibilityTimeout < s.InactivityTimeout:
		l.about("visibility-timeout", fmt.Sprintf("%s is shorter than %s: tendril extends it while the app works, but another daemon on the same queue does not, and a message whose tendril is gone returns early",
			l.named("visibility-timeout"), l.cite("inactivity-timeout")), "")
	}
	if s.VisibilityTimeout > s.RetentionPeriod && s.ErrorVisibilityTimeout == nil && s.BackoffMin == 0 {
		l.about("retention-period", fmt.Sprintf("%s is shorter than %s: a message that fails once is never tried again",
			l.named("retention-period"), l.cite("visibility-timeout")), "make it several times as long")
	}
	if s.Deadline > 0 && s.Deadline < s.InactivityTimeout && l.isSet("inactivity-timeout") {
		l.about("inactivity-timeout", fmt.Sprintf("%s has no effect: %s ends an attempt before", l.named("inactivity-timeout"), l.cite("deadline")), "")
	}
}

func (l *loader) warnRetries() {
	s := &l.cfg.Settings
	if s.MaxRetries == 1 && s.Backend == BackendEmbedded {
		l.about("max-retries", "max-retries 1 lets a message go to the dead-letter queue after one receive, which counts also when nobody saw the message",
			"set it to 2 or more")
	}
	after := s.ErrorVisibilityTimeout
	switch {
	case after == nil:
	case *after == 0:
		l.about("error-visibility-timeout", "error-visibility-timeout 0 tries a failed message again at once: an app that fails for a minute uses up all attempts in that minute",
			"set it to some seconds, or see backoff-min")
	case *after > s.RetentionPeriod:
		l.about("error-visibility-timeout", fmt.Sprintf("%s is longer than %s: a message that fails once is never tried again",
			l.named("error-visibility-timeout"), l.cite("retention-period")), "")
	}
}

func (l *loader) warnBackoff() {
	s := &l.cfg.Settings
	if s.BackoffMin > 0 {
		if s.ErrorVisibilityTimeout != nil {
			l.about("error-visibility-timeout", fmt.Sprintf("%s has no effect: %s chooses the pause after a failure",
				l.named("error-visibility-timeout"), l.cite("backoff-min")), "")
		}
		return
	}
	for _, name := range []string{"backoff-max", "backoff-doublings", "backoff-jitter"} {
		if l.isSet(name) {
			l.about(name, fmt.Sprintf("%s has no effect without backoff-min", l.named(name)), "set backoff-min, to 10s for instance")
		}
	}
}

// warnBackend tells of options that the chosen backend does not use.
func (l *loader) warnBackend() {
	idle, why := []string{"endpoint-url", "registry-table", "registry-create"}, "the queue is embedded"
	if l.cfg.Backend == BackendSQS {
		idle, why = []string{"listen", "account-id"}, "the queue is on Amazon SQS"
		if l.isSet("max-retries") {
			l.about("max-retries", fmt.Sprintf("%s has no effect: a queue on Amazon SQS keeps the maxReceiveCount of its own redrive policy", l.named("max-retries")), "")
		}
	}
	for _, name := range idle {
		if l.isSet(name) {
			l.about(name, fmt.Sprintf("%s has no effect: %s", l.named(name), why), "")
		}
	}
}
