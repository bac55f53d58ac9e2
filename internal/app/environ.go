package app

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/supervisor/notify"
)

// localCredential is both access key and secret for the embedded queue, which accepts any on loopback.
const localCredential = "tendril"

// Queue describes the app's queue.
type Queue struct {
	// Endpoint is the URL of the embedded queue. It is "" for Amazon SQS, where the app finds region and credentials
	// itself.
	Endpoint, Region string
	Name, URL        string // of the worker queue
	// AccessKeyID and SecretAccessKey are for the embedded queue, or "" if it accepts any.
	AccessKeyID, SecretAccessKey string
}

// Environ returns the complete environment of an app process. It removes tendril's own settings from base, adds the
// bundle's properties and links unless base sets them, and sets variables for the port and the queue. b may be nil.
// linked returns the URL of a link's queue, or "". Credentials in base are kept, since the app may need them elsewhere.
func Environ(base []string, b *bundle.Bundle, linked func(bundle.Link) string, port int, q Queue) []string {
	env := notify.WithoutVariables(base)
	set := func(name, value string) {
		env = append(slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }),
			name+"="+value)
	}
	setMissing := func(name, value string) {
		if !HasVariable(env, name) {
			set(name, value)
		}
	}
	if b != nil {
		for _, p := range b.Environment() {
			setMissing(p.Option, p.Value)
		}
		for _, link := range b.Links {
			if url := linked(link); url != "" {
				setMissing(link.Variable, url)
			}
		}
	}

	env = slices.DeleteFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "TENDRIL_") || strings.HasPrefix(entry, "WORKERLESS_") ||
			strings.HasPrefix(entry, "PORT=") // set only for processes that listen
	})
	setMissing("PYTHONUNBUFFERED", "1") // output would be delayed by buffering otherwise
	if port != 0 {
		set("PORT", strconv.Itoa(port))
	}

	if q.URL != "" {
		set("TENDRIL_QUEUE", q.Name)
		set("TENDRIL_QUEUE_URL", q.URL)
	}
	if q.Endpoint != "" {
		set("AWS_ENDPOINT_URL_SQS", q.Endpoint)
		setMissing("AWS_REGION", q.Region)
		setMissing("AWS_DEFAULT_REGION", q.Region)
		if !HasVariable(env, "AWS_PROFILE") && !HasVariable(env, "AWS_ACCESS_KEY_ID") {
			set("AWS_ACCESS_KEY_ID", cmp.Or(q.AccessKeyID, localCredential))
			set("AWS_SECRET_ACCESS_KEY", cmp.Or(q.SecretAccessKey, localCredential))
		}
	}
	return env
}

// HasVariable reports whether an environment sets a variable.
func HasVariable(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
