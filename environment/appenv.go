package environment

import (
	"slices"
	"strconv"
	"strings"

	"tendril/notify"
)

// localCredential is what the app gets as access key and secret for the
// embedded queue, which accepts any while it listens on loopback only.
const localCredential = "tendril"

// appQueue is what the app's environment says about the queue.
type appQueue struct {
	// endpoint is the embedded queue's URL; "" on Amazon SQS, where the app
	// finds region and credentials as it always did.
	endpoint string
	region   string
	url      string // the worker queue's URL
	name     string
}

// appEnvironment returns the complete environment of a process of the app:
// base, less tendril's own settings, with what the app needs to listen and to
// enqueue. Credentials that are there already stay: the embedded queue accepts
// them too, and the app may need them for other services.
func appEnvironment(base []string, port int, q appQueue) []string {
	env := slices.DeleteFunc(notify.WithoutVariables(base), func(entry string) bool {
		return strings.HasPrefix(entry, "TENDRIL_") || strings.HasPrefix(entry, "WORKERLESS_")
	})
	set := func(name, value string) { env = append(without(env, name), name+"="+value) }
	setMissing := func(name, value string) {
		if !has(env, name) {
			set(name, value)
		}
	}
	if port != 0 {
		set("PORT", strconv.Itoa(port))
	}
	if q.url != "" {
		set("TENDRIL_QUEUE", q.name)
		set("TENDRIL_QUEUE_URL", q.url)
	}
	if q.endpoint != "" {
		set("AWS_ENDPOINT_URL_SQS", q.endpoint)
		setMissing("AWS_REGION", q.region)
		setMissing("AWS_DEFAULT_REGION", q.region)
		if !has(env, "AWS_PROFILE") && !has(env, "AWS_ACCESS_KEY_ID") {
			set("AWS_ACCESS_KEY_ID", localCredential)
			set("AWS_SECRET_ACCESS_KEY", localCredential)
		}
	}
	return env
}

func has(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}

func without(env []string, name string) []string {
	return slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
